package agent

import (
	"cmp"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// Who is to lead what is computed, from the agents that live, by each agent for
// itself: rendezvous hashing with bounded load. Agents whose views of who lives
// differ come to different results; nothing but the balance depends on it.

// A placement has, for each of some shards, the agents in the order in which
// they are to lead it. The first of each is nobody's first too often.
type placement [][]siltstone.Incarnation

// A placing is a kind of shards, placed apart from the others.
type placing struct {
	salt   uint64
	shards int
}

var (
	logPlacing   = placing{1, shard.Count}
	groupPlacing = placing{2, group.Count}
)

// of computes who is to lead the shards, of those who live.
func (k placing) of(live []siltstone.Incarnation) placement {
	plan := make(placement, k.shards)
	if len(live) == 0 {
		return plan
	}
	most := (k.shards + len(live) - 1) / len(live)
	load := map[siltstone.Incarnation]int{}
	for s := range plan {
		order := slices.Clone(live)
		score := func(i siltstone.Incarnation) uint64 { return mix(uint64(i) ^ mix(k.salt<<32|uint64(s))) }
		slices.SortFunc(order, func(a, b siltstone.Incarnation) int {
			return cmp.Or(cmp.Compare(score(a), score(b)), cmp.Compare(a, b))
		})
		first := slices.IndexFunc(order, func(i siltstone.Incarnation) bool { return load[i] < most })
		chosen := order[first]
		load[chosen]++
		copy(order[1:first+1], order[:first])
		order[0] = chosen
		plan[s] = order
	}
	return plan
}

// mix is a permutation of 64 bits in which every bit counts (Murmur3's finalizer).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
