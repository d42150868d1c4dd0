package sim

import (
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

// A parcel is a write on its way.
type parcel struct {
	write *write
	conn  int
	bytes []byte
}

func (p *producer) begin() { p.guide.refresh(p.step) }

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

// send makes a batch and sends it.
func (p *producer) send() {
	w := &write{producer: p.name, partition: p.partitions[p.dice.below(len(p.partitions))], acks: p.acks}
	for range 1 + p.dice.below(p.maxRecords) {
		p.made++
		w.records = append(w.records, recordID(p.number<<32|p.made))
	}
	p.history.writes = append(p.history.writes, w)
	p.open++
	p.try(&parcel{write: w, conn: p.dice.below(p.conns), bytes: encodeBatch(w.records, p.world.now, p.dice)})
}

func (p *producer) try(x *parcel) {
	w := x.write
	host, ok := p.guide.leaders[w.partition]
	if !ok || p.version >= 13 && p.guide.ids[w.partition.topic] == [16]byte{} {
		p.guide.refresh(func() { p.again(x) })
		return
	}
	to := p.guide.to(host, 1+x.conn)
	if w.tries++; w.tries == 1 {
		w.sent = p.history.tick()
	}
	p.world.tracef("%s sends %d records, first %x, to %s, try %d", p.name, len(w.records), w.records[0], w.partition, w.tries)
	to.ask(p.message(x), p.acks != 0, func(resp kmsg.Response, err error) {
		if p.acks == 0 {
			p.open--
			return
		}
		if err != nil {
			p.world.tracef("%s: produce %x to %s: %v", p.name, w.records[0], w.partition, err)
			p.failed(x)
			return
		}
		p.answered(x, resp.(*kmsg.ProduceResponse))
	})
	if w.tries == 1 {
		w.conn = to.client + " " + strconv.FormatUint(to.round, 10)
	}
}

func (p *producer) message(x *parcel) kmsg.Request {
	msg := kmsg.NewPtrProduceRequest()
	msg.Version, msg.Acks, msg.TimeoutMillis = p.version, p.acks, 6000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = x.write.partition.topic, p.guide.ids[x.write.partition.topic]
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = x.write.partition.number, x.bytes
	t.Partitions = append(t.Partitions, part)
	msg.Topics = append(msg.Topics, t)
	return msg
}

func (p *producer) answered(x *parcel, resp *kmsg.ProduceResponse) {
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		p.world.failf("%s: produce response for other partitions than asked", p.name)
		return
	}
	part := resp.Topics[0].Partitions[0]
	if p.world.refused(p.name, part.ErrorCode, "produce %x to %s", x.write.records[0], x.write.partition) {
		p.failed(x)
		return
	}
	w, now := x.write, p.history.tick()
	w.acked, w.base = now, part.BaseOffset
	p.lastAck = now
	p.open--
	p.world.tracef("%s is acknowledged %x at %s offset %d", p.name, w.records[0], w.partition, w.base)
	p.history.sights = append(p.history.sights, sight{partition: w.partition, sent: w.sent, got: now, start: part.LogStartOffset, high: -1})
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
	p.world.after(p.dice.duration(50*time.Millisecond, 200*time.Millisecond), func() { p.try(x) })
}
