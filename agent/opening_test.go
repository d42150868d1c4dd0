package agent

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
)

// TestTopicsWhileShardsMove: a topic is made while shards are handed to agents
// that have just come. It is open soon, and its maker is answered.
func TestTopicsWhileShardsMove(t *testing.T) {
	for after := time.Duration(0); after < 600*time.Millisecond; after += 15 * time.Millisecond {
		bubble(t, func(t *testing.T, r *rig) {
			var calls atomic.Int64
			r.hook = func(ctx context.Context, _ cfaulty.Call, do func(context.Context) error) error {
				time.Sleep(time.Duration(calls.Add(1)*7919%60) * time.Millisecond)
				return do(ctx)
			}
			a := r.sharing()
			a.readyWithin(5 * time.Second)
			old := a.create("old", 24)
			b, c := r.sharing(), r.sharing()
			b.readyWithin(5 * time.Second)
			time.Sleep(after)
			begin := time.Now()
			made := b.create("made", 24)
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("made %v after the others came: it takes %v", after, took)
			}
			for p := range int32(24) {
				for _, topic := range []siltstone.TopicID{old, made} {
					tp := siltstone.TopicPartition{Topic: topic, Partition: p}
					leaderAmong(t, tp, a, b, c)
				}
			}
		})
	}
}
