package agent

import (
	"context"

	"github.com/siltstone-io/siltstone"
)

// Sizes is how large partitions are, of those named the ones that this agent
// leads, or with a nil list all that it leads, in no order.
func (a *Agent) Sizes(ctx context.Context, named []siltstone.TopicPartition) ([]siltstone.PartitionSize, error) {
	op := &sizesOp{named: named, done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		return nil, err
	}
	return op.sizes, nil
}

// A sizesOp asks the loop for sizes.
type sizesOp struct {
	named []siltstone.TopicPartition
	sizes []siltstone.PartitionSize
	done  chan struct{}
}

func (op *sizesOp) handle(c *core) {
	defer close(op.done)
	if op.named == nil {
		op.sizes = make([]siltstone.PartitionSize, 0, len(c.parts))
		for _, s := range c.shards {
			for _, p := range s.parts {
				op.add(p)
			}
		}
	}
	for _, tp := range op.named {
		if p := c.parts[tp]; p != nil {
			op.add(p)
		}
	}
}

func (op *sizesOp) add(p *partition) {
	known, ok := p.shard.fold().Partition(p.tp)
	if !ok || !p.shard.leads() {
		return
	}
	size := siltstone.PartitionSize{Partition: p.tp, Stored: known.SizeBytes()}
	for i := p.tail.len() - 1; i >= 0 && p.tail.at(i).end() > p.flushed; i-- {
		size.Buffered += int64(p.tail.at(i).size)
	}
	op.sizes = append(op.sizes, size)
}
