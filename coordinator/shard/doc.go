// Package shard is the ledger of a log shard: its entries, and the fold that
// they add up to, which knows who leads, which partitions there are, and which
// object holds which offsets.
//
// The fold is pure and total: it reads no clock, no object and no other
// ledger, and no entry makes it fail. An entry that breaks the rules is void:
// it changes nothing, and its Change says why. No correct writer's entry is
// void, so a void entry is an alarm.
//
// Nothing here starts a goroutine; a State belongs to one goroutine.
// docs/formats/shard.md has the bytes.
package shard

import (
	"fmt"

	"github.com/siltstone-io/siltstone"
)

// Count is how many log shards a cluster has.
const Count = 16

// Of is the shard that rules a partition: each has an equal range of slots.
func Of(tp siltstone.TopicPartition) int {
	return int(tp.Slot()) / (siltstone.Slots / Count)
}

// Ledger names a shard's ledger.
func Ledger(shard int) string { return fmt.Sprintf("shard-%02d", shard) }
