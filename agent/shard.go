package agent

import (
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// A ledShard is one shard as its leader, or who would lead it, keeps it.
type ledShard struct {
	id    int
	log   *ledger.Log[*shard.State, shard.Change]
	state shardState
	epoch siltstone.Epoch // in which it leads; from when its Lead is folded

	objects []*object    // cut and not committed here, in order of offsets
	parts   []*partition // of all topics, in the order in which they came
	toOpen  []*partition
	toEnd   []siltstone.TopicPartition // of deleted topics
	toTrim  []*partition               // whose log start is to move
	// trimLast: the last entry was a Trim for those; objects that are ready come
	// before the next.
	trimLast bool

	// unknown: the fold has partitions of topics that this agent does not know.
	// They are deleted if a reading of the cluster's ledger from now on does not
	// have them either.
	unknown bool

	// rowless: a Segment was folded whose producers this agent does not know. It is
	// read before this agent leads.
	rowless bool

	// partsGone: objects may hold parts of partitions that are gone.
	partsGone bool

	// inFlight has, for the proposal in flight, how many of objects it names.
	inFlight []int

	replicas  replication     // while this agent leads
	follows   *following      // the stream that it takes; nil: none
	heard     time.Time       // a replica of its leader, or had last; zero: it holds nothing that is not flushed
	tailEpoch siltstone.Epoch // in which what it holds and is not flushed was adopted, or stamped

	seated   seat
	unstored unstored // while this agent leads
}

// shardState is how far an agent is with a shard.
type shardState int8

const (
	absent     shardState = iota // never read
	loading                      // reads checkpoint and tail
	standing                     // has folded it, does not lead
	recovering                   // leads, and flushes first what it held as a replica
	serving                      // leads
	sealed                       // has sealed it: the agent is going
)

func newLedShard(id int) *ledShard {
	return &ledShard{id: id, log: ledger.New(shard.Ledger(id), shard.New())}
}

func (s *ledShard) fold() *shard.State { return s.log.Fold() }

func (s *ledShard) leads() bool { return s.state == serving }

// checkEpoch compares what a client believes with the epoch in office (KIP-320).
func (s *ledShard) checkEpoch(e siltstone.Epoch) error {
	switch {
	case e < 0 || e == s.epoch:
		return nil
	case e < s.epoch:
		return siltstone.ErrFencedEpoch
	}
	return siltstone.ErrUnknownEpoch
}

// inOffice says whether this agent leads, as far as it knows, be it that it does not serve yet.
func (s *ledShard) inOffice() bool { return s.state == serving || s.state == recovering }

// unflushed says whether there are records that are in no folded Segment.
func (s *ledShard) unflushed() bool {
	return len(s.objects) > 0 || slices.ContainsFunc(s.parts, func(p *partition) bool { return p.next > p.flushed })
}

// forgetGone takes the shares of partitions that are gone off the objects that
// are not committed. Nothing may be in flight: what the fold makes of an entry
// is compared with the objects as they were named in it.
func (s *ledShard) forgetGone() {
	if !s.partsGone {
		return
	}
	s.partsGone = false
	for _, o := range s.objects {
		o.parts = slices.DeleteFunc(o.parts, func(part objectPart) bool { return part.p.gone && part.p.shard == s })
	}
}

// partsOf is what an object holds for a shard.
func (o *object) partsOf(s *ledShard) []objectPart {
	from := slices.IndexFunc(o.parts, func(p objectPart) bool { return p.p.shard == s })
	if from < 0 {
		return nil
	}
	to := from
	for to < len(o.parts) && o.parts[to].p.shard == s {
		to++
	}
	return o.parts[from:to]
}
