package retry

import (
	"context"
	"sync"
	"time"
)

// A read that takes longer than nineteen of twenty of its kind is sent again,
// and the first answer wins: a store has slow moments that are of one
// connection, or one machine behind it. Hedges are a twentieth of all reads at
// most, so that a store that is slow for everybody is not asked twice.
const (
	hedgeShare  = 0.05
	hedgeBurst  = 5
	firstDelay  = time.Second // until latencies are known
	leastDelay  = 10 * time.Millisecond
	mostDelay   = 5 * time.Second
	smallBytes  = 1 << 20 // such reads are one kind, larger ones another
	delayRise   = 1.19    // per read that took longer than the delay
	delayFall   = 0.99    // per read that did not: nineteen of them outweigh one
	hedgeKinds  = 2
	kindOfSmall = 0
	kindOfLarge = 1
)

type hedges struct {
	mu     sync.Mutex
	tokens float64
	delay  [hedgeKinds]time.Duration // about the 95th percentile of latencies
}

func (h *hedges) reset() {
	h.tokens, h.delay = 1, [hedgeKinds]time.Duration{firstDelay, firstDelay}
}

func hedgeKind(sizeBytes int64) int {
	if sizeBytes <= smallBytes {
		return kindOfSmall
	}
	return kindOfLarge
}

// begin counts a read, and says after how long it may be sent again.
func (h *hedges) begin(kind int) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = min(h.tokens+hedgeShare, hedgeBurst)
	return h.delay[kind]
}

func (h *hedges) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens < 1 {
		return false
	}
	h.tokens--
	return true
}

// observe moves the delay towards the percentile.
func (h *hedges) observe(kind int, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := float64(h.delay[kind])
	if took > h.delay[kind] {
		d *= delayRise
	} else {
		d *= delayFall
	}
	h.delay[kind] = max(leastDelay, min(time.Duration(d), mostDelay))
}

type reply struct {
	data   []byte
	err    error
	second bool
}

// hedged is a Get, and a second one if the first is slow.
func (b *Bucket) hedged(ctx context.Context, key string, off, n int64) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the slower one
	kind := hedgeKind(wanted(off, n))
	start, replies := time.Now(), make(chan reply, 2)
	send := func(second bool) {
		data, err := b.inner.Get(ctx, key, off, n)
		replies <- reply{data, err, second}
	}
	slow := time.NewTimer(b.hedges.begin(kind))
	defer slow.Stop()
	go send(false)
	for waiting := 1; ; {
		select {
		case <-slow.C:
			if b.hedges.take() {
				b.metrics.hedges.Inc()
				waiting++
				go send(true)
			}
		case r := <-replies:
			waiting--
			if r.err != nil && !isAnswer(r.err) && waiting > 0 {
				continue // the other may fare better
			}
			if r.err == nil {
				b.hedges.observe(kind, time.Since(start))
			}
			if r.err == nil && r.second {
				b.metrics.hedgesWon.Inc()
			}
			return r.data, r.err
		}
	}
}
