package batch

import "github.com/siltstone-io/siltstone"

// Hole is a batch without records, from one offset to before another, no more
// than 2^31-1 of them. Kafka leaves such batches where compaction has removed all
// records (KAFKA-5443), so every client goes on after its last offset.
func Hole(base, end siltstone.Offset, epoch siltstone.Epoch) []byte {
	const none = -1
	h := Header{
		BaseOffset: base, Epoch: epoch, LastOffsetDelta: int32(min(end-base, 1<<31-1) - 1),
		BaseTimestamp: none, MaxTimestamp: none, ProducerID: none, ProducerEpoch: none, BaseSequence: none,
	}
	b, err := h.assemble(None, 0, nil)
	if err != nil {
		panic(err) // nothing is compressed
	}
	return b
}
