package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// Producers is what this agent, which leads the partition, remembers of its
// idempotent producers, by their ids.
func (a *Agent) Producers(ctx context.Context, tp siltstone.TopicPartition) ([]siltstone.ProducerState, error) {
	op := &producersOp{tp: tp, done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		return nil, err
	}
	return op.found, op.err
}

// A producersOp asks the loop for a partition's producers.
type producersOp struct {
	tp    siltstone.TopicPartition
	done  chan struct{}
	found []siltstone.ProducerState
	err   error
}

func (op *producersOp) handle(c *core) {
	defer close(op.done)
	p, err := c.leading(op.tp)
	if err != nil {
		op.err = err
		return
	}
	known, _ := p.shard.fold().Partition(p.tp)
	for _, pr := range known.Producers {
		op.found = append(op.found, stateOf(pr))
	}
	slices.SortFunc(op.found, func(a, b siltstone.ProducerState) int { return cmp.Compare(a.ID, b.ID) })
}

func stateOf(pr *shard.Producer) siltstone.ProducerState {
	return siltstone.ProducerState{
		ID: pr.ID, Epoch: pr.Epoch, LastSequence: pr.LastSequence(), LastTimestamp: pr.LastTimestamp,
		CoordinatorEpoch: pr.CoordinatorEpoch, TxnStart: pr.TxnStart,
	}
}
