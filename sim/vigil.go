package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// A vigil watches that nobody takes over uncleanly while a member of the ISR can
// be seen to live. It knows when each agent's heartbeats landed, and when each
// entry was first sent: what is decided is judged by what was known then.
type vigil struct {
	mu    sync.Mutex
	beats map[siltstone.Incarnation][]time.Time
	sent  map[coordinator.Nonce]time.Time
}

// unseen is how old what an agent knows of others may be, as long as stores answer.
const unseen = 3 * time.Second

func newVigil() vigil {
	return vigil{beats: map[siltstone.Incarnation][]time.Time{}, sent: map[coordinator.Nonce]time.Time{}}
}

// beat notes that a register of a node's landed.
func (v *vigil) beat(n *node, key string) {
	if strings.HasPrefix(key, "node/") {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.beats[n.incarnation] = append(v.beats[n.incarnation], time.Now())
	}
}

// sends notes when an entry is sent, if it is the first time.
func (v *vigil) sends(e coordinator.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.sent[e.Nonce]; !ok {
		v.sent[e.Nonce] = time.Now()
	}
}

// judge says what is wrong with an entry that lands after others; "" if nothing is.
func (v *vigil) judge(ledger string, e coordinator.Entry, before []coordinator.Entry) string {
	lead, last := leadIn(e), lastLead(before)
	if lead == nil || !lead.Unclean || last == nil {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	decided := v.sent[e.Nonce]
	from, to := decided.Add(-time.Duration((1-2*mostDrift)*float64(uncleanGrace))), decided.Add(-unseen)
	for _, member := range last.ISR {
		if slices.ContainsFunc(v.beats[member], func(at time.Time) bool { return at.After(from) && at.Before(to) }) {
			return fmt.Sprintf("8: %s entry %d: %s takes over uncleanly while %s, of the ISR, is heard", ledger, e.Seq, lead.Leader, member)
		}
	}
	return ""
}

// uncleanSince says whether there was an unclean takeover of a shard after an instant.
func (s *scenario) uncleanSince(id int, since time.Time) bool {
	s.store.vigil.mu.Lock()
	defer s.store.vigil.mu.Unlock()
	return slices.ContainsFunc(s.store.archive[shard.Ledger(id)], func(e coordinator.Entry) bool {
		lead := leadIn(e)
		return lead != nil && lead.Unclean && s.store.vigil.sent[e.Nonce].After(since)
	})
}
