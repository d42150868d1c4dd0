package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stream is what one producer writes to one partition, numbered from 0.
type stream struct {
	producer  int
	topic     string
	partition int32
}

// unknown is the offset of a record whose acknowledgement nobody has seen.
const unknown = -1

// journal is what producers know of their records.
type journal struct {
	pace  time.Duration   // of each producer
	exact map[string]bool // topics all of whose producers are idempotent: no gaps either

	mu      sync.Mutex
	offsets map[stream][]int64 // by number
	acked   map[int]int        // records, by producer
	refused []error            // of idempotent producers, which try for ever
}

func newJournal(pace time.Duration, exact ...string) *journal {
	j := &journal{pace: pace, exact: map[string]bool{}, offsets: map[stream][]int64{}, acked: map[int]int{}}
	for _, topic := range exact {
		j.exact[topic] = true
	}
	return j
}

// send takes down that a stream's next record is about to be sent.
func (j *journal) send(to stream) (r *kgo.Record, number int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.offsets[to])
	j.offsets[to] = append(j.offsets[to], unknown)
	return &kgo.Record{Topic: to.topic, Partition: to.partition, Value: fmt.Appendf(nil, "%d/%d/%d", to.partition, to.producer, n)}, n
}

// outcome takes down what became of a record.
func (j *journal) outcome(to stream, number int, offset int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.offsets[to][number] = offset
		j.acked[to.producer]++
	case j.exact[to.topic]:
		j.refused = append(j.refused, fmt.Errorf("record %d of %v: %w", number, to, err))
	}
}

// sent counts a topic's records.
func (j *journal) sent(topic string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for of, offsets := range j.offsets {
		if of.topic == topic {
			n += len(offsets)
		}
	}
	return n
}

// progress is how many records of each producer are acknowledged.
func (j *journal) progress() map[int]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.acked)
}

// soonAgain makes a client try again soon, and for as long as a server is away.
var soonAgain = []kgo.Opt{
	kgo.AlwaysRetryEOF(), kgo.RequestRetries(math.MaxInt32), kgo.MetadataMinAge(50 * time.Millisecond),
	kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
}

// source is a producer that writes through kills of the server.
type source struct {
	cl   *kgo.Client
	stop context.CancelFunc
	done chan struct{}
}

// produce writes a record to each stream, again and again.
func (j *journal) produce(t *testing.T, s *server, to []stream, opts ...kgo.Opt) *source {
	t.Helper()
	cl, err := kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.SeedBrokers(s.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(2 * time.Millisecond), kgo.MaxBufferedRecords(500),
	}, soonAgain, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	src := &source{cl: cl, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(src.done)
		pace := time.NewTicker(j.pace)
		defer pace.Stop()
		for ctx.Err() == nil {
			for _, to := range to {
				r, number := j.send(to)
				cl.Produce(t.Context(), r, func(r *kgo.Record, err error) { j.outcome(to, number, r.Offset, err) })
			}
			<-pace.C
		}
	}()
	t.Cleanup(func() {
		src.stop()
		cl.Close()
		<-src.done
	})
	return src
}

// end stops a producer once all of its records have an outcome.
func (src *source) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	src.stop()
	select {
	case <-src.done:
	case <-ctx.Done():
		t.Fatal("a producer does not come to its end")
	}
	if err := src.cl.Flush(ctx); err != nil {
		t.Fatalf("a producer does not come to its end: %v", err)
	}
}

// bounds of a partition's offsets.
type bounds struct{ start, end int64 }

func (s *server) bounds(t *testing.T, topic string) (of []bounds) {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	var starts, ends kadm.ListedOffsets
	eventually(t, "offsets can be listed", func() bool { // shards may be on their way to another agent
		var err, err2 error
		starts, err = admin.ListStartOffsets(t.Context(), topic)
		ends, err2 = admin.ListEndOffsets(t.Context(), topic)
		return err == nil && err2 == nil
	})
	of = make([]bounds, len(starts[topic]))
	starts.Each(func(o kadm.ListedOffset) { of[o.Partition].start = o.Offset })
	ends.Each(func(o kadm.ListedOffset) { of[o.Partition].end = o.Offset })
	return of
}

// verify reads a topic from its start. What was acknowledged by now is at its
// offset, all is there once, in each producer's order, and no offset is missing.
func (j *journal) verify(t *testing.T, s *server, topic string) {
	t.Helper()
	j.mu.Lock()
	known := map[stream][]int64{}
	for of, offsets := range j.offsets {
		known[of] = slices.Clone(offsets)
	}
	j.mu.Unlock()
	for p, b := range s.bounds(t, topic) {
		var records []*kgo.Record
		if b.end > b.start {
			records = s.read(t, topic, int32(p), b.start, int(b.end-b.start))
		}
		v := verifier{j: j, known: known, found: map[stream]int{}, next: map[stream]int{}, offset: b.start, whole: b.start == 0}
		for _, r := range records {
			if err := v.see(r); err != nil {
				t.Fatalf("%s-%d, offset %d: %v", topic, p, r.Offset, err)
			}
		}
		for of, offsets := range known {
			if of.topic == topic && of.partition == int32(p) {
				if want := countFrom(offsets, b.start); v.found[of] != want {
					t.Fatalf("%s-%d: of %d records of producer %d that were acknowledged, from offset %d on, %d are there",
						topic, p, want, of.producer, b.start, v.found[of])
				}
			}
		}
	}
}

// countFrom counts acknowledged offsets.
func countFrom(offsets []int64, start int64) (n int) {
	for _, at := range offsets {
		if at != unknown && at >= start {
			n++
		}
	}
	return n
}

// verifier goes through the records of a partition.
type verifier struct {
	j      *journal
	known  map[stream][]int64 // what was acknowledged when it began
	found  map[stream]int     // how much of that is there
	next   map[stream]int     // number
	offset int64              // of the next record
	whole  bool               // from offset 0 on
}

func (v *verifier) see(r *kgo.Record) error {
	of := stream{topic: r.Topic}
	var number int
	if _, err := fmt.Sscanf(string(r.Value), "%d/%d/%d", &of.partition, &of.producer, &number); err != nil || of.partition != r.Partition {
		return fmt.Errorf("nobody sent %q here", r.Value)
	}
	v.j.mu.Lock()
	sent := len(v.j.offsets[of])
	v.j.mu.Unlock()
	next, known := v.next[of], v.known[of]
	switch _, seen := v.next[of]; {
	case number >= sent:
		return fmt.Errorf("%q was not sent yet", r.Value)
	case r.Offset != v.offset:
		return fmt.Errorf("it follows offset %d", v.offset-1)
	case number < next:
		return fmt.Errorf("%q comes after record %d", r.Value, next-1)
	case number > next && v.j.exact[of.topic] && (seen || v.whole):
		return fmt.Errorf("%q comes where record %d should be", r.Value, next)
	case number < len(known) && known[number] != unknown:
		if known[number] != r.Offset {
			return fmt.Errorf("%q was acknowledged at %d", r.Value, known[number])
		}
		v.found[of]++
	}
	v.next[of] = number + 1
	v.offset++
	return nil
}
