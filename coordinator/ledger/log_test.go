package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// history is entries 1..n of a ledger, each by another writer.
func history(bodies ...string) []coordinator.Entry {
	var all []coordinator.Entry
	var prev ledger.Hash
	for i, body := range bodies {
		data := ledger.Frame{Kind: toyKind, Prev: prev, Body: []byte(body)}.Encode()
		all = append(all, coordinator.Entry{Seq: coordinator.Seq(i + 1), Nonce: nonce(0xee, byte(i)), Data: data})
		prev = ledger.HashFrame(data)
	}
	return all
}

func own(p ledger.Proposal) coordinator.Entry {
	return coordinator.Entry{Seq: p.Slot(), Nonce: p.Nonce, Data: p.Data}
}

func mustSettle(t *testing.T, l *toyLog, o ledger.Outcome, mine ...bool) {
	t.Helper()
	changes, err := l.Settle(o)
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, c := range changes {
		got = append(got, c.Mine)
	}
	if diff := cmp.Diff(mine, got); diff != "" {
		t.Fatalf("mine (-want +got):\n%s", diff)
	}
}

func TestProposeOneAtATime(t *testing.T) {
	l := newLog()
	p := mustPropose(t, l, "a", 0, nonce(1))
	if _, err := l.Propose(toyKind, nil, 0, nonce(2)); !errors.Is(err, ledger.ErrInFlight) || !l.Busy() {
		t.Errorf("a second proposal: %v", err)
	}
	// A read does not end it.
	mustSettle(t, l, ledger.Outcome{})
	if !l.Busy() {
		t.Error("a read has ended the proposal")
	}
	mustSettle(t, l, ledger.Outcome{Nonce: p.Nonce, Won: true, Entries: []coordinator.Entry{own(p)}}, true)
	if l.Busy() {
		t.Error("busy after it was settled")
	}
	if _, err := l.Propose(toyKind, make([]byte, ledger.MaxBodyBytes+1), 0, nonce(2)); !errors.Is(err, coordinator.ErrTooLarge) || l.Busy() {
		t.Errorf("too large a proposal: %v", err)
	}
	mustPropose(t, l, string(make([]byte, ledger.MaxBodyBytes)), 0, nonce(3))
}

func TestSettleFolds(t *testing.T) {
	all := history("a", "b", "c")
	l := newLog()
	changes, err := l.Settle(ledger.Outcome{Entries: all[:2]})
	want := []ledger.Change[int]{
		{Entry: ledger.Entry{Seq: 1, Kind: toyKind, Body: []byte("a")}, Effect: 0},
		{Entry: ledger.Entry{Seq: 2, Kind: toyKind, Body: []byte("b")}, Effect: 1},
	}
	if diff := cmp.Diff(want, changes); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	mustSettle(t, l, ledger.Outcome{Entries: all}, false) // the first two again, passed over
	wantBodies(t, l.Fold(), "a", "b", "c")
	if at := (ledger.Position{Seq: 3, Hash: ledger.HashFrame(all[2].Data)}); l.Position() != at {
		t.Errorf("position %v, want %v", l.Position(), at)
	}
}

func TestSettleLost(t *testing.T) {
	all := history("a", "b")
	l := newLog()
	p := mustPropose(t, l, "mine", 0, nonce(1))
	mustSettle(t, l, ledger.Outcome{Nonce: p.Nonce, Entries: all}, false, false)
	if l.Busy() {
		t.Error("busy after it was lost")
	}
	p = mustPropose(t, l, "mine", 0, nonce(2))
	if p.Slot() != 3 {
		t.Errorf("proposed for slot %d, want 3", p.Slot())
	}
}

// Its own entry is known again when a read finds it before the append is answered.
func TestSettleOwnFoundByRead(t *testing.T) {
	l := newLog()
	p := mustPropose(t, l, "mine", 0, nonce(1))
	mustSettle(t, l, ledger.Outcome{Entries: []coordinator.Entry{own(p)}}, true)
	if !l.Busy() {
		t.Error("the append is still on its way")
	}
	mustSettle(t, l, ledger.Outcome{Nonce: p.Nonce, Won: true, Entries: []coordinator.Entry{own(p)}})
	if l.Busy() {
		t.Error("busy after it was settled")
	}
	wantBodies(t, l.Fold(), "mine")
}

func TestSettleTrimmed(t *testing.T) {
	l := newLog()
	mustSettle(t, l, ledger.Outcome{Entries: history("a")}, false)
	p := mustPropose(t, l, "mine", 0, nonce(1))
	if _, err := l.Settle(ledger.Outcome{Nonce: p.Nonce, Trimmed: true, Floor: 2}); !errors.Is(err, ledger.ErrTrimmed) || l.Busy() {
		t.Errorf("trimmed: %v", err)
	}
	p = mustPropose(t, l, "mine", 0, nonce(2))
	if _, err := l.Settle(ledger.Outcome{Trimmed: true, Floor: 2}); !errors.Is(err, ledger.ErrTrimmed) || !l.Busy() {
		t.Errorf("a read is trimmed: %v", err)
	}
	// After the reload the append's own answer says nothing new.
	all := history("a", "b", "c")
	l.Replace(&toy{bodies: []string{"a", "b"}}, ledger.Position{Seq: 2, Hash: ledger.HashFrame(all[1].Data)})
	mustSettle(t, l, ledger.Outcome{Nonce: p.Nonce, Trimmed: true, Floor: 2})
	if l.Busy() {
		t.Error("busy after it was settled")
	}
	mustSettle(t, l, ledger.Outcome{Entries: all}, false)
	wantBodies(t, l.Fold(), "a", "b", "c")
}

func TestSettleRefuses(t *testing.T) {
	all := history("a", "b", "c", "d")
	other := history("x", "y")
	damaged := coordinator.Entry{Seq: 3, Data: append([]byte{}, all[2].Data...)}
	damaged.Data[30] ^= 1
	newer := coordinator.Entry{Seq: 3, Data: ledger.Frame{Kind: toyKind + 1, Prev: ledger.HashFrame(all[1].Data)}.Encode()}
	for name, test := range map[string]struct {
		third coordinator.Entry
		want  error
	}{
		"a hole":                 {all[3], siltstone.ErrCorrupt},
		"damage":                 {damaged, siltstone.ErrCorrupt},
		"another history's":      {coordinator.Entry{Seq: 3, Data: other[1].Data}, siltstone.ErrCorrupt},
		"a kind that is unknown": {newer, errUnknownKind},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog()
			changes, err := l.Settle(ledger.Outcome{Entries: []coordinator.Entry{all[0], all[1], test.third}})
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			// What came before it is folded and told.
			if len(changes) != 2 || l.Position().Seq != 2 {
				t.Errorf("%d changes, at %d", len(changes), l.Position().Seq)
			}
			wantBodies(t, l.Fold(), "a", "b")
		})
	}
}

func TestPlantedTwoAppendsInFlight(t *testing.T) {
	l := newLog()
	l.Bug = planted.ForTest(t, planted.TwoAppendsInFlight)
	first := mustPropose(t, l, "mine", 0, nonce(1))
	mustPropose(t, l, "mine", 0, nonce(2))
	// The second hides the first.
	mustSettle(t, l, ledger.Outcome{Nonce: first.Nonce, Won: true, Entries: []coordinator.Entry{own(first)}}, false)
}
