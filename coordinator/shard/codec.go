package shard

// Decode takes an entry's body apart. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for an unknown kind. Nothing points into body.
func Decode(kind byte, body []byte) (Body, error) { panic("todo") }

// Encode is the entry's body.
func (l *Lead) Encode() []byte { panic("todo") }

// Encode is the entry's body.
func (o *Open) Encode() []byte { panic("todo") }

// Encode is the entry's body.
func (s *Segment) Encode() []byte { panic("todo") }

// Encode is the entry's body.
func (r *Replace) Encode() []byte { panic("todo") }

// Encode is the entry's body.
func (t *Trim) Encode() []byte { panic("todo") }

// Encode is the entry's body.
func (d *Drop) Encode() []byte { panic("todo") }
