package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A fleet is the agents of one cluster, and who writes to it meanwhile.
type fleet struct {
	stores  remoteStores
	agents  []*server // each keeps its addresses
	journal *journal
	sources []*source
	longest time.Duration // that no one wrote to some partition
}

const (
	fleetPartitions = 24
	fleetTopic      = "shared"
)

var zones = []string{"a", "b", "c"}

// newFleet starts three agents, in a zone each, and two idempotent producers that write some
// 1,200 records a second.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{stores: ownCluster(t), journal: newJournal(40*time.Millisecond, fleetTopic)}
	for i := range 3 {
		f.agents = append(f.agents, startCommand(t, "", f.stores.agentIn(t, anyPort, zones[i])))
	}
	f.agents[0].cli(t, "", "cluster", "alter", "--config", "siltstone.lease.ms="+strconv.Itoa(int(lease.Milliseconds())))
	f.agents[0].cli(t, "", "topic", "create", fleetTopic, "--partitions", strconv.Itoa(fleetPartitions))
	for producer := range 2 {
		var to []stream
		for p := range int32(fleetPartitions) {
			to = append(to, stream{producer, fleetTopic, p})
		}
		f.sources = append(f.sources, f.journal.produce(t, f.agents[producer], to,
			kgo.SeedBrokers(f.seeds()...), kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second)))
	}
	eventually(t, "both producers are acknowledged", func() bool { return len(f.journal.progress()) == 2 })
	return f
}

func (f *fleet) seeds() (addrs []string) {
	for _, a := range f.agents {
		addrs = append(addrs, a.kafka)
	}
	return addrs
}

// restart starts an agent where another was.
func (f *fleet) restart(t *testing.T, i int) {
	t.Helper()
	f.agents[i] = startCommand(t, "", f.stores.agentIn(t, f.agents[i].kafka, zones[i]))
}

// flowing waits until every stream has been acknowledged since now, and says
// how long that took.
func (f *fleet) flowing(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	f.journal.mu.Lock()
	from := map[stream]int{}
	for of, offsets := range f.journal.offsets {
		from[of] = len(offsets)
	}
	f.journal.mu.Unlock()
	flows := func() bool {
		f.journal.mu.Lock()
		defer f.journal.mu.Unlock()
		for of, n := range from {
			offsets := f.journal.offsets[of]
			if !slices.ContainsFunc(offsets[n:], func(at int64) bool { return at != unknown }) {
				return false
			}
		}
		return true
	}
	// A client may wait for a frozen agent several times over.
	for end := begin.Add(4 * patience); !flows(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("some partition is not written to again")
		}
	}
	return time.Since(begin)
}

// end judges what has been written.
func (f *fleet) end(t *testing.T) {
	t.Helper()
	for _, src := range f.sources {
		src.end(t)
	}
	f.journal.verify(t, f.agents[0], fleetTopic)
	f.journal.mu.Lock()
	refused := f.journal.refused
	f.journal.mu.Unlock()
	if len(refused) > 0 {
		t.Errorf("%d records of idempotent producers were refused: %v", len(refused), refused[0])
	}
	total := 0
	for _, n := range f.journal.progress() {
		total += n
	}
	t.Logf("%d records acknowledged, and read once each", total)
	for _, a := range f.agents {
		a.stop(t)
	}
	if out := f.stores.must(t, "check"); !strings.HasSuffix(strings.TrimSpace(out), "clean: all that belongs here is here, and whole") {
		t.Errorf("check: %s", out)
	}
}

// TestSeveralAgents: three agents share the partitions. What they acknowledge is
// read, once, whatever becomes of them.
func TestSeveralAgents(t *testing.T) {
	for name, befalls := range map[string]func(t *testing.T, f *fleet, round int){
		"killed": func(t *testing.T, f *fleet, round int) {
			i := round % len(f.agents)
			f.agents[i].kill()
			gap := f.flowing(t)
			f.longest = max(f.longest, gap)
			t.Logf("agent %d is killed: all partitions are written to again after %v; the longest of %d: %v", i, gap, round+1, f.longest)
			f.restart(t, i)
			f.flowing(t)
		},
		"frozen": func(t *testing.T, f *fleet, round int) {
			a := f.agents[round%len(f.agents)]
			if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Logf("an agent is frozen: all partitions are written to again after %v", f.flowing(t))
			if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			f.flowing(t)
		},
		"replaced": func(t *testing.T, f *fleet, round int) {
			for i := range f.agents {
				f.agents[i].stop(t)
				t.Logf("agent %d is stopped: all partitions are written to again after %v", i, f.flowing(t))
				f.restart(t, i)
			}
			f.flowing(t)
		},
		"joined": func(t *testing.T, f *fleet, round int) {
			more := startCommand(t, "", f.stores.agentIn(t, anyPort, zones[round%3]))
			f.flowing(t)
			more.stop(t)
			f.flowing(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			end := time.Now().Add(time.Duration(count(5, 300)) * time.Second)
			for round := 0; round == 0 || time.Now().Before(end); round++ {
				befalls(t, f, round)
			}
			f.end(t)
		})
	}
}

// TestHTTPAtAnyAgent: over HTTP every agent takes and gives the records of every
// partition, whoever leads it.
func TestHTTPAtAnyAgent(t *testing.T) {
	const partitions = 16
	stores := ownCluster(t)
	var agents []*server
	for range 2 {
		agents = append(agents, startCommand(t, "", stores.agent(t, anyPort)))
	}
	agents[0].makeTopic(t, "spread", fmt.Sprintf(`{"partitions":%d}`, partitions))
	adm := agents[1].admin(t)
	defer adm.Close()
	eventually(t, "both lead partitions", func() bool {
		topics, err := adm.ListTopics(t.Context(), "spread")
		leaders := map[int32]bool{}
		for _, p := range topics["spread"].Partitions {
			leaders[p.Leader] = true
		}
		return err == nil && len(leaders) == 2 && !leaders[-1]
	})
	for p := range partitions {
		for i, a := range agents {
			a.post(t, recordsOf("spread", p), fmt.Sprintf(`{"records":[{"value":"from %d"}]}`, i)).wantAppended(p, int64(i), int64(i)+1)
		}
		for i, a := range agents {
			got := a.fetch(t, recordsOf("spread", p)+"?offset=0")
			if got.status != 200 || !strings.Contains(got.body, "from 0") || !strings.Contains(got.body, "from 1") {
				t.Errorf("partition %d at agent %d: %d %s", p, i, got.status, got.body)
			}
		}
	}
	// The records of one request go to agents here and there.
	var records []string
	for i := range 200 {
		records = append(records, fmt.Sprintf(`{"key":"%d","value":"v"}`, i))
	}
	got := agents[0].post(t, "/api/v1/topics/spread/records", `{"records":[`+strings.Join(records, ",")+`]}`)
	if got.status >= 300 || strings.Count(got.body, "base_offset") < partitions/2 || strings.Contains(got.body, "error") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, a := range agents {
		a.stop(t)
	}
}
