package check

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// differentRows names the first row that two folds do not share.
func differentRows[F interface{ Rows(func(k, v []byte) bool) }](a, b F) string {
	nextA, stopA := iter.Pull2(a.Rows)
	defer stopA()
	nextB, stopB := iter.Pull2(b.Rows)
	defer stopB()
	for {
		keyA, valueA, okA := nextA()
		keyB, valueB, okB := nextB()
		switch {
		case !okA && !okB:
			return ""
		case okA != okB || !bytes.Equal(keyA, keyB):
			return fmt.Sprintf("row %q here, %q there", keyA, keyB)
		case !bytes.Equal(valueA, valueB):
			return fmt.Sprintf("row %q", keyA)
		}
	}
}

// differentShards leaves out producers and transactions: they come from
// objects as well as entries, and old objects may be gone. checkProducers
// compares producers with the objects that there are.
func differentShards(a, b *shard.State) string {
	if a.Epoch() != b.Epoch() || a.Leader() != b.Leader() || a.Sealed() != b.Sealed() || !slices.Equal(a.ISR(), b.ISR()) {
		return fmt.Sprintf("leader %s of epoch %d here, %s of %d there", a.Leader(), a.Epoch(), b.Leader(), b.Epoch())
	}
	inB := 0
	for range b.Partitions() {
		inB++
	}
	for p := range a.Partitions() {
		inB--
		q, ok := b.Partition(p.TP)
		if !ok || p.Number != q.Number || p.Next != q.Next || p.LogStart != q.LogStart ||
			!slices.Equal(p.Epochs, q.Epochs) || !slices.Equal(rangesOf(p), rangesOf(q)) {
			return fmt.Sprintf("partition %s", p.TP)
		}
	}
	if inB != 0 {
		return fmt.Sprintf("%d partitions fewer here", inB)
	}
	return ""
}

func rangesOf(p *shard.Partition) []shard.Range { return slices.Collect(p.Ranges(0)) }
