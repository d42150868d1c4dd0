package e2e

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readAlone adds somebody who reads the whole topic and commits without being
// in the group, as who assigns partitions by hand does.
func (g *team) readAlone(t *testing.T) {
	t.Helper()
	cl, err := kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.SeedBrokers(g.s.kafka), kgo.ConsumeTopics(g.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, soonAgain)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &teammate{cl: cl, stop: cancel, done: make(chan struct{})}
	g.members = append(g.members, m)
	admin := kadm.NewClient(cl)
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			records := cl.PollRecords(ctx, 100).Records()
			if len(records) == 0 {
				continue
			}
			g.saw(records)
			var offsets kadm.Offsets
			for _, r := range records {
				offsets.AddOffset(r.Topic, r.Partition, r.Offset+1, r.LeaderEpoch)
			}
			if admin.CommitAllOffsets(ctx, g.topic, offsets) == nil { // else it may or may not be committed
				g.hasCommitted(records)
			}
		}
	}()
	t.Cleanup(m.leave)
}

// disband ends all who read.
func (g *team) disband() {
	for _, m := range g.members {
		m.leave()
	}
	g.members = nil
}

// acknowledged are the offsets whose commit is acknowledged, by partition.
func (g *team) acknowledged() map[int32]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.committed)
}

// verifyCommits: a group's offsets are not before those whose commit was
// acknowledged, nor before any that were fetched, nor past the log's end.
func (k *killing) verifyCommits(t *testing.T, g *team) {
	t.Helper()
	acknowledged, before := g.acknowledged(), k.fetched[g.topic]
	admin := k.s.admin(t)
	defer admin.Close()
	responses, err := admin.FetchOffsets(t.Context(), g.topic)
	if err == nil {
		err = responses.Error()
	}
	if err != nil {
		t.Fatalf("offsets of %s: %v", g.topic, err)
	}
	now := map[int32]int64{}
	for p, b := range k.s.bounds(t, g.topic) {
		partition := int32(p)
		if committed, ok := responses.Lookup(g.topic, partition); ok {
			now[partition] = committed.At
		}
		if at := now[partition]; at < acknowledged[partition] || at < before[partition] || at > b.end {
			t.Fatalf("group %s has committed %d of partition %d, which ends at %d; acknowledged was %d, and fetched once %d",
				g.topic, at, p, b.end, acknowledged[partition], before[partition])
		}
	}
	k.fetched[g.topic] = now
}
