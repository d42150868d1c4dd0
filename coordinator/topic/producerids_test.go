package topic

import (
	"errors"
	"math"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

func TestTakeProducerIDs(t *testing.T) {
	w := newWorld(t)
	old := w.s.View()
	for want := range int64(3) {
		d, first, err := TakeProducerIDs(w.s.View())
		if err != nil || first != want*ProducerIDBlock {
			t.Fatalf("block %d begins at %d, %v", want, first, err)
		}
		w.append(d)
	}
	// On an old view the block is one that somebody has.
	d, first, err := TakeProducerIDs(old)
	if c, _ := w.s.Apply(ledger.Entry{Kind: d.Kind, Body: d.Body}); err != nil || first != 0 || c.Void == "" {
		t.Errorf("block from %d on was taken twice: %v", first, err)
	}
}

func TestProducerIDsEnd(t *testing.T) {
	s := New()
	s.nextID = math.MaxInt64 - ProducerIDBlock
	d, _, err := TakeProducerIDs(s.View())
	if c, _ := s.Apply(ledger.Entry{Kind: d.Kind, Body: d.Body}); err != nil || c.Void != "" {
		t.Errorf("the last block: %v, %s", err, c.Void)
	}
	if d, _, err := TakeProducerIDs(s.View()); !errors.Is(err, ErrNoProducerIDs) || d.Body != nil {
		t.Errorf("ids after the last: %v, %v", d, err)
	}
}
