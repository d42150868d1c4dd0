package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var killSeed = flag.Uint64("kill-seed", 0, "chooses the moments at which TestKillGroups kills; 0: any")

// Topics of TestKillGroups. The first two are read by groups of the same names,
// and written by idempotent producers, as is the one whose records are deleted;
// somebody reads the plain one alone, and commits.
const (
	eagerTopic, cooperativeTopic = "eager", "cooperative"
	plainTopic, trimmedTopic     = "plain", "trimmed"
	probeTopic                   = "probe"

	readPartitions      = 4
	leastMembers        = 2
	idempotentProducers = 3 // of 5
)

// killing is a server that is killed again and again, and its clients, which
// go on.
type killing struct {
	s        *server
	random   *rand.Rand
	journal  *journal
	sources  []*source
	teams    []*team // groups with members
	groups   []*team // all that commit
	admin    *administrator
	leaving  sync.WaitGroup
	left     []leaver
	writable []time.Duration // how long it took, after each kill

	kills, torn, orphans int
	unnoticed            int                        // kills, by a group at rest
	fetched              map[string]map[int32]int64 // by group: offsets that it once had
	generations          map[string]int32           // by group: the newest that was seen
}

// TestKillGroups kills the server at random moments while idempotent and other
// producers write, groups read, rebalance and commit, topics come and go, and
// records are deleted. After each kill all that a client was told must be so.
func TestKillGroups(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("to repeat it: -kill-seed=%d", seed)
	k := newKilling(t, start(t, filepath.Join(t.TempDir(), "data")), seed, 10*time.Millisecond, 20*time.Millisecond)
	for round := 0; k.kills < count(8, 50); round++ {
		k.admin.begin(t, k.s)
		var before []standing
		switch round % 3 {
		case 0: // groups at rest
			before = k.rest(t)
			k.awaitProgress(t)
			k.pause(time.Second)
			k.kill(t)
		case 1: // groups that rebalance
			k.awaitProgress(t)
			k.move(t)
			k.pause(time.Second)
			k.kill(t)
		case 2: // and then while it starts
			k.kill(t)
			k.killStarting(t)
		}
		k.restart(t)
		k.verify(t)
		after := k.rest(t)
		for i := range before {
			k.unnoticed++
			after[i].wantSame(t, fmt.Sprintf("group %s after kill %d", k.teams[i].topic, k.kills), before[i])
		}
	}
	k.end(t)
}

// newKilling has clients write and do admin work at these paces.
func newKilling(t *testing.T, s *server, seed uint64, writes, admin time.Duration) *killing {
	k := &killing{
		s: s, random: rand.New(rand.NewPCG(seed, 0)),
		journal: newJournal(writes, eagerTopic, cooperativeTopic, trimmedTopic), admin: &administrator{pace: admin, trimmed: trimmedTopic},
		fetched: map[string]map[int32]int64{}, generations: map[string]int32{},
	}
	for _, topic := range []string{eagerTopic, cooperativeTopic, plainTopic} {
		k.s.createTopic(t, topic, readPartitions)
	}
	k.s.createTopic(t, trimmedTopic, 1)
	k.s.createTopic(t, probeTopic, 1)
	k.teams = []*team{
		newTeam(k.s, eagerTopic, kgo.Balancers(kgo.RangeBalancer())),
		newTeam(k.s, cooperativeTopic, kgo.Balancers(kgo.CooperativeStickyBalancer())),
	}
	for _, g := range k.teams {
		for range leastMembers {
			g.join(t)
		}
	}
	alone := newTeam(k.s, plainTopic)
	alone.readAlone(t)
	k.groups = append(k.teams[:len(k.teams):len(k.teams)], alone)
	for producer := range 5 {
		var to []stream
		var opts []kgo.Opt
		for p := range int32(readPartitions) {
			if producer < idempotentProducers {
				to = append(to, stream{producer, eagerTopic, p}, stream{producer, cooperativeTopic, p})
			} else {
				to = append(to, stream{producer, plainTopic, p})
			}
		}
		if producer < idempotentProducers {
			to = append(to, stream{producer, trimmedTopic, 0})
		} else {
			opts = append(noRetries[:len(noRetries):len(noRetries)], kgo.DisableIdempotentWrite())
		}
		k.sources = append(k.sources, k.journal.produce(t, k.s, to, opts...))
	}
	return k
}

// pause waits for a random time.
func (k *killing) pause(atMost time.Duration) {
	<-time.After(time.Duration(k.random.Int64N(int64(atMost))))
}

// awaitProgress waits until each producer has more records acknowledged, and
// each group more offsets.
func (k *killing) awaitProgress(t *testing.T) {
	t.Helper()
	now := func() (all []int) {
		for producer := range k.sources {
			all = append(all, k.journal.progress()[producer])
		}
		for _, g := range k.groups {
			sum := 0
			for _, offset := range g.acknowledged() {
				sum += int(offset)
			}
			all = append(all, sum)
		}
		return all
	}
	before := now()
	eventually(t, fmt.Sprintf("producers and groups get further than %v", before), func() bool {
		for i, n := range now() {
			if n <= before[i] {
				return false
			}
		}
		return true
	})
}

