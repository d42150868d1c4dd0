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
	// MaxReadEntries and MaxReadBytes bound one Read, whatever its limit says.
	// One entry is returned however long it is.
	MaxReadEntries = 1024
	MaxReadBytes   = 4 << 20
	// MaxNameBytes bounds the name of a ledger and the key of a register.
	MaxNameBytes = 512
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
	// A slot that was trimmed counts as empty: see Floor. Seq 0 is no slot.
	Append(ctx context.Context, ledger string, e Entry) error
	// Read returns filled slots from after+1 on, in order, without a hole, at
	// most limit, and possibly fewer; none when after is the last. Where the
	// slot after+1 is empty and a later one filled, or the entries returned
	// would have a hole, the error is ErrGap. It is consistent: it sees every
	// append that has returned, and nothing that a crash could take back.
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
	// List returns the registers with a prefix that hold a value, sorted by
	// key. It is consistent, each by itself: it sees what was put before it was
	// called, and may miss what is put meanwhile.
	List(ctx context.Context, prefix string) ([]Listed, error)
}

// Listed is a register, and what it holds.
type Listed struct {
	Key string
	Value
}

// Coordinator is both. Names and keys are 1 to MaxNameBytes bytes long, and names
// of ledgers are text in UTF-8. All calls may be made at once from anywhere. One whose context ends before the
// store has begun on it returns the context's error; later than that, a write
// is ErrUnknown.
type Coordinator interface {
	Ledger
	Register
	// Close gives up the store's lock and connections, and waits for calls
	// under way. Later calls are siltstone.ErrUnavailable.
	Close() error
}

// ClusterKey is the register that holds the cluster's id. The bucket has the
// same in an object of this name, so that the two are known to belong together
// (ledger.Client.EnsureClusterID).
const ClusterKey = "cluster"

// Outcomes.
var (
	// ErrUnknown: a conditional write that may have landed, or may yet.
	ErrUnknown = errors.New("outcome unknown")
	// ErrGap: a slot is missing below a filled one. The floor tells whether it was trimmed.
	ErrGap = errors.New("gap in ledger")
	// ErrTooLarge: data over MaxEntryBytes, or a name over MaxNameBytes.
	// Nothing was written.
	ErrTooLarge = errors.New("entry too large")
	// ErrName: an empty name, or slot 0. Nothing was written.
	ErrName = errors.New("no such slot or name")
	// ErrLocked: another process holds the store.
	ErrLocked = errors.New("locked by another process")
)

// CheckAppend is what every adapter asks of an append before anything else.
func CheckAppend(ledger string, e Entry) error {
	if e.Seq == 0 {
		return fmt.Errorf("slot 0 of %q: %w", ledger, ErrName)
	}
	return CheckPut(ledger, e.Data)
}

// CheckPut is what every adapter asks of a put before anything else.
func CheckPut(key string, data []byte) error {
	if len(data) > MaxEntryBytes {
		return fmt.Errorf("%d bytes for %.64q: %w", len(data), key, ErrTooLarge)
	}
	return CheckName(key)
}

// CheckName is what every adapter asks of a ledger's name or a register's key.
func CheckName(name string) error {
	switch {
	case name == "":
		return ErrName
	case len(name) > MaxNameBytes:
		return fmt.Errorf("name of %d bytes, %.64q...: %w", len(name), name, ErrTooLarge)
	}
	return nil
}

// Conflict says that a slot is taken, and by what.
type Conflict struct{ Occupant Entry }

func (c *Conflict) Error() string { return fmt.Sprintf("slot %d is taken", c.Occupant.Seq) }

// VersionConflict says what a register holds instead.
type VersionConflict struct{ Current Value }

func (c *VersionConflict) Error() string {
	return fmt.Sprintf("register is at version %q", c.Current.Version)
}
