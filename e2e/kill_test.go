package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What a kill -9 must show: producers and rate of the load, kills, and how many
// of those must fall between an upload and its entry.
const (
	producers = 4
	perTick   = 20   // records of one producer in 5 ms
	leastRate = 1000 // records a second
)

// history is what producers know of their records, by value. None was sent
// twice: an outcome that a client did not learn is left at that.
type history struct {
	mu     sync.Mutex
	sent   map[string]bool
	acked  map[string]place
	loaded time.Duration
}

type place struct {
	partition int32
	offset    int64
}

func (h *history) send(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[value] = true
}

func (h *history) acknowledge(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked[string(r.Value)] = place{r.Partition, r.Offset}
}

// TestKill kills the server under load, again and again, on one data folder.
func TestKill(t *testing.T) {
	kills, between := count(3, 20), count(1, 5)
	dir := filepath.Join(t.TempDir(), "data")
	h := &history{sent: map[string]bool{}, acked: map[string]place{}}
	s := start(t, dir)
	s.cli(t, "", "topic", "create", "t", "-p", fmt.Sprint(producers))
	orphans, torn, round := 0, 0, 0
	for ; round < kills || torn < between; round++ {
		if round == 10*kills {
			t.Fatalf("only %d of %d kills fell between an upload and its entry", torn, round)
		}
		load(t, s, h, round)
		r := check(t, dir)
		if len(r.Orphans) > orphans {
			torn++
		}
		orphans = len(r.Orphans)
		begin := time.Now()
		s = start(t, dir)
		if err := produceOne(t, s, h, round); err != nil {
			t.Fatalf("round %d: not writable again: %v", round, err)
		}
		if took := time.Since(begin); took > writableAgain(t, dir) {
			t.Errorf("round %d: writable again after %v", round, took)
		}
	}
	verify(t, s, h)
	s.stop(t)
	check(t, dir)
	rate := float64(len(h.acked)) / h.loaded.Seconds()
	t.Logf("%d kills, %d of them between an upload and its entry; %d records acknowledged (%.0f/s), %d not", round, torn, len(h.acked), rate, len(h.sent)-len(h.acked))
	if rate < leastRate {
		t.Errorf("a load of %.0f records a second is too little to tell", rate)
	}
}

// load writes with all producers, and kills the server at a random moment
// after the first acknowledgement.
func load(t *testing.T, s *server, h *history, round int) {
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for p := range int32(producers) {
		cl := s.franz(t, noRetries...)
		wg.Go(func() {
			defer cl.Close()
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				if n%perTick == 0 {
					<-pace.C
				}
				r := &kgo.Record{Topic: "t", Partition: p, Value: fmt.Appendf(nil, "%d/%d/%d", round, p, n)}
				h.send(string(r.Value))
				cl.Produce(ctx, r, func(r *kgo.Record, err error) {
					if err == nil {
						h.acknowledge(r)
						once.Do(func() { close(first) })
					}
				})
			}
		})
	}
	select {
	case <-first:
	case <-time.After(patience):
		t.Error("no acknowledgement")
	}
	begin := time.Now()
	<-time.After(100*time.Millisecond + rand.N(time.Duration(count(900, 4900))*time.Millisecond))
	s.kill()
	h.loaded += time.Since(begin)
	cancel()
	wg.Wait()
}

// noRetries: a record is sent once, and its outcome known or not. A bounded
// buffer makes the producers wait for acknowledgements.
var noRetries = []kgo.Opt{
	kgo.RecordRetries(0), kgo.RequestRetries(0), kgo.MaxBufferedRecords(500),
	kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordDeliveryTimeout(10 * time.Second),
}

func produceOne(t *testing.T, s *server, h *history, round int) error {
	r := &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "%d/after", round)}
	h.send(string(r.Value))
	if err := s.franz(t).ProduceSync(t.Context(), r).FirstErr(); err != nil {
		return err
	}
	h.acknowledge(r)
	return nil
}

// verify reads everything: what was acknowledged is at its offset, nothing is
// there twice, nothing that nobody sent, no offset is missing, and each
// producer's records are in the order that it sent them in.
func verify(t *testing.T, s *server, h *history) {
	t.Helper()
	ends := map[int32]int64{}
	for _, at := range h.acked {
		ends[at.partition] = max(ends[at.partition], at.offset+1)
	}
	cl := s.franz(t, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	found := map[string]place{}
	next := map[int32]int64{}
	for done := false; !done; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("at %v of %v: %v", next, ends, err)
		}
		for _, r := range fetches.Records() {
			value := string(r.Value)
			if other, twice := found[value]; twice {
				t.Fatalf("%s is at %v and at %d", value, other, r.Offset)
			}
			if !h.sent[value] {
				t.Fatalf("nobody sent %q, at %d-%d", value, r.Partition, r.Offset)
			}
			if r.Offset != next[r.Partition] {
				t.Fatalf("partition %d: offset %d follows %d", r.Partition, r.Offset, next[r.Partition]-1)
			}
			next[r.Partition]++
			found[value] = place{r.Partition, r.Offset}
		}
		done = true
		for p, end := range ends {
			done = done && next[p] >= end
		}
	}
	for value, at := range h.acked {
		if found[value] != at {
			t.Errorf("%s was acknowledged at %v, and is at %v", value, at, found[value])
		}
	}
	inOrder(t, found)
}

func inOrder(t *testing.T, found map[string]place) {
	t.Helper()
	type sender struct{ round, producer int }
	last := map[sender]map[int64]int{}
	for value, at := range found {
		var from sender
		var n int
		if _, err := fmt.Sscanf(value, "%d/%d/%d", &from.round, &from.producer, &n); err != nil {
			continue // a record between two rounds
		}
		if last[from] == nil {
			last[from] = map[int64]int{}
		}
		last[from][at.offset] = n
	}
	for from, byOffset := range last {
		before, at := -1, int64(-1)
		for _, offset := range slices.Sorted(maps.Keys(byOffset)) {
			if n := byOffset[offset]; n <= before {
				t.Errorf("producer %v: record %d at offset %d, record %d at %d", from, before, at, n, offset)
			}
			before, at = byOffset[offset], offset
		}
	}
}
