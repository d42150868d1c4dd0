package sim

import (
	"testing"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (e *estate) group(b group.Body) {
	e.Helper()
	e.entry(group.Ledger(group.Of("g")), b.Kind(), b.Encode())
}

// commits stores an offset of a partition 0 for group g.
func (e *estate) commits(topic uint32, offset int64, id string) {
	e.Helper()
	e.group(&group.Update{Epoch: 1, Writer: alice, Groups: []group.GroupUpdate{{ID: "g", Commit: []group.Committed{{
		TopicPartition: group.TopicPartition{Topic: topic}, Offset: offset, Epoch: -1, Metadata: id, ExpireMS: -1,
	}}}}})
}

func TestAuditGroups(t *testing.T) {
	tests := []struct {
		name string
		do   func(e *estate)
		want string // begins one of the complaints; empty is none
	}{
		{"committed and acknowledged", func(e *estate) {
			e.history.acked(e.history.commit("c", as("a", 1), 5))
			e.commits(e.number(), 5, "c")
		}, ""},
		{"committed by nobody", func(e *estate) {
			e.commits(e.number(), 5, "c")
		}, `6: t/0 in g: the ledger was shown 5 by "c", which nobody had committed`},
		{"another than the last", func(e *estate) {
			e.history.acked(e.history.commit("c", as("a", 1), 5))
			e.history.acked(e.history.commit("d", as("a", 1), 6))
			e.commits(e.number(), 5, "c")
		}, "6: t/0 in g: c (moments 2 and 5) and d (moments 4 and 3) are in no order"},
		{"acknowledged and not there", func(e *estate) {
			e.history.commit("c", as("a", 1), 5).partition = p1
			e.history.acked(e.history.commit("d", as("a", 1), 6))
			e.group(&group.Update{Epoch: 1, Writer: alice, Groups: []group.GroupUpdate{{ID: "g", Set: &group.Info{Generation: 1}}}})
		}, "6: t/0 in g: the ledger was shown none"},
		{"of a topic that is not there", func(e *estate) {
			e.commits(e.number()+1, 5, "c")
		}, "6: g has an offset of topic number 2, which is deleted"},
		{"by another than the leader", func(e *estate) {
			e.group(&group.Update{Epoch: 1, Writer: bob})
		}, "6: " + group.Ledger(group.Of("g")) + " entry 2"},
		{"two leaders of one epoch", func(e *estate) {
			e.group(&group.Lead{Epoch: 1, Leader: bob})
		}, "6: " + group.Ledger(group.Of("g")) + " entry 2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := newEstate(t)
			e.group(&group.Lead{Epoch: 1, Leader: alice})
			test.do(e)
			complains(t, append(e.store.audit(&e.history.history), e.history.check()...), test.want)
		})
	}
}
