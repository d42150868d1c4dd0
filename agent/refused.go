package agent

import (
	"errors"
	"math"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// A producer that nobody knows yet may begin with any sequence: what was known
// of it may have expired (KIP-360). So where the first of several batches under
// way is refused, as this agent does not lead the partition, or not any more, and
// it leads it when the second comes, the second would be taken, and the first be
// out of order for good. Such a second one is refused too, until the first has come again.

// refusals are batches of idempotent producers that were refused lately.
type refusals struct {
	of    map[refusedKey]refusal
	clear time.Time // when all that is old is forgotten
}

type refusedKey struct {
	partition siltstone.TopicPartition
	producer  int64
}

type refusal struct {
	epoch    int16
	sequence int32 // the first
	until    time.Time
}

const (
	// refusedTime is how long what a client had sent when its batch was refused
	// may be under way: by default it then takes the connection for dead
	// (request.timeout.ms).
	refusedTime = 30 * time.Second
	maxRefused  = 10_000
)

// noteRefused notes a batch that was refused, if it will be sent again.
func (c *core) noteRefused(req *siltstone.AppendPart, err error) {
	if len(req.Batches) == 0 || batch.ProducerID(req.Batches) < 0 || !errors.Is(err, siltstone.ErrNotLeader) && !errors.Is(err, siltstone.ErrUnknownPartition) {
		return
	}
	h, err := batch.ParseHeader(req.Batches)
	if err != nil {
		return
	}
	r := &c.refused
	if c.now.After(r.clear) {
		for key, old := range r.of {
			if c.now.After(old.until) {
				delete(r.of, key)
			}
		}
		r.clear = c.now.Add(refusedTime)
	}
	key := refusedKey{req.Partition, h.ProducerID}
	old, there := r.of[key]
	if there && old.epoch == h.ProducerEpoch && follows(h.BaseSequence, old.sequence) && c.now.Before(old.until) {
		return // the earliest counts, from when it was last refused
	}
	if r.of == nil {
		r.of = map[refusedKey]refusal{}
	}
	if there || len(r.of) < maxRefused {
		r.of[key] = refusal{h.ProducerEpoch, h.BaseSequence, c.now.Add(refusedTime)}
	}
}

// follows says whether a sequence comes after another: 0 follows the largest
// (KIP-98), so of two it is the one that is nearer in counting up.
func follows(a, b int32) bool {
	ahead := (a - b) & math.MaxInt32
	return ahead > 0 && ahead <= math.MaxInt32/2
}

// refusedBefore says whether a batch comes while an earlier one of its
// producer's, which was refused, has not come again.
func (c *core) refusedBefore(tp siltstone.TopicPartition, h batch.Header) bool {
	key := refusedKey{tp, h.ProducerID}
	r, ok := c.refused.of[key]
	if !ok {
		return false
	}
	if r.epoch == h.ProducerEpoch && follows(h.BaseSequence, r.sequence) && c.now.Before(r.until) {
		return true
	}
	delete(c.refused.of, key)
	return false
}
