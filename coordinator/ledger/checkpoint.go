package ledger

import (
	"context"
	"iter"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Checkpoint is a stored fold, as the register of its ledger points to it.
type Checkpoint struct {
	Ledger string
	At     Position
	Key    string // of the object
	index  place
}

// place is where the index of a checkpoint lies in its object.
type place struct {
	position, lengthBytes int64
	crc                   uint32
}

// Row is one row of a fold.
type Row struct{ Key, Value []byte }

// EncodedCheckpoint is a fold's rows, encoded and not stored yet. It shares
// nothing with the fold.
type EncodedCheckpoint struct {
	Checkpoint
	body bucket.Body
}

// EncodeCheckpoint encodes the rows of a fold, which are sorted by key.
func EncodeCheckpoint(ledger string, at Position, rows iter.Seq2[[]byte, []byte]) EncodedCheckpoint {
	panic("not yet")
}

// Checkpoint encodes the state as it is, for Client.SaveCheckpoint to store
// while the Log goes on.
func (l *Log[F, C]) Checkpoint() EncodedCheckpoint {
	return EncodeCheckpoint(l.name, l.at, l.fold.Rows)
}

// SaveCheckpoint stores a checkpoint under a key of its own, then points the
// ledger's register to it, unless that points to a later one already: it never
// goes back.
func (c *Client) SaveCheckpoint(ctx context.Context, e EncodedCheckpoint) error { panic("not yet") }

// Newest is the checkpoint that a ledger's register points to; found is false if there is none.
func (c *Client) Newest(ctx context.Context, ledger string) (cp Checkpoint, found bool, err error) {
	panic("not yet")
}

// Restore reads a checkpoint and hands on its rows, in order, checked. Damage
// is siltstone.ErrCorrupt, and names the part.
func (c *Client) Restore(ctx context.Context, cp Checkpoint, restore func(key, value []byte) error) error {
	panic("not yet")
}

// Lookup reads the rows whose keys have a prefix from the newest checkpoint,
// by two ranged reads of it, and the position that they were true at. Without
// a checkpoint there are none.
func (c *Client) Lookup(ctx context.Context, ledger string, prefix []byte) ([]Row, Position, error) {
	panic("not yet")
}

// Loaded is what LoadFold found.
type Loaded[F Fold[C], C any] struct {
	Fold       F
	At         Position
	Checkpoint Position    // zero: there is none
	Tail       []Change[C] // folded after the checkpoint
}

// LoadFold reads a ledger to its end: newest checkpoint, then the entries after it.
func LoadFold[F Fold[C], C any](ctx context.Context, c *Client, ledger string, empty func() F) (Loaded[F, C], error) {
	panic("not yet")
}

// Trim deletes entries that the newest checkpoint covers and that are, by
// nowMS, older than MinAge, never the newest entry. It returns the floor that
// it left. One call deletes a bounded number: while the floor moves, there may
// be more.
func (c *Client) Trim(ctx context.Context, ledger string, nowMS int64) (coordinator.Seq, error) {
	panic("not yet")
}
