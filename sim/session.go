package sim

import "github.com/twmb/franz-go/pkg/kmsg"

// A session is a fetch session (KIP-227): after its first fetch, a request
// names the partitions whose position has changed, and an answer those that
// have news. A nil session is none.
type session struct {
	id    int32
	epoch int32 // of the next request; 0 begins a session
	asked map[partition]int64
}

func (s *session) begin(msg *kmsg.FetchRequest) {
	msg.SessionEpoch = -1
	if s != nil && msg.Version >= 7 {
		msg.SessionID, msg.SessionEpoch = s.id, s.epoch
	}
}

// wants says whether the request must name a partition.
func (s *session) wants(p partition, next int64) bool {
	if s == nil {
		return true
	}
	if s.epoch == 0 {
		s.asked[p] = next
		return true
	}
	if before, ok := s.asked[p]; ok && before == next {
		return false
	}
	s.asked[p] = next
	return true
}

// goesOn notes an answer without an error; it says whether it was one to an
// incremental fetch.
func (s *session) goesOn(resp *kmsg.FetchResponse) bool {
	if s == nil || resp.Version < 7 {
		return false
	}
	incremental := s.epoch > 0
	if s.id = resp.SessionID; s.id == 0 {
		s.end() // the server keeps none
	} else {
		s.epoch++
	}
	return incremental
}

// end makes the next fetch begin a session.
func (s *session) end() {
	if s != nil {
		s.id, s.epoch = 0, 0
		clear(s.asked)
	}
}
