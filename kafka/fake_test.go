package kafka

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// fakeLog is a log in memory, of one leader at one epoch, that flushes at once.
type fakeLog struct {
	mu         sync.Mutex
	partitions map[siltstone.TopicPartition]*fakePartition
	changed    chan struct{} // closed and made anew when something was appended
	epoch      siltstone.Epoch

	hold       chan struct{}                           // appends are decided once it is closed; set before the start
	fail       func(tp siltstone.TopicPartition) error // instead of an outcome
	wanted     func() bool                             // of results
	repeatedMS int64                                   // appends repeat a batch at offset 5 of this time; 0: they do not
	released   int                                     // results given back
	fetches    []siltstone.FetchRequest                // as they came
	appends    int                                     // requests
}

type fakePartition struct {
	batches [][]byte
	next    siltstone.Offset
	start   siltstone.Offset
}

func newFakeLog() *fakeLog {
	return &fakeLog{partitions: map[siltstone.TopicPartition]*fakePartition{}, changed: make(chan struct{}), epoch: 7}
}

func (l *fakeLog) failWith(fail func(siltstone.TopicPartition) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fail
}

func (l *fakeLog) lastFetch() siltstone.FetchRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fetches[len(l.fetches)-1]
}

func (l *fakeLog) appended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appends
}

func (l *fakeLog) partition(tp siltstone.TopicPartition) *fakePartition {
	p, ok := l.partitions[tp]
	if !ok {
		p = &fakePartition{}
		l.partitions[tp] = p
	}
	return p
}

func (l *fakeLog) Append(_ context.Context, r *siltstone.AppendRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appends++
	if l.hold != nil {
		go func() {
			<-l.hold
			l.mu.Lock()
			defer l.mu.Unlock()
			l.append(r)
		}()
		return nil
	}
	l.append(r)
	return nil
}

