package sim

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// addRows gives a fold the producers of what entries added.
func (a *auditor) addRows(name string, changes []ledger.Change[shard.Change], fold *shard.State) {
	err := a.reader.AddRows(context.Background(), fold, changes, func(_ segment.ObjectID, err error) error { return err })
	if err != nil {
		a.failf("8: indexes for %s: %v", name, err)
	}
}

// sameProducers compares what two folds know of producers, and takes it out of
// both. Idle ones may be forgotten where a checkpoint was stored: of one that
// came back since, a fold that goes back to before that knows more.
func (a *auditor) sameProducers(name string, whole, loaded *shard.State) {
	now := time.Now().UnixMilli()
	whole.ForgetIdle(now, a.expiration)
	loaded.ForgetIdle(now, a.expiration)
	for p := range whole.Partitions() {
		q, ok := loaded.Partition(p.TP)
		if !ok {
			continue // the folds differ
		}
		same := len(p.Producers) == len(q.Producers)
		for id, pr := range p.Producers {
			qr := q.Producers[id]
			same = same && qr != nil && pr.Epoch == qr.Epoch && pr.LastTimestamp == qr.LastTimestamp && pr.TxnStart == qr.TxnStart && endsWith(pr.Batches(), qr.Batches())
		}
		if !same {
			a.failf("8: %s: of the producers of %s the checkpoint, the entries after it and their objects do not give what all give", name, p.TP)
		}
	}
	for _, s := range []*shard.State{whole, loaded} {
		s.ForgetIdle(math.MaxInt64, 0)
	}
}

// endsWith says that the last of some batches are those, at least one.
func endsWith(all, last []shard.ProducerBatch) bool {
	return len(last) > 0 && len(last) <= len(all) && slices.Equal(all[len(all)-len(last):], last)
}
