package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A producer writes batches to some partitions, as many at once as it may,
// at its pace.
type producer struct {
	guide      *guide
	world      *world
	history    *history
	name       string
	number     uint64
	dice       *dice
	partitions []partition
	acks       int16
	retries    bool
	version    int16
	conns      int
	inFlight   int
	pace       time.Duration
	maxRecords int

	made    uint64
	open    int // batches that are not decided
	stopped bool
	lastAck moment // of any acknowledgement
}

// A parcel is one batch on its way.
type parcel struct {
	*write
	line   int // which of the producer's connections takes it
	bytes  []byte
	flying bool   // sent, and not answered
	host   string // to which it was sent last
}

func (p *producer) begin() { p.guide.refresh(p.step) }

func (p *producer) stop() { p.stopped = true }

func (p *producer) decided() bool { return p.open == 0 }

func (p *producer) acknowledgedSince(m moment) bool { return p.acks == 0 || p.lastAck >= m }

// step sends a batch if there is room for one, and comes again.
func (p *producer) step() {
	if p.stopped {
		return
	}
	if p.open < p.inFlight {
		p.send()
	}
	p.world.after(p.dice.duration(p.pace/2, p.pace*3/2), p.step)
}

// send makes a batch for each of some partitions and sends them in one request.
func (p *producer) send() {
	line := p.dice.below(p.conns)
	first, n := p.dice.below(len(p.partitions)), p.dice.between(1, min(3, len(p.partitions)))
	var request []*parcel
	for i := range n {
		w := &write{producer: p.name, partition: p.partitions[(first+i)%len(p.partitions)], acks: p.acks, made: p.world.now.UnixMilli()}
		for range 1 + p.dice.below(p.maxRecords) {
			p.made++
			w.records = append(w.records, recordID(p.number<<32|p.made))
		}
		p.history.writes = append(p.history.writes, w)
		request = append(request, &parcel{write: w, line: line, bytes: encodeBatch(w.records, w.made, p.dice)})
	}
	p.open += n
	p.try(request)
}

// try sends parcels in one request; those whose leader is another, or not
// known, go by themselves.
func (p *producer) try(request []*parcel) {
	host := p.guide.leaders[request[0].partition]
	rest := slices.Clone(request)
	request = slices.DeleteFunc(slices.Clone(request), func(x *parcel) bool {
		return host == "" || p.guide.leaders[x.partition] != host
	})
	rest = slices.DeleteFunc(rest, func(x *parcel) bool { return slices.Contains(request, x) })
	for _, x := range rest {
		p.guide.refresh(func() { p.again(x) })
	}
	if len(request) == 0 {
		return
	}
	to := p.guide.to(host, 1+request[0].line)
	for _, x := range request {
		if x.tries++; x.tries == 1 {
			x.sent = p.history.tick()
		}
		p.world.tracef("%s sends %d records, first %x, to %s, try %d", p.name, len(x.records), x.records[0], x.partition, x.tries)
	}
	to.ask(produceRequest(p.version, p.acks, p.guide.ids, request...), p.acks != 0, func(resp kmsg.Response, err error) {
		switch {
		case p.acks == 0:
			p.open -= len(request)
		case err != nil:
			p.world.tracef("%s: produce %x: %v", p.name, request[0].records[0], err)
			for _, x := range request {
				p.failed(x)
			}
		default:
			p.guide.shares(request, resp.(*kmsg.ProduceResponse), p.settle)
		}
	})
	for _, x := range request {
		if x.tries == 1 {
			x.conn = to.client + " " + strconv.FormatUint(to.round, 10)
		}
	}
}

func produceRequest(version, acks int16, ids map[string][16]byte, request ...*parcel) kmsg.Request {
	msg := kmsg.NewPtrProduceRequest()
	msg.Version, msg.Acks, msg.TimeoutMillis = version, acks, 6000
	for _, x := range request {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = x.partition.number, x.bytes
		if n := len(msg.Topics); n == 0 || msg.Topics[n-1].Topic != x.partition.topic {
			t := kmsg.NewProduceRequestTopic()
			t.Topic, t.TopicID = x.partition.topic, ids[x.partition.topic]
			msg.Topics = append(msg.Topics, t)
		}
		t := &msg.Topics[len(msg.Topics)-1]
		t.Partitions = append(t.Partitions, part)
	}
	return msg
}

// shares settles each parcel of a request by its own part of the answer.
func (g *guide) shares(request []*parcel, resp *kmsg.ProduceResponse, settle func(*parcel, *kmsg.ProduceResponseTopicPartition)) {
	waiting := map[partition]*parcel{}
	for _, x := range request {
		waiting[x.partition] = x
	}
	for _, t := range resp.Topics {
		topic := t.Topic
		if resp.Version >= 13 {
			topic = g.names[t.TopicID]
		}
		for _, part := range t.Partitions {
			x := waiting[partition{topic, part.Partition}]
			if x == nil {
				g.world.failf("%s: an answer for %s/%d, which was not asked for", g.client, topic, part.Partition)
				continue
			}
			delete(waiting, x.partition)
			settle(x, &part)
		}
	}
	if len(waiting) > 0 {
		g.world.failf("%s: no answer for %d partitions", g.client, len(waiting))
	}
}

func (p *producer) settle(x *parcel, part *kmsg.ProduceResponseTopicPartition) {
	if p.world.refused(p.name, part.ErrorCode, "produce %x to %s", x.records[0], x.partition) {
		p.failed(x)
		return
	}
	x.acked, x.base = p.history.tick(), part.BaseOffset
	p.lastAck = x.acked
	p.open--
	p.world.tracef("%s is acknowledged %x at %s offset %d", p.name, x.records[0], x.partition, x.base)
	p.history.sights = append(p.history.sights, sight{partition: x.partition, sent: x.sent, got: x.acked, start: part.LogStartOffset, high: -1})
}

// failed sends a batch again, or gives it up: nobody knows whether it is written.
func (p *producer) failed(x *parcel) {
	if !p.retries {
		p.open--
		p.guide.refresh(func() {})
		return
	}
	p.guide.refresh(func() { p.again(x) })
}

func (p *producer) again(x *parcel) {
	p.world.after(p.dice.duration(50*time.Millisecond, 200*time.Millisecond), func() { p.try([]*parcel{x}) })
}
