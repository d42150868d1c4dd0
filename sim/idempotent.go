package sim

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxInFlight is how many requests an idempotent producer has on its
// connection, and how many batches of a partition it sends before it knows
// what became of the first: as many as a server remembers.
const maxInFlight = 5

// An idempotent producer writes batches to some partitions, each again and
// with the same sequence until it is acknowledged (KIP-98). One that it gives
// up, for it has become old, ends the sequence: those after it have a new
// epoch, or a new id.
type idempotent struct {
	guide      *guide
	world      *world
	history    *history
	name       string
	number     uint64
	dice       *dice
	lanes      []*lane
	version    int16
	careful    bool          // sends a batch again by itself, as Java's does; otherwise with those after it
	delivery   time.Duration // after which it gives a batch up
	pace       time.Duration
	maxRecords int
	first      int32 // sequence of a partition's first batch

	id      int64 // -1 while it asks for one
	epoch   int16
	bumped  bool // epochs of an id after the first begin with sequence 0
	flying  int  // requests
	made    uint64
	open    int
	stopped bool
	lastAck moment
}

// A lane is a producer's way into one partition.
type lane struct {
	partition partition
	id        int64
	epoch     int16
	next      int32     // sequence
	queue     []*parcel // not decided, in the order in which they were made; those sent come first
	notBefore time.Time
}

func (p *idempotent) begin() {
	p.id = -1
	p.guide.refresh(func() { p.introduce(); p.step() })
}

func (p *idempotent) stop() { p.stopped = true }

func (p *idempotent) decided() bool { return p.open == 0 }

func (p *idempotent) acknowledgedSince(m moment) bool { return p.lastAck >= m }

// introduce asks for an id.
func (p *idempotent) introduce() {
	msg := kmsg.NewPtrInitProducerIDRequest()
	msg.Version = int16(p.dice.between(0, 5))
	msg.TransactionTimeoutMillis = math.MaxInt32
	p.guide.to(p.guide.hosts[0], 0).ask(msg, true, func(resp kmsg.Response, err error) {
		if err == nil {
			r := resp.(*kmsg.InitProducerIDResponse)
			if !p.world.refused(p.name, r.ErrorCode, "init producer id") {
				p.id, p.epoch, p.bumped = r.ProducerID, r.ProducerEpoch, false
				p.world.heard()
				p.history.ids = append(p.history.ids, producerID{p.id, p.epoch, p.name})
				p.world.tracef("%s is producer %d of epoch %d", p.name, p.id, p.epoch)
				p.pump()
				return
			}
		}
		p.world.after(p.dice.duration(50*time.Millisecond, 200*time.Millisecond), p.introduce)
	})
}

// renew ends all sequences: each partition goes on with another epoch or id
// once what it has sent is decided.
func (p *idempotent) renew() {
	if p.id < 0 {
		return
	}
	if p.dice.chance(0.5) {
		p.epoch, p.bumped = p.epoch+1, true
		p.world.tracef("%s goes on with epoch %d", p.name, p.epoch)
		return
	}
	p.id = -1
	p.introduce()
}

// step makes batches if there is room for them, and comes again.
func (p *idempotent) step() {
	if p.stopped {
		return
	}
	first, n := p.dice.below(len(p.lanes)), p.dice.between(1, min(3, len(p.lanes)))
	for i := range n {
		if l := p.lanes[(first+i)%len(p.lanes)]; len(l.queue) < maxInFlight {
			p.make(l)
		}
	}
	if p.dice.chance(0.005) {
		p.renew()
	}
	p.pump()
	p.world.after(p.dice.duration(p.pace/2, p.pace*3/2), p.step)
}

func (p *idempotent) make(l *lane) {
	w := &write{producer: p.name, partition: l.partition, acks: -1, made: p.world.now.UnixMilli()}
	for range 1 + p.dice.below(p.maxRecords) {
		p.made++
		w.records = append(w.records, recordID(p.number<<32|p.made))
	}
	p.history.writes = append(p.history.writes, w)
	l.queue = append(l.queue, &parcel{write: w, bytes: encodeBatch(w.records, w.made, p.dice)})
	p.open++
}

