package group

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

var _ ledger.Fold[Change] = (*State)(nil)

func TestSmoke(t *testing.T) {
	s := New()
	inst := "i"
	set := &Info{Type: "consumer", Generation: 1, Protocol: "range", Leader: "b", Assigned: true, ChangedMS: 5, Members: []Member{
		{ID: "a", ClientID: "c", ClientHost: "h", SessionMS: 1, RebalanceMS: 2, Subscription: []byte("s"), Assignment: []byte("x")},
		{ID: "b", Instance: &inst, ClientID: "c", ClientHost: "h", SessionMS: 1, RebalanceMS: 2, Subscription: []byte("s")},
	}}
	bodies := []Body{
		&Lead{1, 7},
		&Update{1, 7, []GroupUpdate{{ID: "g", Set: set, Commit: []Committed{{TopicPartition{3, 1}, 9, -1, "m", 7, -1}, {TopicPartition{2, 0}, 9, 4, "", 6, 50}}}}},
	}
	for i, b := range bodies {
		c, err := s.Apply(ledger.Entry{Seq: 1, Kind: b.Kind(), Body: b.Encode()})
		if err != nil || c.Void != "" {
			t.Fatal(i, c, err)
		}
	}
	again := New()
	for k, v := range s.Rows {
		if err := again.Restore(k, v); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := s.Group("g")
	h, _ := again.Group("g")
	if d := cmp.Diff(g, h); d != "" || again.Leader() != 7 || again.Epoch() != siltstone.Epoch(1) {
		t.Error(d)
	}
	if d := cmp.Diff(*set, g.Info); d != "" {
		t.Error(d)
	}
}
