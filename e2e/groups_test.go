package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ending is a way in which a server ends.
type ending struct {
	name string
	end  func(*server, *testing.T)
}

// restarts are followed by a start on the same folder and address.
var restarts = []ending{
	{"a stop", (*server).stop},
	{"a kill", func(s *server, _ *testing.T) { s.kill() }},
}

// again starts a server that has ended.
func (s *server) again(t *testing.T) *server {
	t.Helper()
	return startAt(t, s.dir, s.kafka)
}

// team is a group of members that read one topic. Each commits what it has
// polled before it polls again or gives a partition up.
type team struct {
	s       *server
	topic   string
	opts    []kgo.Opt
	members []*teammate

	mu        sync.Mutex
	read      map[string]int  // how often a value was read
	committed map[int32]int64 // next offset, once the commit is acknowledged
	faults    []string
	moved     int // partitions that were assigned, revoked or lost
}

type teammate struct {
	cl    *kgo.Client
	stop  context.CancelFunc
	done  chan struct{}
	owned map[int32]bool // with the team's lock
}

func newTeam(s *server, topic string, opts ...kgo.Opt) *team {
	return &team{s: s, topic: topic, opts: opts, read: map[string]int{}, committed: map[int32]int64{}}
}

// join adds a member, which reads until it leaves or the test ends.
func (g *team) join(t *testing.T, opts ...kgo.Opt) *teammate {
	t.Helper()
	m := &teammate{done: make(chan struct{}), owned: map[int32]bool{}}
	move := func(owned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, p := range parts[g.topic] {
				m.owned[p] = owned
				g.moved++
			}
		}
	}
	var err error
	m.cl, err = kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.SeedBrokers(g.s.kafka), kgo.ConsumerGroup(g.topic), kgo.ConsumeTopics(g.topic), kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.AlwaysRetryEOF(), // a server that restarts closes connections
		kgo.Dialer(dialPatiently(t.Context())),
		kgo.OnPartitionsAssigned(move(true)), kgo.OnPartitionsRevoked(move(false)), kgo.OnPartitionsLost(move(false)),
	}, g.opts, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.stop = cancel
	g.members = append(g.members, m)
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			g.poll(ctx, m)
		}
	}()
	t.Cleanup(m.leave)
	return m
}

// dialPatiently waits while nobody listens, until the test ends: a member of
// franz-go leaves its generation when the only server that it knows refuses a
// connection.
func dialPatiently(test context.Context) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		retry := time.NewTicker(10 * time.Millisecond)
		defer retry.Stop()
		for {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return conn, err
			}
			select {
			case <-retry.C:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-test.Done():
				return nil, err
			}
		}
	}
}

// leave ends a member; a static one stays in its group.
func (m *teammate) leave() {
	m.stop()
	<-m.done
	m.cl.CloseAllowingRebalance()
}

// poll reads what there is, and commits it.
func (g *team) poll(ctx context.Context, m *teammate) {
	defer m.cl.AllowRebalance()
	records := m.cl.PollRecords(ctx, 100).Records()
	if len(records) == 0 {
		return
	}
	g.saw(records)
	if m.cl.CommitRecords(ctx, records...) == nil { // else it may or may not be committed
		g.hasCommitted(records)
	}
}

func (g *team) saw(records []*kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range records {
		g.read[string(r.Value)]++
		if next := g.committed[r.Partition]; r.Offset < next {
			g.faults = append(g.faults, fmt.Sprintf("%d-%d is read, and %d was committed", r.Partition, r.Offset, next))
		}
	}
}

func (g *team) hasCommitted(records []*kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range records {
		g.committed[r.Partition] = max(g.committed[r.Partition], r.Offset+1)
	}
}

// standing is what a restart of the server must leave alone.
type standing struct {
	generations []int32 // of the members
	ids         []string
	moved       int
}

