// Package group is the ledger of a group shard: its entries, the fold that
// they add up to (State), and the coordinator of its groups (Machine), which
// speaks the classic group protocol: who is a member, in which generation,
// with which assignment, and which offsets a group has committed.
//
// Both are pure. The fold reads no clock and no other ledger, and no entry
// makes it fail: one that breaks the rules is void, and an alarm. The Machine
// is given the time with every event, answers a request only once what it says
// is folded, and asks for entries by Propose.
//
// A group of the classic protocol (classic) goes through its phases by what is
// folded; what it has decided meanwhile is its change, which Propose takes.
// Groups of KIP-848 will stand beside it in the Machine, with kinds of entries
// of their own, deadlines and changes being the same. Offsets that a transaction
// commits will wait in the fold, beside a group's Offsets, until its end is
// folded: Fetch.Stable is there for them, and neither expiry nor deletion may
// pass them by.
//
// Nothing here starts a goroutine; a State and its Machine belong to one
// goroutine. docs/formats/group.md has the bytes.
package group

import (
	"fmt"
	"hash/fnv"

	"github.com/siltstone-io/siltstone"
)

// Count is how many group shards a cluster has.
const Count = 16

// Of is the shard that rules a group: each has an equal range of slots. The
// slot is FNV-1a (64 bit) of the id, its halves XORed, modulo siltstone.Slots.
func Of(id string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	sum := h.Sum64()
	return int((sum ^ sum>>32) % siltstone.Slots / (siltstone.Slots / Count))
}

// Ledger names a shard's ledger.
func Ledger(shard int) string { return fmt.Sprintf("group-%02d", shard) }
