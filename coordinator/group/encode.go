package group

// Kind of the entry.
func (*Lead) Kind() byte   { return KindLead }
func (*Update) Kind() byte { return KindUpdate }

// Encode is the entry's body.
func (l *Lead) Encode() []byte   { return nil }
func (u *Update) Encode() []byte { return nil }
