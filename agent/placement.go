package agent

import (
	"cmp"
	"slices"

	"github.com/siltstone-io/siltstone"
)

// Who is to lead what is computed, from the agents that live, by each agent for
// itself: rendezvous hashing with bounded load. Agents whose views of who lives
// differ come to different results; nothing but the balance depends on it.

// A placement has, for each of some shards, the agents in the order in which
// they are to lead it. The first of each is nobody's first too often.
type placement [][]siltstone.Incarnation

// place computes who is to lead so many shards. The salt keeps kinds of shards apart.
func place(live []siltstone.Incarnation, shards int, salt uint64) placement {
	plan := make(placement, shards)
	if len(live) == 0 {
		return plan
	}
	most := (shards + len(live) - 1) / len(live)
	load := map[siltstone.Incarnation]int{}
	for s := range plan {
		order := slices.Clone(live)
		score := func(i siltstone.Incarnation) uint64 { return mix(uint64(i) ^ mix(salt<<32|uint64(s))) }
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
