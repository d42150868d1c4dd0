package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

func TestNotReadyWhileTheCoordinatorFails(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.set(func() {
			r.hook = func(context.Context, cfaulty.Call, func(context.Context) error) error {
				return siltstone.ErrUnavailable
			}
		})
		req := a.send(tp, -1, aBatch(t, 1, 1, "x"))
		time.Sleep(10 * time.Second)
		if s := a.Status(); s.Ready || !strings.Contains(s.Why, shard.Ledger(shard.Of(tp))) {
			t.Errorf("nothing is committed: %+v", s)
		}
		r.set(func() { r.hook = nil })
		<-req.Done
		if err := req.Parts[0].Err; err != nil {
			t.Error(err)
		}
		if s := a.Status(); !s.Ready {
			t.Errorf("the coordinator is back: %+v", s)
		}
	})
}
