package kafka

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic/topictest"
)

// fakeGroups is a coordinator of all groups: what an agent drives, without the
// agent and its ledger. What is proposed is folded at once.
type fakeGroups struct {
	topics *topictest.Topics

	mu       sync.Mutex
	settings group.Settings
	fold     *group.State
	machine  *group.Machine
	seq      coordinator.Seq
	timer    *time.Timer
	asked    []group.Request // as they came
	down     error           // no outcome
	refused  error           // the outcome of all requests
	silent   bool            // no outcome, ever
}

func newFakeGroups(topics *topictest.Topics) *fakeGroups {
	g := &fakeGroups{topics: topics, fold: group.New(), settings: group.Settings{
		MinSessionMS: 6000, MaxSessionMS: 1_800_000, MaxMembers: 1000, MaxMetadataBytes: 4096,
		RetentionMS: 7 * 24 * 3600 * 1000, RetentionCheckMS: 600_000,
	}}
	g.elect()
	return g
}

// elect begins the next epoch, as a restart does.
func (g *fakeGroups) elect() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.machine != nil {
		g.machine.Stop(group.ErrNotCoordinator)
		g.answer()
	}
	const leader = 7
	g.apply(&group.Lead{Epoch: g.fold.Epoch() + 1, Leader: leader})
	g.machine = group.NewMachine(g.fold, group.Options{
		Epoch: g.fold.Epoch(), Writer: leader,
		Rand:     rand.New(rand.NewPCG(uint64(g.fold.Epoch()), 0)).Uint64,
		Settings: func() group.Settings { return g.settings },
		Topic: func(name string) (uint32, bool) {
			t, ok := g.topics.Topics().Topic(name)
			if !ok {
				return 0, false
			}
			return t.Number, true
		},
		Exists: func(tp group.TopicPartition) bool {
			t, ok := g.topics.Topics().TopicByNumber(tp.Topic)
			return ok && tp.Partition >= 0 && tp.Partition < t.Partitions
		},
	}, time.Now())
}

func (g *fakeGroups) apply(b group.Body) {
	g.seq++
	change, err := g.fold.Apply(ledger.Entry{Seq: g.seq, Kind: b.Kind(), TimeMS: time.Now().UnixMilli(), Body: b.Encode()})
	if err != nil || change.Void != "" {
		panic(fmt.Sprintf("void: %s, %v", change.Void, err))
	}
}

// drive folds what is decided, and comes again when something is due.
func (g *fakeGroups) drive() {
	g.answer()
	for u := g.machine.Propose(); u != nil; u = g.machine.Propose() {
		g.apply(u)
		g.machine.Folded(time.Now())
		g.answer()
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	if due := g.machine.Due(); !due.IsZero() {
		g.timer = time.AfterFunc(time.Until(due), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.machine.Tick(time.Now())
			g.drive()
		})
	}
}

func (g *fakeGroups) answer() {
	for _, r := range g.machine.Answered() {
		close(r.Common().Done)
	}
}

func (g *fakeGroups) Group(ctx context.Context, requests ...group.Request) error {
	if err := g.handle(requests); err != nil {
		return err
	}
	for _, r := range requests {
		select {
		case <-r.Common().Done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (g *fakeGroups) handle(requests []group.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, requests...)
	for _, r := range requests {
		r.Common().Done = make(chan struct{})
	}
	for _, r := range requests {
		switch {
		case g.down != nil:
			return g.down
		case g.refused != nil:
			r.Common().Err = g.refused
			close(r.Common().Done)
		case !g.silent:
			g.machine.Handle(r, time.Now())
		}
	}
	g.drive()
	return nil
}

func (g *fakeGroups) ListGroups(context.Context) ([]group.Listed, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down != nil {
		return nil, g.down
	}
	listed := g.machine.List()
	slices.SortFunc(listed, func(a, b group.Listed) int { return cmp.Compare(a.ID, b.ID) })
	return listed, g.refused
}

func (g *fakeGroups) set(change func(*fakeGroups)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

// last is the last request that was handed over.
func (g *fakeGroups) last() group.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[len(g.asked)-1]
}

// handed is how many requests were handed over.
func (g *fakeGroups) handed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

// close ends what is due in the background.
func (g *fakeGroups) close() {
	g.set(func(g *fakeGroups) {
		if g.timer != nil {
			g.timer.Stop()
		}
	})
}
