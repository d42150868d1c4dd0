package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// groupDescription is what `siltstone group describe --json` says, as far as these tests ask.
type groupDescription struct {
	State   string
	Members []struct {
		ID, Client string
		Instance   *string
		Partitions int
	}
	Partitions []struct {
		Topic     string
		Partition int32
		Committed *int64
		End, Lag  int64
		Member    string
	}
	Topics []groupTopic
	Total  groupTopic

	SampleSeconds float64 `json:"sample_seconds"`
}

type groupTopic struct {
	Topic string
	Lag   int64
	Pace  *struct {
		WrittenPerSecond float64  `json:"written_per_second"`
		ReadPerSecond    float64  `json:"read_per_second"`
		DrainsInSeconds  *float64 `json:"drains_in_seconds"`
		Outlook          string
	}
}

func (s *server) describeGroup(t *testing.T, group, sample string) groupDescription {
	t.Helper()
	var all []groupDescription
	out := s.cli(t, "", "group", "describe", group, "--sample", sample, "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return all[0]
}

// committed are a group's offsets in a topic, by partition; -1: none.
func (g groupDescription) committed(topic string) (offsets []int64) {
	for _, p := range g.Partitions {
		if p.Topic != topic {
			continue
		}
		at := int64(-1)
		if p.Committed != nil {
			at = *p.Committed
		}
		offsets = append(offsets, at)
	}
	return offsets
}

// consumeInGroup is a member of a group that reads n records, commits them and stays.
func (s *server) consumeInGroup(t *testing.T, group, topic string, n int, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl := s.franz(t, append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ClientID(group + "-client"),
	}, opts...)...)
	if err := readOn(t.Context(), cl, n); err != nil {
		t.Fatal(err)
	}
	return cl
}

// readOn reads n records more, and commits them.
func readOn(ctx context.Context, cl *kgo.Client, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for read := 0; read < n; {
		fetches := cl.PollRecords(ctx, n-read)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%d of %d records: %w", read, n, err)
		}
		read += fetches.NumRecords()
	}
	return cl.CommitUncommittedOffsets(ctx)
}

