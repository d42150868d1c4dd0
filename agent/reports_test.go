package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
)

// TestReport18: an idempotent producer that was idle for longer than
// producer.id.expiration.ms goes on, whatever its client does then: the next
// sequence (librdkafka), a new epoch from 0 (Java), or the same epoch from 0.
// So it does where in place of the idle time, or besides, records were
// deleted, the server restarted, or a checkpoint left the producer out. All is
// acknowledged, nothing is lost, nothing is there twice.
func TestReport18(t *testing.T) {
	const expiration = 10 * time.Second
	type steps struct{ idle, deleted, retention, restarted, checkpoint bool }
	goOn := map[string]func(s *sender){
		"next sequence":    func(*sender) {},
		"new epoch":        func(s *sender) { s.epoch, s.next = s.epoch+1, 0 },
		"from 0 once more": func(s *sender) { s.next = 0 },
	}
	for n := range 32 {
		st := steps{n&1 > 0, n&2 > 0, n&4 > 0, n&8 > 0, n&16 > 0}
		for name, goOn := range goOn {
			if name == "from 0 once more" && !st.idle {
				continue // it is known, and that would be a gap
			}
			t.Run(fmt.Sprintf("%+v/%s", st, name), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.adjust = func(o *Options) {
						o.DrainTime = -1
						if st.checkpoint {
							o.CheckpointAge = expiration / 2
						}
					}
					a, tp := r.one()
					a.setCluster("producer.id.expiration.ms", fmt.Sprint(expiration.Milliseconds()))
					s := &sender{id: 7, ms: 1} // of 1970: only when it came counts
					var last []byte
					for i := range 7 {
						last = s.batch(t, fmt.Sprint(i))
						a.mustProduce(tp, siltstone.Offset(i), last)
					}
					start := siltstone.Offset(0)
					if st.deleted {
						start = 7
						a.deleteRecords(tp, start)
					}
					if st.retention && !st.deleted {
						start = 7
						r.retain(tp, start)
					}
					if st.idle {
						time.Sleep(15 * time.Second)
					}
					if st.checkpoint { // is due with the next entry, or was
						other := &sender{id: 8}
						a.mustProduce(tp, 7, other.batch(t, "other"))
						time.Sleep(6 * time.Second)
					}
					if st.restarted {
						a = a.kill()
					}
					if !st.idle {
						a.mustProduce(tp, 6, last) // is known, wherever its records are
					}
					goOn(s)
					next := siltstone.Offset(7)
					if st.checkpoint {
						next++
					}
					for i := range 8 {
						b := s.batch(t, fmt.Sprint(7+i))
						a.mustProduce(tp, next, b)
						a.mustProduce(tp, next, b) // once more
						next++
					}
					want := []string{"0", "1", "2", "3", "4", "5", "6"}
					if start > 0 {
						want = nil
					}
					if st.checkpoint {
						want = append(want, "other")
					}
					wantValues(t, a.readAll(tp, start), append(want, "7", "8", "9", "10", "11", "12", "13", "14")...)
				})
			})
		}
	}
}
