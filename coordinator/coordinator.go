// Package coordinator is the port to the store that makes concurrent writers
// take turns: ledgers (append-only histories) and registers (small versioned
// values), both by conditional writes. Adapters are in its sub-packages and
// all pass the suite in coordinatortest. What the writers agree on beyond a
// single call (the append rule, checkpoints) is in coordinator/ledger.
package coordinator

import (
	"context"
	"errors"
	"fmt"
)

// Seq numbers the slots of a ledger from 1. Seq 0 is "before the first".
type Seq uint64

// Nonce marks one append or put, so that its writer knows it again when the
// reply was lost.
type Nonce [16]byte

// Limits of every adapter.
const (
	// MaxEntryBytes bounds one entry's or register's data (a DynamoDB item holds 400 KB).
	MaxEntryBytes = 384 << 10
	// MaxReadEntries bounds one Read, whatever its limit says.
	MaxReadEntries = 1024
)

// Entry is one filled slot.
type Entry struct {
	Seq   Seq
	Nonce Nonce
	Data  []byte
}

// Ledger stores append-only histories, each by its name. Data that goes in or
// comes out is shared with nobody: adapters copy it.
type Ledger interface {
	// Append fills slot e.Seq of a ledger if it is empty. A filled slot is
	// *Conflict, with its occupant (which may be the caller's own entry, of an
	// earlier try). ErrUnknown, wrapped, says that the write may have landed
	// or may land at any time later. Any other error: it did not land and
	// never will.
	// A slot that was trimmed counts as empty: see Floor.
	Append(ctx context.Context, ledger string, e Entry) error
	// Read returns filled slots from after+1 on, in order, without a hole, at
	// most limit (and MaxReadEntries); none when after is the last. Where the
	// slot after+1 is empty and a later one filled, or the entries returned
	// would have a hole, the error is ErrGap. It is consistent: it sees every
	// append that has returned.
	Read(ctx context.Context, ledger string, after Seq, limit int) ([]Entry, error)
	// Floor is the highest seq that has ever been given to Trim, 0 at first.
	// It is consistent. A slot at or below it may have been deleted: what a
	// write, conflict or read says of a slot counts only when a Floor read
	// after it lies below that slot.
	Floor(ctx context.Context, ledger string) (Seq, error)
	// Trim raises the floor to through, then deletes the slots up to it. A
	// floor never falls: a lower through deletes what is left below it, and
	// leaves the floor. Interrupted, it may be repeated.
	Trim(ctx context.Context, ledger string, through Seq) error
}

// Version names one value of a register: a unique token, never a counter. The
// empty version is that of a register that was never put, or whose tombstone has expired.
type Version string

// Value is what a register holds.
type Value struct {
	Data    []byte
	Version Version
	Nonce   Nonce
	Deleted bool // a tombstone; Data is empty
}

// Register stores small versioned values by key.
type Register interface {
	// Get is consistent. A key never put has the zero Value.
	Get(ctx context.Context, key string) (Value, error)
	// Put writes data if the register's version is still ifVersion, and
	// returns the new version. *VersionConflict and ErrUnknown as for Append.
	Put(ctx context.Context, key string, data []byte, ifVersion Version, nonce Nonce) (Version, error)
	// Delete leaves a tombstone (a Value with Deleted set and a version of its
	// own) that a later Put may replace; an adapter keeps it for a day at least.
	Delete(ctx context.Context, key string, ifVersion Version, nonce Nonce) error
	// Keys lists the keys with a prefix that hold a value, sorted. It is for
	// start and for people: it may miss what was put while it ran.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Coordinator is both.
type Coordinator interface {
	Ledger
	Register
	// Close gives up the store's lock and connections, and waits for calls under way.
	Close() error
}

// ClusterKey is the register that holds the cluster's id. The bucket has the
// same in an object of this name, so that the two are known to belong together
// (ledger.EnsureClusterID).
const ClusterKey = "cluster"

// Outcomes.
var (
	// ErrUnknown: a conditional write that may have landed, or may yet.
	ErrUnknown = errors.New("outcome unknown")
	// ErrGap: a slot is missing below a filled one. The floor tells whether it was trimmed.
	ErrGap = errors.New("gap in ledger")
	// ErrTooLarge: the data is over MaxEntryBytes. Nothing was written.
	ErrTooLarge = errors.New("entry too large")
	// ErrLocked: another process holds the store.
	ErrLocked = errors.New("locked by another process")
)

// Conflict says that a slot is taken, and by what.
type Conflict struct{ Occupant Entry }

func (c *Conflict) Error() string { return fmt.Sprintf("slot %d is taken", c.Occupant.Seq) }

// VersionConflict says what a register holds instead.
type VersionConflict struct{ Current Value }

func (c *VersionConflict) Error() string {
	return fmt.Sprintf("register is at version %q", c.Current.Version)
}
