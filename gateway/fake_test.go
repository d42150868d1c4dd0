package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// fakeLog is a log in memory, of one leader at epoch 7, that is safe at once.
type fakeLog struct {
	mu         sync.Mutex
	partitions map[siltstone.TopicPartition]*fakePartition
	changed    chan struct{}                           // closed and made anew when something was appended
	fail       func(tp siltstone.TopicPartition) error // instead of an outcome
	refuse     error                                   // what Append says
	hold       chan struct{}                           // appends are decided once it is closed
	appends    []siltstone.AppendRequest
	fetches    int
	released   int
}

type fakePartition struct {
	batches     [][]byte
	start, next siltstone.Offset
}

func newFakeLog() *fakeLog {
	return &fakeLog{partitions: map[siltstone.TopicPartition]*fakePartition{}, changed: make(chan struct{})}
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
	if l.refuse != nil {
		return l.refuse
	}
	l.appends = append(l.appends, *r)
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
		part.Base, part.LogStart, part.RepeatedMS = p.next, p.start, -1
		l.put(p, part.Batches, 0)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// put appends a batch, and leaves a hole of some offsets before it.
func (l *fakeLog) put(p *fakePartition, b []byte, hole siltstone.Offset) {
	own := slices.Clone(b)
	h, err := batch.ParseHeader(own)
	if err != nil {
		panic(err)
	}
	batch.Stamp(own, p.next+hole, 7)
	p.batches = append(p.batches, own)
	p.next += hole + siltstone.Offset(h.LastOffsetDelta) + 1
}

func (l *fakeLog) Fetch(ctx context.Context, r *siltstone.FetchRequest) (*siltstone.FetchResult, error) {
	timer := time.NewTimer(time.Until(r.Deadline))
	defer timer.Stop()
	for expired := false; ; {
		l.mu.Lock()
		part := l.fetch(&r.Parts[0], r.MaxBytes)
		changed := l.changed
		enough := expired || part.Err != nil || len(part.Records) > 0
		if enough {
			l.fetches++
		}
		l.mu.Unlock()
		if enough {
			return &siltstone.FetchResult{Parts: []siltstone.FetchedPart{part}, Release: func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.released++
				for _, b := range part.Records {
					clear(b) // of a copy
				}
			}}, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			expired = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *fakeLog) fetch(want *siltstone.FetchPart, most int) siltstone.FetchedPart {
	p := l.partition(want.Partition)
	part := siltstone.FetchedPart{HighWatermark: p.next, LastStable: p.next, Start: p.start, DivergingEpoch: -1, DivergingEnd: -1}
	if l.fail != nil && l.fail(want.Partition) != nil {
		part.Err = l.fail(want.Partition)
		return part
	}
	if want.Offset < p.start || want.Offset > p.next {
		part.Err = siltstone.ErrOffsetOutOfRange
		return part
	}
	size := 0
	for _, b := range p.batches {
		h, err := batch.ParseHeader(b)
		if err != nil { // damaged on purpose
			part.Records = append(part.Records, slices.Clone(b))
			break
		}
		if h.BaseOffset+siltstone.Offset(h.LastOffsetDelta) < want.Offset {
			continue
		}
		if size > 0 && size+len(b) > most {
			break
		}
		size += len(b)
		part.Records = append(part.Records, slices.Clone(b))
	}
	return part
}

func (l *fakeLog) OffsetForTime(_ context.Context, tp siltstone.TopicPartition, at int64,
	_ siltstone.Epoch, _ siltstone.Isolation) (siltstone.TimedOffset, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.partition(tp)
	switch {
	case l.fail != nil && l.fail(tp) != nil:
		return siltstone.TimedOffset{}, l.fail(tp)
	case at == siltstone.TimeLatest:
		return siltstone.TimedOffset{Offset: p.next, Timestamp: -1, Epoch: 7}, nil
	case at == siltstone.TimeEarliest:
		return siltstone.TimedOffset{Offset: p.start, Timestamp: -1, Epoch: 7}, nil
	}
	for _, b := range p.batches {
		found, err := batch.Find(b, at, 0)
		if err != nil || found.Offset >= 0 {
			return found, err
		}
	}
	return siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}, nil
}