// move has a member of each group leave, or another one join it.
func (k *killing) move(t *testing.T) {
	t.Helper()
	for _, g := range k.teams {
		if n := len(g.members); n == leastMembers || n < readPartitions && k.random.IntN(2) == 0 {
			g.join(t)
			continue
		}
		id, _ := g.members[0].cl.GroupMetadata()
		k.left = append(k.left, leaver{g.topic, id})
		k.leaving.Go(g.members[0].leave)
		g.members = g.members[1:]
	}
}

// leaver is a member that may not have come to say that it leaves.
type leaver struct{ group, id string }

// seeOff waits until who leaves has gone, and says it for those who could not.
func (k *killing) seeOff(t *testing.T) {
	t.Helper()
	k.leaving.Wait()
	w := k.s.dial(t)
	defer w.conn.Close()
	for _, m := range k.left {
		if got := w.leave(3, m.group, kmsg.LeaveGroupRequestMember{MemberID: m.id}); got[0] != "" && got[0] != "UNKNOWN_MEMBER_ID" {
			t.Fatalf("a member leaves group %s: %s", m.group, got[0])
		}
	}
	k.left = nil
}

func (k *killing) kill(t *testing.T) {
	t.Helper()
	k.s.kill()
	k.admin.end()
	k.killed(t)
}

// killStarting kills a server that has only begun to start.
func (k *killing) killStarting(t *testing.T) {
	t.Helper()
	cmd := serverCommand(t, k.s.dir, "--kafka", k.s.kafka)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.pause(slices.Max(append(k.writable, time.Millisecond)))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	k.killed(t)
}

// killed checks what is stored.
func (k *killing) killed(t *testing.T) {
	t.Helper()
	k.kills++
	orphans := len(check(t, k.s.dir).Orphans)
	if orphans > k.orphans {
		k.torn++
	}
	k.orphans = orphans
}

// restart starts the server again, which must soon take a record.
func (k *killing) restart(t *testing.T) {
	t.Helper()
	begin := time.Now()
	k.s = k.s.again(t)
	k.s.writeProbe(t)
	took := time.Since(begin)
	k.writable = append(k.writable, took)
	if most := writableAgain(t, k.s.dir); took > most { // then this must be a slow moment for all
		if fresh := writableFresh(t); took > most+fresh {
			t.Errorf("after kill %d: writable after %v, and a fresh server after %v", k.kills, took, fresh)
		}
	}
	for _, g := range k.groups {
		g.s = k.s
	}
	k.seeOff(t)
}

func writableFresh(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	s := start(t, t.TempDir())
	s.createTopic(t, probeTopic, 1)
	s.writeProbe(t)
	took := time.Since(begin)
	s.kill()
	return took
}

func (s *server) writeProbe(t *testing.T) {
	t.Helper()
	cl := s.franz(t)
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: probeTopic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatalf("not writable: %v", err)
	}
}

// verify holds what the server has against what its clients were told.
func (k *killing) verify(t *testing.T) {
	t.Helper()
	for _, topic := range []string{eagerTopic, cooperativeTopic, plainTopic, trimmedTopic} {
		k.journal.verify(t, k.s, topic)
	}
	for _, g := range k.groups {
		k.verifyCommits(t, g)
	}
	k.admin.verify(t, k.s)
}

// rest waits until the groups are at rest, in no generation before the last one seen.
func (k *killing) rest(t *testing.T) (all []standing) {
	t.Helper()
	for _, g := range k.teams {
		st := g.rest(t, readPartitions)
		generation := slices.Min(st.generations)
		if generation < k.generations[g.topic] {
			t.Fatalf("group %s is in generation %d, and was in %d", g.topic, generation, k.generations[g.topic])
		}
		k.generations[g.topic] = generation
		all = append(all, st)
	}
	return all
}

// end stops the clients, each when it is done, and then all that was sent must be there.
func (k *killing) end(t *testing.T) {
	t.Helper()
	for _, src := range k.sources {
		src.end(t)
	}
	for _, g := range k.teams {
		g.waitReads(t, k.journal.sent(g.topic))
	}
	k.verify(t)
	for _, err := range k.journal.refused {
		t.Errorf("a record of an idempotent producer is not acknowledged: %v", err)
	}
	for _, g := range k.groups {
		g.disband()
		for _, fault := range g.faults {
			t.Errorf("group %s: %s", g.topic, fault)
		}
	}
	k.s.stop(t)
	check(t, k.s.dir)
	slices.Sort(k.writable)
	acked := 0
	for _, n := range k.journal.progress() {
		acked += n
	}
	t.Logf("%d kills, %d of them between an upload and its entry; %d records acknowledged; groups came to generations %v, and %d times did not notice; writable again after %v, at most %v",
		k.kills, k.torn, acked, k.generations, k.unnoticed, k.writable[len(k.writable)/2], k.writable[len(k.writable)-1])
}