// TestGroupCommands: what an operator does about a group, from its first member to its end.
func TestGroupCommands(t *testing.T) {
	s := start(t, t.TempDir())
	if out := s.cli(t, "", "group", "list"); !strings.Contains(out, "no groups yet") {
		t.Errorf("list without groups: %q", out)
	}
	s.cli(t, "", "topic", "create", "orders", "-p", "2")
	s.cli(t, lines(100, "%d"), "produce", "orders", "-p", "0")
	s.cli(t, lines(50, "%d"), "produce", "orders", "-p", "1")
	cl := s.consumeInGroup(t, "billing", "orders", 150, kgo.InstanceID("till-1"))

	var listed []struct {
		Group, State, Type, Protocol string
		Members                      int
	}
	if err := json.Unmarshal([]byte(s.cli(t, "", "group", "list", "--json", "--state", "stable")), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 1 || fmt.Sprint(listed[0]) != "{billing Stable classic consumer 1}" {
		t.Errorf("listed %+v", listed)
	}
	if out := s.cli(t, "", "group", "list", "--state", "Empty"); out != "no group is Empty\n" {
		t.Errorf("empty groups: %q", out)
	}
	g := s.describeGroup(t, "billing", "0")
	if g.State != "Stable" || g.Total.Lag != 0 || fmt.Sprint(g.committed("orders")) != "[100 50]" {
		t.Errorf("described %+v", g)
	}
	if len(g.Members) != 1 || g.Members[0].Client != "billing-client" || g.Members[0].Partitions != 2 || g.Partitions[1].Member != g.Members[0].ID {
		t.Errorf("members %+v of %+v", g.Members, g.Partitions)
	}

	out := s.cli(t, "", "group", "reset", "billing", "--to-earliest")
	if !strings.Contains(out, "orders  1          50   0    -\n") || !strings.HasSuffix(out, "nothing is changed yet: stop 1 member (till-1 at 127.0.0.1), then --execute does it\n") {
		t.Errorf("what a reset would do while there is a member: %q", out)
	}
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"group", "reset", "billing", "--to-earliest", "--execute"}, "1 member (till-1 at 127.0.0.1), who would commit over it"},
		{[]string{"group", "delete", "billing"}, "1 member (till-1 at 127.0.0.1): stop them first"},
		{[]string{"group", "describe", "nosuch"}, `there is no group "nosuch"`},
		{[]string{"group", "delete", "nosuch"}, `there is no group "nosuch"`},
		{[]string{"group", "reset", "nosuch", "--to-latest"}, "has no committed offsets"},
		{[]string{"group", "reset", "nosuch", "--to-latest", "-t", "nosuch"}, "there is no such topic"},
	} {
		_, stderr, code := run(t, "", append(wrong.args, "--kafka", s.kafka)...)
		oneClearLine(t, strings.Join(wrong.args, " "), stderr, code, wrong.says)
	}
	if got := s.describeGroup(t, "billing", "0"); fmt.Sprint(got.committed("orders")) != "[100 50]" || len(got.Members) != 1 {
		t.Errorf("after what was refused: %+v", got)
	}

	cl.Close() // a static member stays in its group until it is taken out
	if left, err := kadm.NewClient(s.franz(t)).LeaveGroup(t.Context(), kadm.LeaveGroup("billing").InstanceIDs("till-1")); err != nil || left.Error() != nil {
		t.Fatal(err, left.Error())
	}
	if got := s.describeGroup(t, "billing", "0"); got.State != "Empty" || fmt.Sprint(got.committed("orders")) != "[100 50]" {
		t.Errorf("after its member has left: %+v", got)
	}
	if out := s.cli(t, "", "group", "delete", "billing"); out != "deleted billing\n" {
		t.Errorf("delete: %q", out)
	}
	if out := s.cli(t, "", "group", "list"); !strings.Contains(out, "no groups yet") {
		t.Errorf("list after the delete: %q", out)
	}
}

// TestGroupReset: each way to say where to, first without doing it.
func TestGroupReset(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "orders", "audit", "-p", "2")
	s.cli(t, lines(100, "%d"), "produce", "orders", "-p", "0")
	s.cli(t, lines(50, "%d"), "produce", "orders", "-p", "1")
	between := time.Now()
	s.cli(t, lines(10, "%d"), "produce", "orders", "-p", "0")
	s.consumeInGroup(t, "billing", "orders", 160).Close()
	s.eventuallyEmpty(t, "billing")

	for _, tt := range []struct {
		to          string
		want, audit string
	}{
		{"--to-earliest", "[0 0]", "[]"},
		{"--to-offset 70", "[70 50]", "[]"},
		{"--shift-by -60", "[10 0]", "[]"},
		{"--shift-by 5 -t orders:1", "[10 5]", "[]"},
		{"--to-time " + between.UTC().Format(time.RFC3339Nano), "[100 50]", "[]"},
		{fmt.Sprintf("--to-time %d", between.Add(-time.Hour).UnixMilli()), "[0 0]", "[]"},
		{"--to-latest -t orders -t audit:1", "[110 50]", "[-1 0]"},
	} {
		args := append([]string{"group", "reset", "billing"}, strings.Fields(tt.to)...)
		before := s.describeGroup(t, "billing", "0")
		if out := s.cli(t, "", args...); !strings.Contains(out, "nothing is changed yet") {
			t.Errorf("%s, not to be executed: %q", tt.to, out)
		}
		if got := s.describeGroup(t, "billing", "0"); fmt.Sprint(got.committed("orders")) != fmt.Sprint(before.committed("orders")) {
			t.Errorf("%s, not to be executed, changed %v to %v", tt.to, before.committed("orders"), got.committed("orders"))
		}
		s.cli(t, "", append(args, "--execute")...)
		got := s.describeGroup(t, "billing", "0")
		if orders, audit := fmt.Sprint(got.committed("orders")), fmt.Sprint(got.committed("audit")); orders != tt.want || audit != tt.audit {
			t.Errorf("%s: orders %s, audit %s; want %s, %s", tt.to, orders, audit, tt.want, tt.audit)
		}
	}

	_, stderr, code := run(t, "", "group", "reset", "billing", "--to-offset", "7", "-t", "orders:0,9", "--execute", "--json", "--kafka", s.kafka)
	if code != 0 || stderr != "" {
		t.Errorf("with a partition that is not there, as JSON: code %d, %q", code, stderr)
	}
	_, stderr, code = run(t, "", "group", "reset", "billing", "--to-offset", "7", "-t", "orders:0,9", "--kafka", s.kafka)
	if code != 0 || stderr != "siltstone: orders, partition 9 is left alone: there is no such partition: the topic has 2 partitions\n" {
		t.Errorf("with a partition that is not there: code %d, %q", code, stderr)
	}
	// A member goes on where the resets have put it.
	s.consumeInGroup(t, "billing", "orders", 103)
	if got := s.describeGroup(t, "billing", "0"); got.Total.Lag != 0 {
		t.Errorf("after 103 records from offset 7 the lag is %d: %+v", got.Total.Lag, got)
	}
}

