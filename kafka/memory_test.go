package kafka

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// TestLengthOnly: who announces a large request and sends none of it, or a
// little, costs no more than a few times what came, and nobody else waits for
// what they announce.
func TestLengthOnly(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		head := binary.BigEndian.AppendUint32(nil, 100<<20)
		head = append(head, 0, 0, 0, 9, 0, 0, 0, 1)
		var waiting []*client
		took := allocated(func() {
			for i := range 20 {
				c := p.dial(t)
				some := append(slices.Clone(head), make([]byte, i*1000)...)
				if _, err := c.conn.Write(some); err != nil {
					t.Fatal(err)
				}
				waiting = append(waiting, c)
			}
			synctest.Wait()
		})
		if most := float64(20 * 2 * arriveTimes * arriveFirst); took > most {
			t.Errorf("%v bytes were allocated, want at most %v", took, most)
		}
		begin := time.Now()
		ask[*kmsg.ApiVersionsResponse](p.dial(t), 3, named("tests", "1"))
		synctest.Wait()
		if held := metric(f.server.metrics.held); held != 0 || time.Since(begin) != 0 {
			t.Errorf("%v bytes are held, and another waited %v", held, time.Since(begin))
		}
		for _, c := range waiting {
			closedAfter(c)
		}
		if got := time.Since(begin); got != 30*time.Second {
			t.Errorf("closed after %v, want 30s", got)
		}
		synctest.Wait()
		f.wantNothingArriving()
	})
}

// TestArrivalsShareMemory: where it is used up, one frame after the other
// arrives beside it.
func TestArrivalsShareMemory(t *testing.T) {
	small := limits(func(l *Limits) { l.FrameBytes, l.MemoryBytes = 300_000, 300_000 })
	inBubble(t, small, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		q := produce(topic, -1, oneBatch(t, batch.None, string(make([]byte, 200_000))))
		q.SetVersion(9)
		frame := formatter.AppendRequest(nil, q, 1)
		var all sync.WaitGroup
		for range 10 {
			c := p.dial(t)
			all.Go(func() { _, _ = c.conn.Write(frame) })
			all.Go(func() {
				b, err := c.frame()
				if err != nil {
					t.Error(err)
					return
				}
				wantNoError(t, parse(t, q, b, 1).(*kmsg.ProduceResponse))
			})
		}
		all.Wait()
		synctest.Wait()
		f.wantNothingArriving()
	})
}

func (f *fixture) wantNothingArriving() {
	f.t.Helper()
	of := &f.server.arrivals
	if !of.memory.TryAcquire(int64(f.server.limits.MemoryBytes/arrivalShare)) || !of.last.TryAcquire(1) {
		f.t.Error("memory for arrivals is still taken")
	}
}

// TestLongFrame: one that arrives in many steps is whole.
func TestLongFrame(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1, "max.message.bytes", "10000000")
	value := strings.Repeat("0123456789abcdef", 200_000)
	wantNoError(t, ask[*kmsg.ProduceResponse](f.dial(), 9, produce(topic, -1, oneBatch(t, batch.None, value))))
	if got := values(t, f.stored(topic.ID)[0]); got != value {
		t.Errorf("%d bytes arrived of %d, or others", len(got), len(value))
	}
}

// TestLargeAnswersShareMemory: an answer as large as the cluster is not built
// while there is no memory for it, and gives back what it took.
func TestLargeAnswersShareMemory(t *testing.T) {
	small := limits(func(l *Limits) { l.FrameBytes, l.MemoryBytes, l.Write = 500_000, 500_000, 5*time.Second })
	inBubble(t, small, func(t *testing.T, f *fixture, p *pipes) {
		f.create("t", 9_000)
		f.create("u", 9_000)
		q := kmsg.NewPtrMetadataRequest()
		q.SetVersion(12)
		deaf, other := p.dial(t), p.dial(t)
		deaf.send(q)
		synctest.Wait()
		begin := time.Now()
		if n := len(ask[*kmsg.MetadataResponse](other, 12, q).Topics[0].Partitions); n != 9_000 {
			t.Errorf("%d partitions", n)
		}
		if took := time.Since(begin); took != 5*time.Second { // when the deaf one is given up
			t.Errorf("answered after %v, want 5s", took)
		}
		synctest.Wait()
		if !f.server.answers.TryAcquire(500_000) || !f.server.building.TryAcquire(builtAtOnce) {
			t.Error("something is still taken")
		}
	})
}

// TestMemoryIsShared: requests beyond the memory for them wait, what comes after
// them is not read, and they go on when others are answered.
func TestMemoryIsShared(t *testing.T) {
	small := func(f *fixture, o *Options) {
		holding(f, o)
		o.Limits.FrameBytes, o.Limits.MemoryBytes = 100_000, 100_000
	}
	inBubble(t, small, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		q := produce(topic, -1, oneBatch(t, batch.None, string(make([]byte, 60_000))))
		q.SetVersion(9)
		first, second := p.dial(t), p.dial(t)
		first.send(q)
		synctest.Wait()
		sent := make(chan struct{})
		go func() { second.send(q); second.send(q); close(sent) }()
		synctest.Wait()
		select {
		case <-sent:
			t.Error("a third request was read, and there was no memory for the second")
		default:
		}
		if n := f.log.appended(); n != 1 {
			t.Errorf("%d requests reached the log, want 1", n)
		}
		close(f.log.hold)
		wantNoError(t, first.receive(q, 1).(*kmsg.ProduceResponse))
		wantNoError(t, second.receive(q, 1).(*kmsg.ProduceResponse))
		wantNoError(t, second.receive(q, 2).(*kmsg.ProduceResponse))
	})
}

// TestClientLeaves: a request whose client has gone is settled, and its memory
// given back, only when the log is done with it.
func TestClientLeaves(t *testing.T) {
	inBubble(t, holding, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		c := p.dial(t)
		q := produce(topic, -1, oneBatch(t, batch.None, "v"))
		q.SetVersion(9)
		c.send(q)
		synctest.Wait()
		c.conn.Close()
		synctest.Wait()
		if metric(f.server.metrics.held) == 0 {
			t.Error("the frame was given back while the log had it")
		}
		close(f.log.hold)
		synctest.Wait()
		if held := metric(f.server.metrics.held); held != 0 {
			t.Errorf("%v bytes are still held", held)
		}
		if open := metric(f.server.metrics.connections); open != 0 {
			t.Errorf("%v connections are open", open)
		}
	})
}