func (l *fakeLog) append(r *siltstone.AppendRequest) {
	defer close(r.Done)
	for i := range r.Parts {
		part := &r.Parts[i]
		if l.fail != nil {
			if part.Err = l.fail(part.Partition); part.Err != nil {
				part.Base, part.LogStart = -1, -1
				continue
			}
		}
		p := l.partition(part.Partition)
		if l.repeatedMS > 0 {
			part.Base, part.LogStart, part.RepeatedMS = 5, p.start, l.repeatedMS
			continue
		}
		part.Base, part.LogStart, part.RepeatedMS = p.next, p.start, -1
		for b, err := range batch.All(part.Batches) {
			if err != nil {
				panic(err) // the door has checked it
			}
			own := slices.Clone(b)
			h, _ := batch.ParseHeader(own)
			batch.Stamp(own, p.next, l.epoch)
			p.batches = append(p.batches, own)
			p.next += siltstone.Offset(h.Records)
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *fakeLog) Fetch(ctx context.Context, r *siltstone.FetchRequest) (*siltstone.FetchResult, error) {
	l.mu.Lock()
	l.fetches = append(l.fetches, *r)
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(r.Deadline))
	defer timer.Stop()
	for expired := false; ; {
		l.mu.Lock()
		result, bytes, failed := l.fetch(r)
		changed := l.changed
		l.mu.Unlock()
		if failed || expired || bytes >= r.MinBytes {
			return result, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			expired = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *fakeLog) fetch(r *siltstone.FetchRequest) (result *siltstone.FetchResult, bytes int, failed bool) {
	result = &siltstone.FetchResult{Wanted: l.wanted, Release: func() {
		l.mu.Lock()
		l.released++
		l.mu.Unlock()
	}}
	for _, want := range r.Parts {
		part := siltstone.FetchedPart{HighWatermark: -1, LastStable: -1, Start: -1, DivergingEpoch: -1, DivergingEnd: -1}
		p := l.partition(want.Partition)
		switch {
		case l.fail != nil && l.fail(want.Partition) != nil:
			part.Err, part.HighWatermark, part.Start = l.fail(want.Partition), p.next, p.start
		case want.Epoch > l.epoch:
			part.Err = siltstone.ErrUnknownEpoch
		case want.Epoch >= 0 && want.Epoch < l.epoch:
			part.Err = siltstone.ErrFencedEpoch
		case want.Offset < p.start || want.Offset > p.next:
			part.Err = siltstone.ErrOffsetOutOfRange
		case want.LastEpoch > l.epoch:
			part.DivergingEpoch, part.DivergingEnd = l.epoch, p.next
			failed = true
			fallthrough
		default:
			part.HighWatermark, part.LastStable, part.Start = p.next, p.next, p.start
		}
		failed = failed || part.Err != nil
		if part.Err == nil && part.DivergingEpoch < 0 {
			size := 0
			for _, b := range p.batches {
				h, _ := batch.ParseHeader(b)
				if h.BaseOffset+siltstone.Offset(h.LastOffsetDelta) < want.Offset {
					continue
				}
				first := bytes == 0
				if !first && (size+len(b) > want.MaxBytes || bytes+len(b) > r.MaxBytes) {
					break
				}
				part.Records = append(part.Records, b)
				size, bytes = size+len(b), bytes+len(b)
			}
		}
		result.Parts = append(result.Parts, part)
	}
	return result, bytes, failed
}

func (l *fakeLog) OffsetForTime(_ context.Context, tp siltstone.TopicPartition, at int64,
	epoch siltstone.Epoch, _ siltstone.Isolation) (siltstone.TimedOffset, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.partition(tp)
	switch {
	case epoch > l.epoch:
		return siltstone.TimedOffset{}, siltstone.ErrUnknownEpoch
	case epoch >= 0 && epoch < l.epoch:
		return siltstone.TimedOffset{}, siltstone.ErrFencedEpoch
	case at == siltstone.TimeLatest:
		return siltstone.TimedOffset{Offset: p.next, Timestamp: -1, Epoch: l.epoch}, nil
	case at == siltstone.TimeEarliest:
		return siltstone.TimedOffset{Offset: p.start, Timestamp: -1, Epoch: l.epoch}, nil
	}
	found := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	for _, b := range p.batches {
		for r, err := range batch.Records(b, 0) {
			if err != nil {
				return found, err
			}
			if at == siltstone.TimeMaxTimestamp && r.Timestamp > found.Timestamp {
				found = siltstone.TimedOffset{Offset: r.Offset, Timestamp: r.Timestamp, Epoch: l.epoch}
			}
			if at >= 0 && r.Timestamp >= at {
				return siltstone.TimedOffset{Offset: r.Offset, Timestamp: r.Timestamp, Epoch: l.epoch}, nil
			}
		}
	}
	return found, nil
}

func (l *fakeLog) EpochEnd(_ context.Context, tp siltstone.TopicPartition, epoch, current siltstone.Epoch) (siltstone.EpochEnd, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case current > l.epoch:
		return siltstone.EpochEnd{}, siltstone.ErrUnknownEpoch
	case current >= 0 && current < l.epoch:
		return siltstone.EpochEnd{}, siltstone.ErrFencedEpoch
	case epoch < l.epoch:
		return siltstone.EpochEnd{Epoch: -1, End: -1}, nil
	}
	return siltstone.EpochEnd{Epoch: l.epoch, End: l.partition(tp).next}, nil
}

// fakeCluster has nodes 0 and 1. Node 0, the server, leads and coordinates
// everything that is not given to another.
type fakeCluster struct {
	mu           sync.Mutex
	info         ClusterInfo
	leaders      map[siltstone.TopicPartition]int32
	coordinators map[string]int32 // of groups; -1: nobody
	epoch        siltstone.Epoch
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{
		info: ClusterInfo{ID: "cluster-of-tests", Self: 0, Controller: 0, Nodes: []Node{
			{ID: 0, Host: "127.0.0.1", Port: 1}, {ID: 1, Host: "127.0.0.1", Port: 2, Rack: "zone-b"},
		}},
		leaders:      map[siltstone.TopicPartition]int32{},
		coordinators: map[string]int32{},
		epoch:        7,
	}
}

func (c *fakeCluster) Describe() ClusterInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

func (c *fakeCluster) Leader(tp siltstone.TopicPartition) (int32, siltstone.Epoch, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, given := c.leaders[tp]
	return id, c.epoch, !given || id >= 0
}

func (c *fakeCluster) Coordinator(group string) (int32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, given := c.coordinators[group]
	return id, !given || id >= 0
}

func (c *fakeCluster) set(change func(*fakeCluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// deadlineLog notes the deadline of the last append.
type deadlineLog struct {
	*fakeLog
	deadline *atomic.Int64 // ms
}

func (l deadlineLog) Append(ctx context.Context, r *siltstone.AppendRequest) error {
	l.deadline.Store(r.Deadline.UnixMilli())
	return l.fakeLog.Append(ctx, r)
}

// isolationLog notes the isolation of the last look for an offset.
type isolationLog struct {
	*fakeLog
	isolation *atomic.Int32
}

func (l isolationLog) OffsetForTime(ctx context.Context, tp siltstone.TopicPartition, at int64,
	epoch siltstone.Epoch, isolation siltstone.Isolation) (siltstone.TimedOffset, error) {
	l.isolation.Store(int32(isolation))
	return l.fakeLog.OffsetForTime(ctx, tp, at, epoch, isolation)
}
