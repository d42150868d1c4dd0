package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// TestEndedBeforeItIsDeleted: a job ends a partition of a deleted topic before
// this agent hears of the deletion, and while it has records of it that are in
// no Segment. Those are given up, and nothing else is.
func TestEndedBeforeItIsDeleted(t *testing.T) {
	for _, trimmed := range []bool{false, true} { // the ledger, past what the agent has folded
		bubble(t, func(t *testing.T, r *rig) {
			r.adjust = func(o *Options) { noAlarms(t, o) }
			a := r.start()
			ids := map[string]siltstone.TopicID{"gone": a.create("gone", 16), "kept": a.create("kept", 16)}
			gone, kept := sharing(t, ids["gone"], ids["kept"], 16)
			for _, tp := range []siltstone.TopicPartition{gone, kept} {
				if _, err := a.produce(tp, -1, aBatch(t, 9, 1, "v")); err != nil {
					t.Fatal(err)
				}
			}
			r.set(func() { r.fate = noStore })
			lost, waits := a.send(gone, -1, aBatch(t, 1, 1, "lost")), a.send(kept, -1, aBatch(t, 1, 1, "kept"))
			if answered(lost) || answered(waits) {
				t.Fatalf("answered with no store: %v, %v", lost.Parts[0].Err, waits.Parts[0].Err)
			}
			r.appendTrim(gone, 0, true)
			if trimmed {
				r.checkpointAndTrim(shard.Ledger(shard.Of(gone)))
			}
			r.set(func() { r.fate = nil })
			if <-lost.Done; !errors.Is(lost.Parts[0].Err, siltstone.ErrUnknownPartition) {
				t.Errorf("what has no place any more: %v", lost.Parts[0].Err)
			}
			if <-waits.Done; waits.Parts[0].Err != nil || waits.Parts[0].Base != 9 {
				t.Errorf("what has: %+v", waits.Parts[0])
			}
			check := func(a *running) {
				t.Helper()
				if _, err := a.produce(gone, -1, aBatch(t, 1, 1, "late")); err == nil {
					t.Error("it takes records")
				}
				if part := a.fetch(gone, 0, 1000, 0); part.Err == nil {
					t.Error("it is read")
				}
				if _, open := r.fold(shard.Of(gone)).Partition(gone); open {
					t.Error("it is open again")
				}
				if _, err := a.produce(kept, -1, aBatch(t, 1, 1, "on")); err != nil {
					t.Error(err)
				}
			}
			check(a)
			a.grow("gone", 17) // the topic is still known
			check(a)
			a.drop("gone", ids["gone"])
			check(a)
			if err := a.end(); err != nil {
				t.Fatal(err)
			}
			check(r.start())
		})
	}
}

// grow gives a topic more partitions.
func (a *running) grow(name string, total int32) {
	a.rig.t.Helper()
	var errs []error
	err := a.Change(context.Background(), func(v *topic.View) (d topic.Decision) {
		d, errs = topic.AddPartitions(v, []topic.NewPartitions{{Topic: name, Total: total}})
		return d
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		a.rig.t.Fatalf("grow %s: %v", name, err)
	}
}
