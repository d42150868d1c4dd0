package group

import (
	"fmt"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// goldenBodies has an entry of each kind, with each part of its format.
var goldenBodies = goldenEntries()

func goldenEntries() []Body {
	instance, none := "worker-1", ""
	return []Body{
		leadAlice,
		update(
			GroupUpdate{
				ID: "consumers",
				Set: with(info(3, "m-1", "m-2", "m-3"), func(i *Info) {
					i.Members[1].Instance, i.Members[1].ClientID, i.Members[1].ClientHost = &instance, "other", "/10.0.0.2"
					i.Members[2].Instance, i.Members[2].SessionMS, i.Members[2].Subscription = &none, 10_000, nil
					i.Leader = "m-2"
				}),
				Commit: []Committed{
					{at(7, 0), 1000, 4, "", 1_800_000_000_000, -1},
					{at(7, 1), 12, -1, "note", 1_800_000_000_005, 1_800_000_900_000},
					{at(3, 200), 1 << 40, 0, "", 1_800_000_000_001, -1},
				},
			},
			GroupUpdate{ID: "offsets-only", Commit: []Committed{{at(1<<32-1, 1<<31-1), 1<<63 - 1, -9, "", -2, 0}}},
			GroupUpdate{ID: "", Set: &Info{}},
			GroupUpdate{ID: "gone", Set: info(1)},
			GroupUpdate{ID: "joining", Set: with(info(1<<31-1, "m-1"), func(i *Info) { i.Type, i.Assigned, i.Members[0].Assignment = "connect", false, nil })},
		),
		update(
			GroupUpdate{ID: "gone", Delete: true},
			GroupUpdate{ID: "consumers", Forget: []TopicPartition{at(7, 1), at(8, 0)}, Commit: []Committed{{at(3, 7), 1, 1, "", 1_800_000_001_000, -1}}},
			GroupUpdate{ID: "joining", Delete: true, Set: info(0), Forget: []TopicPartition{at(1, 0)}, Commit: []Committed{offset(2, 0, 0)}},
		),
		&Lead{Epoch: 2},
		&Lead{Epoch: 5, Leader: bob},
	}
}

// goldenState has a row of each kind, with each part of its format.
func goldenState() *State { return folded(goldenBodies...) }

// folded is the state that bodies add up to, none of them void.
func folded(bodies ...Body) *State {
	s := New()
	for _, b := range bodies {
		if c, err := s.Apply(ledger.Entry{Kind: b.Kind(), Body: b.Encode()}); err != nil || c.Void != "" {
			panic(fmt.Sprintf("%T: %v, %s", b, err, c.Void))
		}
	}
	return s
}

func TestGoldenEntries(t *testing.T) { foldtest.GoldenEntries(t, goldenBodies, Decode) }

func TestGoldenCheckpoint(t *testing.T) { foldtest.GoldenCheckpoint(t, goldenState(), New()) }