// TestGroupLag: the arithmetic, of what is really written and read.
func TestGroupLag(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "orders")
	s.cli(t, lines(50_000, "%d"), "produce", "orders")
	cl := s.consumeInGroup(t, "billing", "orders", 100)
	if g := s.describeGroup(t, "billing", "10ms"); g.Total.Lag != 49_900 || g.Total.Pace == nil || g.Total.Pace.Outlook != "stays" {
		t.Errorf("while nothing is written or read: %+v", g.Total)
	}

	// Somebody reads 20 records a moment, and writes one, as long as samples are taken.
	sampled, reads := make(chan struct{}), make(chan error)
	go func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-sampled:
				reads <- nil
				return
			case <-tick.C:
			}
			err := readOn(t.Context(), cl, 20)
			if err == nil {
				err = cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("new")}).FirstErr()
			}
			if err != nil {
				reads <- err
				return
			}
		}
	}()
	g := s.describeGroup(t, "billing", "1s")
	close(sampled)
	if err := <-reads; err != nil {
		t.Fatal(err)
	}
	pace := g.Total.Pace
	if pace == nil || pace.Outlook != "drains" || pace.DrainsInSeconds == nil || pace.WrittenPerSecond <= 0 || pace.ReadPerSecond < 10*pace.WrittenPerSecond {
		t.Fatalf("while somebody reads on: %+v", pace)
	}
	if want := float64(g.Total.Lag) / (pace.ReadPerSecond - pace.WrittenPerSecond); math.Abs(*pace.DrainsInSeconds-want) > 1e-6*want {
		t.Errorf("a lag of %d drains in %v s at %+v, want %v s", g.Total.Lag, *pace.DrainsInSeconds, pace, want)
	}
	if g.SampleSeconds < 1 || len(g.Topics) != 1 || g.Topics[0].Lag != g.Total.Lag {
		t.Errorf("topics %+v, all %+v, within %v s", g.Topics, g.Total, g.SampleSeconds)
	}
	if out := s.cli(t, "", "group", "describe", "billing", "--sample", "10ms"); !strings.Contains(out, "\norders  0 ") || !strings.Contains(out, "OUTLOOK\n") || !strings.Contains(out, "stays\n") {
		t.Errorf("as people read it:\n%s", out)
	}
}

// eventuallyEmpty waits until a group's last member has left.
func (s *server) eventuallyEmpty(t *testing.T, group string) {
	t.Helper()
	eventually(t, group+" is empty", func() bool { return s.describeGroup(t, group, "0").State == "Empty" })
}
