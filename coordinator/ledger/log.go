package ledger

import (
	"errors"
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// Entry is one entry as a fold sees it.
type Entry struct {
	Seq    coordinator.Seq
	Kind   byte
	TimeMS int64  // the writer's clock
	Body   []byte // read only; a fold that keeps a part copies it
}

// Fold is the state that a ledger's entries add up to. It is pure: the same
// entries give the same state everywhere. C says what an entry changed.
type Fold[C any] interface {
	// Apply folds one entry. One that breaks the rules is void: C says so, and
	// there is no error. An error is for a kind, or a format, that this
	// release does not know: whoever meets it stops, and folds no more.
	Apply(e Entry) (C, error)
	// Rows yields the whole state, sorted by key, no key twice. Keys and
	// values are good until yield returns.
	Rows(yield func(key, value []byte) bool)
	// Restore takes back a row, in the order of Rows, onto a new, empty fold.
	// Key and value are good during the call.
	Restore(key, value []byte) error
}

// Position is how far a fold has come: its last entry.
type Position struct {
	Seq  coordinator.Seq
	Hash Hash
}

// Proposal is an append that its Log waits for. Client.Append takes it.
type Proposal struct {
	Ledger string
	At     Position // it goes into slot At.Seq+1
	Nonce  coordinator.Nonce
	Data   []byte
}

// Slot is where the proposal goes.
func (p Proposal) Slot() coordinator.Seq { return p.At.Seq + 1 }

// Outcome is what Client.Append or Client.Read found. It may be folded any
// time later: what was true of a slot above the floor stays true.
type Outcome struct {
	Nonce coordinator.Nonce // of the proposal that this settles; zero for a read
	Won   bool              // the slot holds the proposal
	// Entries from At.Seq+1 on, in order; a proposal that won is the first.
	Entries []coordinator.Entry
	// Trimmed: the floor lies at or above the slot asked for. There are no
	// Entries, and a proposal may have won or not: the checkpoint tells.
	Trimmed bool
	Floor   coordinator.Seq // as read after all else
}

// Change is one entry that has been folded.
type Change[C any] struct {
	Entry  Entry
	Effect C
	Mine   bool // it is the proposal that was in flight
}

// Outcomes of a Log.
var (
	// ErrInFlight: a proposal is not settled yet.
	ErrInFlight = errors.New("an append is in flight")
	// ErrTrimmed: the ledger was trimmed past the fold. The caller loads the
	// newest checkpoint and gives it to Replace.
	ErrTrimmed = errors.New("trimmed past the fold")
)

// Log is a ledger as one writer sees it: the fold, its position and the
// proposal in flight, if any.
type Log[F Fold[C], C any] struct {
	Bug planted.Bug // tests only

	name    string
	fold    F
	at      Position
	pending *Proposal
}

// New is a Log before the first entry, with an empty fold.
func New[F Fold[C], C any](name string, fold F) *Log[F, C] {
	return &Log[F, C]{name: name, fold: fold}
}

// Name of the ledger.
func (l *Log[F, C]) Name() string { return l.name }

// Fold is the state through Position. Only the Log changes it.
func (l *Log[F, C]) Fold() F { return l.fold }

// Position is that of the last entry folded.
func (l *Log[F, C]) Position() Position { return l.at }

// Busy says that a proposal is in flight.
func (l *Log[F, C]) Busy() bool {
	return l.pending != nil && !l.Bug.Is(planted.TwoAppendsInFlight)
}

// Propose makes the one proposal that may be in flight, for the slot after the
// last one folded. The nonce is unique among all writers. Errors: ErrInFlight,
// coordinator.ErrTooLarge.
func (l *Log[F, C]) Propose(kind byte, body []byte, timeMS int64, nonce coordinator.Nonce) (Proposal, error) {
	if l.Busy() {
		return Proposal{}, fmt.Errorf("propose to %s: %w", l.name, ErrInFlight)
	}
	if len(body) > MaxBodyBytes {
		return Proposal{}, fmt.Errorf("propose %d bytes to %s: %w", len(body), l.name, coordinator.ErrTooLarge)
	}
	at := l.at
	if l.pending != nil { // only with planted.TwoAppendsInFlight
		at = Position{Seq: l.pending.Slot(), Hash: HashFrame(l.pending.Data)}
	}
	f := Frame{Kind: kind, TimeMS: timeMS, Prev: at.Hash, Body: body}
	p := Proposal{Ledger: l.name, At: at, Nonce: nonce, Data: f.Encode()}
	l.pending = &p
	return p, nil
}

// Settle folds an outcome, of the proposal in flight or of a read; entries
// folded already are passed over. It returns what it folded, also when it then
// meets an error: ErrTrimmed, siltstone.ErrCorrupt, siltstone.ErrNewerFormat,
// or the fold's own. After one but ErrTrimmed the ledger is not to be used.
//
// The outcome of the proposal in flight ends it, whatever it is. If it was
// Trimmed, or the Log was replaced meanwhile, no Change tells whether it won:
// the fold does.
func (l *Log[F, C]) Settle(o Outcome) ([]Change[C], error) {
	own := l.pending
	if own != nil && o.Nonce == own.Nonce {
		l.pending = nil
	}
	if o.Trimmed {
		if o.Floor <= l.at.Seq { // the Log has been replaced since
			return nil, nil
		}
		return nil, fmt.Errorf("ledger %s at %d, floor %d: %w", l.name, l.at.Seq, o.Floor, ErrTrimmed)
	}
	var changes []Change[C]
	for _, e := range o.Entries {
		if e.Seq <= l.at.Seq {
			continue
		}
		mine := own != nil && e.Seq == own.Slot() && e.Nonce == own.Nonce
		lost := o.Nonce != (coordinator.Nonce{}) && !o.Won
		c, err := l.apply(e, lost && l.Bug.Is(planted.AppendWithoutFolding))
		if err != nil {
			return changes, fmt.Errorf("ledger %s, entry %d: %w", l.name, e.Seq, err)
		}
		c.Mine = mine
		changes = append(changes, c)
	}
	return changes, nil
}

func (l *Log[F, C]) apply(e coordinator.Entry, skip bool) (Change[C], error) {
	if e.Seq != l.at.Seq+1 {
		return Change[C]{}, fmt.Errorf("it follows %d: %w", l.at.Seq, siltstone.ErrCorrupt)
	}
	f, err := DecodeFrame(e.Data)
	if err != nil {
		return Change[C]{}, err
	}
	if f.Prev != l.at.Hash {
		return Change[C]{}, fmt.Errorf("hash of its predecessor is %s, it names %s: %w", l.at.Hash, f.Prev, siltstone.ErrCorrupt)
	}
	c := Change[C]{Entry: Entry{Seq: e.Seq, Kind: f.Kind, TimeMS: f.TimeMS, Body: f.Body}}
	if !skip {
		if c.Effect, err = l.fold.Apply(c.Entry); err != nil {
			return Change[C]{}, err
		}
	}
	l.at = Position{Seq: e.Seq, Hash: HashFrame(e.Data)}
	return c, nil
}

// Replace puts a reloaded fold in the place of one that was trimmed past. It
// does not touch the proposal in flight.
func (l *Log[F, C]) Replace(fold F, at Position) {
	l.fold, l.at = fold, at
}
