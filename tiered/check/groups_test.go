package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// grouped is a cluster with a group.
type grouped struct {
	*cluster
	log *ledger.Log[*group.State, group.Change]
}

const groupID = "consumers"

// newGrouped has a group with members and an offset, a checkpoint after those,
// and another offset.
func newGrouped(t *testing.T) *grouped {
	g := &grouped{newCluster(t), ledger.New(group.Ledger(group.Of(groupID)), group.New())}
	g.append(&group.Lead{Epoch: epoch, Leader: leader})
	info := &group.Info{Type: "consumer", Generation: 1, Protocol: "range", Leader: "m", Members: []group.Member{{ID: "m"}}}
	g.update(group.GroupUpdate{ID: groupID, Set: info, Commit: []group.Committed{g.offset(0, 5)}})
	g.save(g.log.Checkpoint())
	gone := g.offset(77, 1)
	gone.Topic += 100 // of a topic that is gone
	g.update(group.GroupUpdate{ID: groupID, Commit: []group.Committed{g.offset(0, 6), gone}})
	return g
}

func (g *grouped) append(b group.Body) group.Change {
	g.t.Helper()
	return propose(g.cluster, g.log, b.Kind(), b.Encode())
}

func (g *grouped) update(u group.GroupUpdate) {
	g.t.Helper()
	c := g.append(&group.Update{Epoch: epoch, Writer: leader, Groups: []group.GroupUpdate{u}})
	if c.Void != "" {
		g.t.Fatal(c.Void)
	}
}

func (g *grouped) offset(partition int32, at int64) group.Committed {
	tp := group.TopicPartition{Topic: g.partition().Number, Partition: partition}
	return group.Committed{TopicPartition: tp, Offset: at, Epoch: -1, ExpireMS: -1}
}

func TestGroupsAreClean(t *testing.T) {
	g := newGrouped(t)
	want := Ledger{Name: g.log.Name(), Last: 3, Checkpoint: 2}
	for ; want.Floor <= 2; want.Floor++ {
		if want.Floor > 0 {
			if err := g.coord.Trim(t.Context(), g.log.Name(), want.Floor); err != nil {
				t.Fatal(err)
			}
		}
		r := g.check()
		if len(r.Problems) > 0 || r.Groups != 1 || r.Offsets != 2 || !slices.Contains(r.Ledgers, want) {
			t.Errorf("floor %d: %+v", want.Floor, r)
		}
	}
}

func TestGroupProblems(t *testing.T) {
	tests := []struct {
		name   string
		damage func(g *grouped)
		where  string
		what   string
	}{
		{"a void entry", func(g *grouped) {
			g.append(&group.Update{Epoch: epoch, Writer: leader + 1})
		}, "ledger group-", "entry 4 is void: by 0000000000000008"},
		{"an entry of another history", func(g *grouped) {
			f := ledger.Frame{Kind: group.KindLead, Prev: ledger.Hash{1}, Body: (&group.Lead{Epoch: 9}).Encode()}
			e := coordinator.Entry{Seq: 4, Nonce: coordinator.Nonce{0xff}, Data: f.Encode()}
			if err := g.coord.Append(g.t.Context(), g.log.Name(), e); err != nil {
				g.t.Fatal(err)
			}
		}, "ledger group-", "entry 4 follows one of hash 01000000"},
		{"a checkpoint that folds to something else", func(g *grouped) {
			other := ledger.New(g.log.Name(), group.New())
			other.Replace(group.New(), g.log.Position())
			g.save(other.Checkpoint())
		}, "ledger group-", `something else than all its entries: row "\x00"`},
		{"a checkpoint without an offset", func(g *grouped) {
			forged := group.New()
			for key, value := range g.log.Fold().Rows {
				if err := forged.Restore(key, value); err != nil {
					g.t.Fatal(err)
				}
			}
			known, _ := forged.Group(groupID)
			delete(known.Offsets, g.offset(0, 0).TopicPartition)
			other := ledger.New(g.log.Name(), forged)
			other.Replace(forged, g.log.Position())
			g.save(other.Checkpoint())
		}, "ledger group-", `something else than all its entries: row "\x01consumers"`},
		{"trimmed past its checkpoint", func(g *grouped) {
			if err := g.coord.Trim(g.t.Context(), g.log.Name(), 3); err != nil {
				g.t.Fatal(err)
			}
		}, "ledger group-", "trimmed through 3"},
		{"a group in the wrong shard", func(g *grouped) {
			wrong := ledger.New(group.Ledger((group.Of(groupID)+1)%group.Count), group.New())
			for _, b := range []group.Body{
				&group.Lead{Epoch: 1, Leader: leader},
				&group.Update{Epoch: 1, Writer: leader, Groups: []group.GroupUpdate{{ID: groupID, Set: &group.Info{}}}},
			} {
				propose(g.cluster, wrong, b.Kind(), b.Encode())
			}
		}, `group "consumers"`, "it belongs into group-"},
		{"an offset of a partition that never was", func(g *grouped) {
			g.update(group.GroupUpdate{ID: groupID, Commit: []group.Committed{g.offset(1, 5), g.offset(9, 5)}})
		}, `group "consumers"`, "an offset of partition 9 of topic t"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGrouped(t)
			tt.damage(g)
			r := g.check()
			if !slices.ContainsFunc(r.Problems, func(p Problem) bool {
				return strings.Contains(p.Where, tt.where) && strings.Contains(p.What, tt.what)
			}) {
				t.Errorf("no problem at %q that says %q among %v", tt.where, tt.what, r.Problems)
			}
		})
	}
}
