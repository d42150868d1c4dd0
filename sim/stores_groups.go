package sim

import (
	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// groups refolds the ledger of a group shard. Two leaders never write in one
// epoch. What is committed at its end is one more thing that somebody was shown.
func (a *auditor) groups(id int, h *history) {
	name := group.Ledger(id)
	fold := group.New()
	leaders := map[siltstone.Epoch]siltstone.Incarnation{}
	for _, e := range a.frames(name) {
		ch, err := fold.Apply(e)
		if err != nil || ch.Void != "" {
			a.failf("6: %s entry %d: %v %s", name, e.Seq, err, ch.Void)
			return
		}
		if !ch.Elected {
			continue
		}
		if other, ok := leaders[fold.Epoch()]; ok {
			a.failf("6: %s and %s both lead %s at epoch %d", other, fold.Leader(), name, fold.Epoch())
		}
		leaders[fold.Epoch()] = fold.Leader()
	}
	sameFold(a, name, fold, group.New, func([]ledger.Change[group.Change], *group.State) {})
	for g := range fold.Groups() {
		a.committed(g, h)
	}
}

// committed notes a group's offsets, also those that it has not.
func (a *auditor) committed(g *group.Group, h *history) {
	at := map[partition]group.Committed{}
	for tp, c := range g.Offsets {
		topic, ok := a.numbers[tp.Topic]
		if !ok {
			a.failf("6: %s has an offset of topic number %d, which is deleted", g.ID, tp.Topic)
			continue
		}
		at[partition{topic, tp.Partition}] = c
	}
	q := &recallRequest{asks: []*recallAsk{{group: g.ID}}}
	for _, x := range h.groups.commits {
		if _, known := at[x.partition]; x.group == g.ID && !known {
			at[x.partition] = group.Committed{Offset: -1, Epoch: -1}
		}
	}
	for _, p := range sortedPartitions(at) {
		c := at[p]
		q.asks[0].found = append(q.asks[0].found, recall{group: g.ID, partition: p, id: c.Metadata, offset: c.Offset, epoch: c.Epoch})
	}
	h.recalled("the ledger", h.tick(), q)
}