// pump sends all that may be sent now, the next of each lane in one request.
func (p *idempotent) pump() {
	for p.id >= 0 && p.flying < maxInFlight {
		var request []*parcel
		for _, l := range p.lanes {
			if x := p.due(l); x != nil && (len(request) == 0 || p.guide.leaders[x.partition] == p.guide.leaders[request[0].partition]) {
				request = append(request, x)
			}
		}
		if len(request) == 0 {
			return
		}
		p.send(request)
	}
}

// due is the batch of a lane that is to be sent next, if any may be.
func (p *idempotent) due(l *lane) *parcel {
	if p.world.now.Before(l.notBefore) {
		return nil
	}
	if len(l.queue) > 0 && p.world.now.Sub(time.UnixMilli(l.queue[0].made)) > p.delivery {
		p.giveUp(l)
	}
	i := slices.IndexFunc(l.queue, func(x *parcel) bool { return !x.flying })
	if p.id < 0 || i < 0 || i >= maxInFlight {
		return nil
	}
	if p.guide.leaders[l.partition] == "" {
		p.wait(l)
		return nil
	}
	// What is under way to an agent that led before comes first: a new leader
	// may know nothing of the producer, and take what comes (KIP-360).
	if slices.ContainsFunc(l.queue, func(x *parcel) bool { return x.flying && x.host != p.guide.leaders[l.partition] }) {
		return nil
	}
	fresh := l.queue[i].stamp == nil
	if p.careful && i > 0 && (!fresh || l.queue[0].tries > 1) {
		return nil
	}
	if fresh && (l.id != p.id || l.epoch != p.epoch) {
		if i > 0 {
			return nil
		}
		l.id, l.epoch, l.next = p.id, p.epoch, 0
		if !p.bumped {
			l.next = p.first
		}
	}
	return l.queue[i]
}

// wait keeps a lane back for a moment, and learns who leads it.
func (p *idempotent) wait(l *lane) {
	l.notBefore = p.world.now.Add(p.dice.duration(50*time.Millisecond, 200*time.Millisecond))
	p.guide.refresh(func() { p.world.notBefore(later(p.world.now, l.notBefore), p.pump) })
}

// giveUp ends a lane's sequence: what was sent is left to its fate, what was
// not follows with another epoch or id.
func (p *idempotent) giveUp(l *lane) {
	sent := 0
	for ; sent < len(l.queue) && l.queue[sent].stamp != nil; sent++ {
		l.queue[sent].abandoned = true
		p.world.tracef("%s gives up %x to %s", p.name, l.queue[sent].records[0], l.partition)
	}
	for _, x := range l.queue[sent:] {
		x.made = p.world.now.UnixMilli()
		x.bytes = encodeBatch(x.records, x.made, p.dice)
	}
	l.queue = slices.Delete(l.queue, 0, sent)
	if p.open -= sent; sent > 0 && l.id == p.id && l.epoch == p.epoch {
		p.renew()
	}
}

func (p *idempotent) laneOf(x *parcel) *lane {
	return p.lanes[slices.IndexFunc(p.lanes, func(l *lane) bool { return l.partition == x.partition })]
}

