package agent

import (
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// A partition is what the leader knows of one beyond the fold: what it has
// stamped and not flushed, and who waits.
type partition struct {
	tp    siltstone.TopicPartition
	shard *ledShard
	open  bool // the fold has it
	gone  bool // its topic is deleted: of what it had, nothing is left

	view     *topic.View // of which the next is
	minZones int         // that are to hold a record before replication makes it safe; 0: it never does

	start   siltstone.Offset // log start
	flushed siltstone.Offset // the fold's next offset
	next    siltstone.Offset // where the next record goes
	hw      siltstone.Offset // below it all is safe: flushed, or held by the ISR
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

// high is the high watermark. What was shown never goes back.
func (p *partition) high() siltstone.Offset { return p.hw }

// raise moves the high watermark up, and answers whom that answers.
func (p *partition) raise(c *core, to siltstone.Offset) {
	if to <= p.hw {
		return
	}
	visible := 0
	for i := p.tail.from(p.hw); i < p.tail.len() && p.tail.at(i).end() <= to; i++ {
		visible += int(p.tail.at(i).size)
	}
	p.hw = to
	p.advance(c, visible)
}

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
	p.refuse(c, err)
	c.dropUnflushed(p)
}

// refuse answers all who wait.
func (p *partition) refuse(c *core, err error) {
	for _, w := range p.appends {
		w.op.refuse(c, w.part, err)
	}
	p.appends = nil
	for _, w := range p.parked {
		c.release(w.bytes)
		w.op.refuse(c, w.part, err)
	}
	p.parked = nil
	p.failTrims(c, err)
	for _, op := range p.fetchers {
		if !op.finished {
			op.finish(c)
		}
	}
	p.fetchers = nil
}
