package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// TestVigil: an unclean takeover is wrong if a member of the ISR was heard before it.
func TestVigil(t *testing.T) {
	const carol = siltstone.Incarnation(3)
	for _, test := range []struct {
		name  string
		heard []time.Duration // before it was decided: bob
		want  int
	}{
		{"silent", nil, 0},
		{"silent for the grace", []time.Duration{uncleanGrace + time.Second, uncleanGrace}, 0},
		{"heard within the grace", []time.Duration{uncleanGrace + time.Second, uncleanGrace / 2}, 1},
		{"heard as it was decided", []time.Duration{uncleanGrace, unseen / 2}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, now := newEstate(t), time.Now()
			e.shard(&shard.Lead{Epoch: 1, Leader: alice, ISR: []siltstone.Incarnation{alice, bob}})
			e.store.vigil.sent[coordinator.Nonce{}] = now
			for _, ago := range test.heard {
				e.store.vigil.beats[bob] = append(e.store.vigil.beats[bob], now.Add(-ago))
			}
			e.shard(&shard.Lead{Epoch: 2, Leader: carol, ISR: []siltstone.Incarnation{carol}, Unclean: true})
			if len(e.store.wrong) != test.want {
				t.Errorf("%q", e.store.wrong)
			}
			if audited := e.store.audit(&e.history.history); test.want > 0 && !slices.Contains(audited, e.store.wrong[0]) {
				t.Errorf("the audit leaves it out: %q", audited)
			}
		})
	}
}
