package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFranzGroup: two members share a topic, each record goes to one of them,
// and who comes after both have left goes on where they were.
func TestFranzGroup(t *testing.T) {
	const partitions, records = 4, 400
	for name, balancer := range map[string]kgo.GroupBalancer{"eager": kgo.RangeBalancer(), "cooperative": kgo.CooperativeStickyBalancer()} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			f.create("t", partitions)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			producer := f.kgoClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
			produce := func() {
				for i := range records {
					r := &kgo.Record{Topic: "t", Partition: int32(i % partitions), Value: fmt.Append(nil, i)}
					producer.Produce(ctx, r, func(_ *kgo.Record, err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
				if err := producer.Flush(ctx); err != nil {
					t.Fatal(err)
				}
			}
			joins := func() *kgo.Client {
				return f.kgoClient(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.Balancers(balancer), kgo.DisableAutoCommit(),
					kgo.HeartbeatInterval(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			}
			one, two := joins(), joins()
			f.awaitShares(ctx, "g", partitions/2, partitions/2)
			produce()
			seen := map[string]int{}
			for len(seen) < records {
				for _, cl := range []*kgo.Client{one, two} {
					quick, stop := context.WithTimeout(ctx, 20*time.Millisecond)
					fetches := cl.PollFetches(quick)
					stop()
					if ctx.Err() != nil {
						t.Fatalf("%d records of %d", len(seen), records)
					}
					if n := fetches.NumRecords(); n > records/2 {
						t.Errorf("one member gets %d records of %d", n, records)
					}
					fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
				}
			}
			for value, times := range seen {
				if times != 1 {
					t.Errorf("record %s comes %d times", value, times)
				}
			}
			for _, cl := range []*kgo.Client{one, two} {
				if err := cl.CommitUncommittedOffsets(ctx); err != nil {
					t.Error(err)
				}
			}
			for _, cl := range []*kgo.Client{one, two} {
				cl.Close()
			}
			produce()
			next := joins()
			for got := 0; got < records; {
				fetches := next.PollFetches(ctx)
				if err := fetches.Err(); err != nil {
					t.Fatal(err)
				}
				fetches.EachRecord(func(r *kgo.Record) {
					if got++; r.Offset < records/partitions {
						t.Errorf("%d of partition %d again", r.Offset, r.Partition)
					}
				})
			}
		})
	}
}

// awaitShares waits until a group is stable, and its members have so many
// partitions each, in any order.
func (f *fixture) awaitShares(ctx context.Context, id string, want ...int) {
	f.t.Helper()
	adm := kadm.NewClient(f.kgoClient())
	for {
		described, err := adm.DescribeGroups(ctx, id)
		if err != nil {
			f.t.Fatal(err)
		}
		var shares []int
		for _, m := range described[id].Members {
			n := 0
			if assigned, ok := m.Assigned.AsConsumer(); ok {
				for _, t := range assigned.Topics {
					n += len(t.Partitions)
				}
			}
			shares = append(shares, n)
		}
		slices.Sort(shares)
		if described[id].State == "Stable" && slices.Equal(shares, want) {
			return
		}
	}
}

// TestFranzGroupAdmin: groups by the admin client.
func TestFranzGroupAdmin(t *testing.T) {
	f := start(t)
	f.cluster.set(func(c *fakeCluster) { c.info.Nodes = c.info.Nodes[:1] }) // lists are asked of all
	topic := f.create("t", 2)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	f.alone("busy")
	ask[*kmsg.OffsetCommitResponse](f.dial(), 8, commitOf("idle", "t", topic.ID, 0, 1))
	adm := kadm.NewClient(f.kgoClient())
	listed, err := adm.ListGroups(ctx)
	if err != nil || listed["busy"].State != "Stable" || listed["idle"].State != "Empty" {
		t.Errorf("%+v, %v", listed, err)
	}
	described, err := adm.DescribeGroups(ctx)
	if err != nil || described.Error() != nil || len(described["busy"].Members) != 1 {
		t.Errorf("%+v, %v", described, err)
	}
	committed := adm.FetchManyOffsets(ctx, "idle", "none", "busy")
	if o, ok := committed["idle"].Fetched.Lookup("t", 1); !ok || o.At != 101 {
		t.Errorf("%+v", committed)
	}
	if _, err := adm.DeleteOffsets(ctx, "idle", kadm.TopicsSet{"t": {1: {}}}); err != nil {
		t.Error(err)
	}
	if left, err := adm.FetchOffsets(ctx, "idle"); err != nil || len(left["t"]) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
	deleted, err := adm.DeleteGroups(ctx, "idle", "busy", "none")
	if err != nil || deleted["idle"].Err != nil || deleted["busy"].Err == nil || deleted["none"].Err == nil {
		t.Errorf("%+v, %v", deleted, err)
	}
}

// TestKcatGroup: old librdkafka in a group, which it only joins where JoinGroup
// v0 and OffsetFetch v1 are shown.
func TestKcatGroup(t *testing.T) {
	f := start(t)
	f.create("t", 2)
	lines := func(from int) (all string) {
		for i := range 50 {
			all += fmt.Sprintf("line %d\n", from+i)
		}
		return all
	}
	args := []string{"-G", "g", "t", "-e", "-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000"}
	f.kcat(lines(0), "-P", "-t", "t")
	out, log := f.kcat("", append(args, "-d", "feature")...)
	if n := strings.Count(out, "\n"); n != 50 {
		t.Errorf("%d lines of 50", n)
	}
	if !strings.Contains(log, "Enabling feature BrokerBalancedConsumer") {
		t.Errorf("kcat does not enable groups:\n%s", log)
	}
	f.kcat(lines(50), "-P", "-t", "t")
	out, _ = f.kcat("", args...)
	if n := strings.Count(out, "\n"); n != 50 || strings.Contains(out, "line 49\n") {
		t.Errorf("%d lines of 50 come when it goes on", n)
	}
}
