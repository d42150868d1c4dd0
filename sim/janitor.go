package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A janitor makes topics that nobody reads, widens them, writes to them and
// deletes them, some at once under the same name again. It does not mind
// whether it succeeds.
type janitor struct {
	guide   *guide
	world   *world
	history *history
	dice    *dice
	round   int
	stopped bool
}

// janitorsTopic begins the names of its topics, of which there are so many.
const (
	janitorsTopic  = "scratch"
	janitorsTopics = 3
)

func (j *janitor) begin() { j.guide.refresh(j.next) }

// next does one thing, and comes again.
func (j *janitor) next() {
	if j.stopped {
		return
	}
	j.round++
	name := fmt.Sprintf("%s%d", janitorsTopic, j.dice.below(janitorsTopics))
	host := j.guide.first()
	then := func(resp kmsg.Response, err error) {
		j.world.tracef("janitor: %v", err)
		if err != nil {
			j.guide.turn++
		}
		j.world.after(j.dice.duration(20*time.Millisecond, time.Second), func() { j.guide.refresh(j.next) })
	}
	var msg kmsg.Request
	switch j.dice.below(5) {
	case 0:
		m := kmsg.NewPtrDeleteTopicsRequest()
		m.Version, m.TimeoutMillis = 6, 5000
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &name
		m.Topics = append(m.Topics, t)
		msg, then = m, j.deleting(name, then)
	case 1:
		m := kmsg.NewPtrCreatePartitionsRequest()
		m.Version, m.TimeoutMillis = 3, 5000
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, int32(j.dice.between(2, 6))
		m.Topics = append(m.Topics, t)
		msg = m
	case 2:
		m := kmsg.NewPtrCreateTopicsRequest()
		m.Version, m.TimeoutMillis = 7, 5000
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(j.dice.between(1, 4)), -1
		m.Topics = append(m.Topics, t)
		msg = m
	default:
		p := partition{name, int32(j.dice.below(4))}
		if at, known := j.guide.leaders[p]; known {
			host = at
		}
		x := &parcel{
			write: &write{partition: p},
			bytes: encodeBatch([]recordID{recordID(j.round)}, j.world.now.UnixMilli(), j.dice),
		}
		if j.dice.chance(0.5) { // idempotent, whatever the partition makes of the sequence
			stamp{id: 1<<40 + int64(j.dice.below(2)), sequence: int32(j.dice.below(3))}.onto(x.bytes)
		}
		msg = produceRequest(9, -1, map[string][16]byte{}, x)
	}
	j.guide.to(host, 1).ask(msg, true, then)
}

// deleting notes that the offsets of a topic may be lost.
func (j *janitor) deleting(topic string, then func(kmsg.Response, error)) func(kmsg.Response, error) {
	l := &loss{what: "delete " + topic, topic: topic, partition: -1, sent: j.history.tick()}
	j.history.groups.losses = append(j.history.groups.losses, l)
	return func(resp kmsg.Response, err error) {
		if err == nil {
			code := resp.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode
			l.got, l.acked, l.refused = j.history.tick(), code == 0, refusals[code]
		}
		then(resp, err)
	}
}