// wantSame compares a team with what it was before a restart: it is in the same
// generation.
func (st standing) wantSame(t *testing.T, what string, before standing) {
	t.Helper()
	if diff := cmp.Diff(before, st, cmp.AllowUnexported(standing{})); diff != "" {
		t.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

// rest waits until the members share the partitions evenly in one generation, in
// which the server sees them too. A cooperative group has its newest member in a
// generation before that member has a partition.
func (g *team) rest(t *testing.T, partitions int) standing {
	t.Helper()
	g.s.waitGroup(t, g.topic, len(g.members))
	var st standing
	eventually(t, fmt.Sprintf("%d members of %s share %d partitions", len(g.members), g.topic, partitions), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		st = standing{moved: g.moved}
		all, least := 0, partitions
		for _, m := range g.members {
			owned := 0
			for _, is := range m.owned {
				if is {
					owned++
				}
			}
			all, least = all+owned, min(least, owned)
			id, generation := m.cl.GroupMetadata()
			st.ids, st.generations = append(st.ids, id), append(st.generations, generation)
		}
		return all == partitions && least >= partitions/len(g.members) && slices.Min(st.generations) == slices.Max(st.generations)
	})
	return st
}

// writer is an idempotent producer that writes at a steady pace until it is stopped.
type writer struct {
	stop context.CancelFunc
	done chan struct{}
	sent int
	err  error // of the first record that was refused
}

func (g *team) write(t *testing.T) *writer {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(g.s.kafka), kgo.DefaultProduceTopic(g.topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.AlwaysRetryEOF())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer cl.Close()
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for ; ctx.Err() == nil; w.sent++ {
			cl.Produce(t.Context(), kgo.StringRecord(fmt.Sprint(w.sent)), func(_ *kgo.Record, err error) {
				if err != nil && w.err == nil {
					w.err = err
				}
			})
			<-pace.C
		}
		if err := cl.Flush(t.Context()); err != nil && w.err == nil {
			w.err = err
		}
	}()
	t.Cleanup(func() { w.end(t) })
	return w
}

// end stops a writer, whose every record must have been acknowledged.
func (w *writer) end(t *testing.T) {
	t.Helper()
	w.stop()
	<-w.done
	if w.err != nil {
		t.Errorf("a record is not acknowledged: %v", w.err)
	}
}

// TestGroupsRestart: groups of each kind go on through restarts of the server,
// in their generation, while an idempotent producer writes: every record is
// stored once and read, none is read again once its offset is committed.
func TestGroupsRestart(t *testing.T) {
	const partitions = 6
	kinds := []struct {
		name string
		opts []kgo.Opt
		fix  bool // its members are static
	}{
		{"eager", []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}, false},
		{"cooperative", []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())}, false},
		{"static", []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())}, true},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := start(t, t.TempDir())
			s.createTopic(t, kind.name, partitions)
			g := newTeam(s, kind.name, kind.opts...)
			member := func(i int) []kgo.Opt {
				if !kind.fix {
					return nil
				}
				return []kgo.Opt{kgo.InstanceID(fmt.Sprint("instance-", i))}
			}
			w := g.write(t)
			for i := range 2 {
				g.join(t, member(i)...)
			}
			for i := range count(2, 6) {
				for _, restart := range restarts {
					before := g.rest(t, partitions)
					at := g.reads()
					restart.end(g.s, t)
					g.s = g.s.again(t)
					g.waitReads(t, at+200)
					g.rest(t, partitions).wantSame(t, "after "+restart.name, before)
				}
				if kind.fix { // it goes on where it was, in the same generation
					before := g.rest(t, partitions)
					g.members[0].leave()
					g.members = g.members[1:]
					restarts[i%2].end(g.s, t)
					g.s = g.s.again(t)
					g.join(t, member(i%2)...)
					if after := g.rest(t, partitions); !slices.Equal(after.generations, before.generations) {
						t.Errorf("generation %d after a static member restarted, %d before", after.generations, before.generations)
					}
				} else {
					g.join(t)
				}
			}
			w.end(t)
			g.verify(t, w.sent)
		})
	}
}

func (g *team) reads() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.read)
}

func (g *team) waitReads(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d records of %s are read", n, g.topic), func() bool { return g.reads() >= n })
}

// verify checks what was read of the values 0 to sent-1, and that each is stored once.
func (g *team) verify(t *testing.T, sent int) {
	t.Helper()
	g.waitReads(t, sent)
	again := 0
	g.mu.Lock()
	for i := range sent {
		if g.read[fmt.Sprint(i)] > 1 {
			again++
		}
	}
	for _, fault := range g.faults {
		t.Error(fault)
	}
	g.mu.Unlock()
	t.Logf("%d records; %d were read again, whose commit was not acknowledged", sent, again)
	ends, err := g.s.admin(t).ListEndOffsets(t.Context(), g.topic)
	if err != nil {
		t.Fatal(err)
	}
	stored := int64(0)
	ends.Each(func(o kadm.ListedOffset) { stored += o.Offset })
	if stored != int64(sent) {
		t.Errorf("%d records are stored of %d that were sent", stored, sent)
	}
}

func (s *server) createTopic(t *testing.T, name string, partitions int32) {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	if _, err := admin.CreateTopic(t.Context(), partitions, -1, nil, name); err != nil {
		t.Fatal(err)
	}
}
