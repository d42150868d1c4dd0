// Package topictest has topics in memory, for tests of what is served of them.
// It starts nothing.
package topictest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// Topics is the cluster ledger's fold, without the ledger. All calls may be
// made at once.
type Topics struct {
	mu    sync.Mutex
	state *topic.State
	seq   coordinator.Seq
	down  error
}

// New has no topics.
func New() *Topics { return &Topics{state: topic.New()} }

// FailWith is what Change says from now on; nil: it works.
func (t *Topics) FailWith(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down = err
}

// Topics is the newest view.
func (t *Topics) Topics() *topic.View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.View()
}

// Change asks for a decision twice, and applies the second: as under the append
// rule, the first may come too late.
func (t *Topics) Change(_ context.Context, decide func(*topic.View) topic.Decision) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.down != nil {
		return t.down
	}
	decide(t.state.View())
	d := decide(t.state.View())
	if len(d.Body) == 0 {
		return nil
	}
	t.seq++
	change, err := t.state.Apply(ledger.Entry{Seq: t.seq, Kind: d.Kind, TimeMS: time.Now().UnixMilli(), Body: d.Body})
	if err != nil || change.Void != "" {
		return fmt.Errorf("%w: void: %s", err, change.Void)
	}
	return nil
}