func (p *idempotent) send(request []*parcel) {
	host := p.guide.leaders[request[0].partition]
	to := p.guide.to(host, 1)
	sent := p.history.tick()
	for _, x := range request {
		x.host = host
		if l := p.laneOf(x); x.stamp == nil {
			x.sent = sent
			x.stamp = &stamp{l.id, l.epoch, l.next}
			x.stamp.onto(x.bytes)
			l.next = after(l.next, len(x.records))
		}
		x.tries++
		x.flying = true
		p.world.tracef("%s sends %d records, first %x, to %s, sequence %d of %d epoch %d, try %d",
			p.name, len(x.records), x.records[0], x.partition, x.stamp.sequence, x.stamp.id, x.stamp.epoch, x.tries)
	}
	p.flying++
	to.ask(produceRequest(p.version, -1, p.guide.ids, request...), true, func(resp kmsg.Response, err error) {
		p.flying--
		for _, x := range request {
			x.flying = false
		}
		if err != nil {
			p.world.tracef("%s: produce %x: %v", p.name, request[0].records[0], err)
			for _, x := range request {
				p.wait(p.laneOf(x))
			}
			return
		}
		p.guide.shares(request, resp.(*kmsg.ProduceResponse), func(x *parcel, part *kmsg.ProduceResponseTopicPartition) {
			p.settle(x, part, sent)
		})
		p.pump()
	})
	for _, x := range request {
		if x.tries == 1 {
			x.conn = to.client + " " + strconv.FormatUint(to.round, 10)
		}
	}
}

func (p *idempotent) settle(x *parcel, part *kmsg.ProduceResponseTopicPartition, sent moment) {
	l := p.laneOf(x)
	if p.world.refused(p.name, part.ErrorCode, "produce %x to %s", x.records[0], x.partition) {
		x.refusals = append(x.refusals, refusal{sent, part.ErrorCode})
		p.refused(l, x, part.ErrorCode)
		return
	}
	x.acked, x.base = p.history.tick(), part.BaseOffset
	p.lastAck = x.acked
	p.world.tracef("%s is acknowledged %x at %s offset %d", p.name, x.records[0], x.partition, x.base)
	p.history.sights = append(p.history.sights, sight{partition: x.partition, sent: x.sent, got: x.acked, start: part.LogStartOffset, high: -1})
	if x.tries > 1 {
		p.world.heard()
	}
	if i := slices.Index(l.queue, x); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		p.open--
	}
}

// refused goes on after an error: the batch is sent again, unless it cannot
// succeed; then its sequence ends.
func (p *idempotent) refused(l *lane, x *parcel, code int16) {
	if x.abandoned {
		return
	}
	switch code {
	case kerr.OutOfOrderSequenceNumber.Code:
		if l.queue[0] == x {
			p.giveUp(l)
		}
	case kerr.InvalidProducerEpoch.Code, kerr.UnknownProducerID.Code, kerr.ProducerFenced.Code:
		p.giveUp(l)
	}
	p.wait(l)
}

func (s *scenario) addIdempotents(d *dice) {
	for range d.between(0, 2) {
		s.addIdempotent(d)
	}
	if !s.calm && d.chance(0.3) {
		s.eraser = &eraser{
			guide: newGuide(s.world, "eraser", s.hosts), world: s.world, history: &s.history,
			dice: newDice(s.seed, "eraser", 0), partitions: s.parts,
		}
	}
}

func (s *scenario) addIdempotent(d *dice) {
	s.clients++
	name := "idempotent" + strconv.Itoa(s.clients)
	p := &idempotent{
		guide: newGuide(s.world, name, s.hosts), world: s.world, history: &s.history,
		name: name, number: uint64(s.clients), dice: newDice(s.seed, name, 0),
		version: [...]int16{3, 7, 8, 9, 12, 13}[d.below(6)], careful: d.chance(0.5),
		delivery: d.duration(time.Second, 20*time.Second),
		pace:     d.duration(10*time.Millisecond, 100*time.Millisecond), maxRecords: d.between(1, 10),
	}
	p.guide.timeout = d.duration(200*time.Millisecond, 4*time.Second)
	if d.chance(0.2) {
		p.first = math.MaxInt32 - int32(d.below(20))
	}
	if s.calm {
		p.pace, p.guide.timeout, p.delivery = p.pace*5, requestTimeout, time.Minute
	}
	for _, part := range s.some() {
		p.lanes = append(p.lanes, &lane{partition: part, id: -1})
	}
	s.producers = append(s.producers, p)
}
