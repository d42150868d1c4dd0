package agent

import (
	"slices"

	"github.com/siltstone-io/siltstone"
)

// A partition is what the leader knows of one beyond the fold: what it has
// stamped and not flushed, and who waits.
type partition struct {
	tp    siltstone.TopicPartition
	shard *ledShard
	open  bool // the fold has it
	gone  bool // its topic is deleted: of what it had, nothing is left

	start   siltstone.Offset // log start
	flushed siltstone.Offset // the fold's next offset
	next    siltstone.Offset // where the next record goes
	// began is where the log ended when this agent's epoch began.
	began siltstone.Offset

	tail  tail
	live  map[int64]*liveProducer // by their ids; those with batches that are not flushed
	uncut int                     // the last so many batches of the tail are in no object yet
	dirty bool

	appends  []appendWait // in order of their ends
	parked   []parkedPart // wait for offsets
	fetchers []*fetchOp
	openers  []*changeOp // wait until it is open
	trims    []trimWait  // wait for a log start
	toTrim   bool        // stands in the shard's list
}

// high is the high watermark: alone, an agent acknowledges by flush only, so
// what is safe is what is flushed.
func (p *partition) high() siltstone.Offset { return p.flushed }

// room is how many offsets the leader may still give out: an unclean
// takeover must jump past all that it gave (docs/design.md, section 3).
func (p *partition) room() siltstone.Offset { return p.flushed + siltstone.UncleanJump - p.next }

// An appendWait is a part of an append that is answered once all below end is safe.
type appendWait struct {
	op   *appendOp
	part int
	end  siltstone.Offset
}

// await puts a wait where it belongs. Only one for a batch that was sent again
// is not the last.
func (p *partition) await(w appendWait) {
	i := len(p.appends)
	for i > 0 && p.appends[i-1].end > w.end {
		i--
	}
	p.appends = slices.Insert(p.appends, i, w)
}

// advance answers whom a higher high watermark answers.
func (p *partition) advance(c *core, visible int) {
	n := 0
	for n < len(p.appends) && p.appends[n].end <= p.high() {
		w := p.appends[n]
		w.op.decide(c, w.part, nil)
		p.appends[n] = appendWait{}
		n++
	}
	p.appends = p.appends[n:]
	if len(p.appends) == 0 {
		p.appends = nil
	}
	p.wake(c, visible)
}

// wake answers the readers for whom the bytes that became visible are enough.
func (p *partition) wake(c *core, visible int) {
	waiting := p.fetchers
	p.fetchers = nil
	for _, op := range waiting {
		if op.finished {
			continue
		}
		op.available += visible
		if op.available >= op.req.MinBytes {
			op.finish(c)
			continue
		}
		p.fetchers = append(p.fetchers, op)
	}
}

// answerOpeners lets go on who waits until the partition is open; or it never will be.
func (p *partition) answerOpeners() {
	for _, op := range p.openers {
		op.opened()
	}
	p.openers = nil
}

// fail gives up everything that is not flushed and answers all who wait.
func (p *partition) fail(c *core, err error) {
	for _, w := range p.appends {
		w.op.decide(c, w.part, err)
	}
	p.appends = nil
	for _, w := range p.parked {
		c.release(w.bytes)
		w.op.decide(c, w.part, err)
	}
	p.parked = nil
	p.failTrims(c, err)
	c.dropUnflushed(p)
	for _, op := range p.fetchers {
		if !op.finished {
			op.finish(c)
		}
	}
	p.fetchers = nil
}
