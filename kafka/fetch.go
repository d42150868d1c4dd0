package kafka

// Fetch (key 1), v4 to v18.
//
// Waits until MinBytes are there or MaxWait is over. The log keeps the limits
// of a partition and of the whole answer (ours is Limits.FetchBytes), and gives
// the first batch whole. Partitions are served in their order; in a session
// those that got data go to the end. v4: read_committed; there are no
// transactions yet, so nothing is aborted. v5: log start. v7: sessions
// (fetch_session.go). v9, v12: leader epochs are checked, DivergingEpoch says
// where to truncate (KIP-320, KIP-595). v10: zstd. A topic with
// compression.type=zstd is UNSUPPORTED_COMPRESSION_TYPE below v10, for its
// partitions alone; what is stored as a producer sent it (compression.type=
// producer) is given to every version, zstd too, as Kafka does. v11: no other
// replica is preferred. v12, v16: NOT_LEADER_OR_FOLLOWER and
// FENCED_LEADER_EPOCH come with the leader, and its address (KIP-951). v13:
// topics by id. What v15, v17 and v18 add to requests is for replicas.

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// fetchFactor bounds the memory of a waiting fetch, in lengths of its frame: 16
// bytes make a partition, and what is asked of the log and answered for it.
const fetchFactor = 32

// fetchAnswer is a Fetch request that waits its turn.
type fetchAnswer struct {
	request                 *request
	maxWait                 time.Duration
	minBytes, maxBytes      int
	isolation               siltstone.Isolation
	sessionID, sessionEpoch int32
	wanted                  []fetchPartition
	forgotten               []fetchKey
}

func startFetch(_ *conn, r *request) (answer, error) {
	q := kmsg.NewPtrFetchRequest()
	if err := decode(q, r); err != nil {
		return nil, err
	}
	limits := &r.server.limits
	a := &fetchAnswer{
		request:   r,
		maxWait:   min(milliseconds(q.MaxWaitMillis), limits.Idle),
		maxBytes:  max(0, min(int(q.MaxBytes), limits.FetchBytes)),
		sessionID: q.SessionID, sessionEpoch: q.SessionEpoch,
	}
	a.minBytes = max(0, min(int(q.MinBytes), a.maxBytes))
	if q.IsolationLevel == 1 {
		a.isolation = siltstone.ReadCommitted
	}
	a.wanted, a.forgotten = roomFor(q)
	for i := range q.Topics {
		t := &q.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			a.wanted = append(a.wanted, fetchPartition{
				fetchKey:      fetchKey{t.Topic, t.TopicID, p.Partition},
				offset:        siltstone.Offset(p.FetchOffset),
				maxBytes:      int(max(0, p.PartitionMaxBytes)),
				epoch:         siltstone.Epoch(p.CurrentLeaderEpoch),
				lastEpoch:     siltstone.Epoch(p.LastFetchedEpoch),
				highWatermark: -1, logStart: -1,
			})
		}
	}
	for i := range q.ForgottenTopics {
		t := &q.ForgottenTopics[i]
		for _, p := range t.Partitions {
			a.forgotten = append(a.forgotten, fetchKey{t.Topic, t.TopicID, p})
		}
	}
	r.shrink(fetchFactor)
	return a, nil
}

// roomFor is as much as the partitions of a request take, and no more.
func roomFor(q *kmsg.FetchRequest) (wanted []fetchPartition, forgotten []fetchKey) {
	w, f := 0, 0
	for i := range q.Topics {
		w += len(q.Topics[i].Partitions)
	}
	for i := range q.ForgottenTopics {
		f += len(q.ForgottenTopics[i].Partitions)
	}
	return make([]fetchPartition, 0, w), make([]fetchKey, 0, f)
}

func (*fetchAnswer) ready() bool { return false }

func (a *fetchAnswer) respond(ctx context.Context, out *outbox) error {
	s := a.request.server
	session, incremental, err := a.session()
	if err != nil {
		out.fetch(a.request, &fetched{code: s.refuse(err)})
		return nil
	}
	answer := fetched{isolation: a.isolation}
	if session != nil {
		defer s.sessions.put(session)
		answer.sessionID = session.id
	}
	parts, err := a.read(ctx, a.partitions(session), out)
	if err != nil {
		return err
	}
	info := s.cluster.Describe()
	for i := range parts {
		p := &parts[i]
		if incremental && !p.isNews() {
			continue
		}
		if session != nil {
			p.tell(session)
		}
		if p.err != nil {
			p.code = a.refuse(p.err)
			answer.point(s, &info, p)
		}
		answer.parts = append(answer.parts, p)
	}
	out.fetch(a.request, &answer)
	return nil
}

// session finds or begins the session of the request and brings it up to date:
// nil where there is none. Incremental says that the answer is to have only
// what changed.
func (a *fetchAnswer) session() (f *fetchSession, incremental bool, err error) {
	cache := a.request.server.sessions
	byID := a.request.version >= 13
	if a.sessionEpoch == epochFull || a.sessionEpoch == epochFinal {
		if old := cache.take(a.sessionID); old != nil {
			cache.drop(old)
		}
		if a.sessionEpoch == epochFinal || len(a.wanted) == 0 {
			return nil, false, nil
		}
		if f = cache.add(byID, len(a.wanted)); f == nil {
			return nil, false, nil
		}
	} else {
		if f = cache.take(a.sessionID); f == nil {
			return nil, false, kerr.FetchSessionIDNotFound
		}
		switch {
		case f.epoch != a.sessionEpoch:
			err = kerr.InvalidFetchSessionEpoch
		case f.byID != byID:
			err = kerr.FetchSessionTopicIDError
		}
		if err != nil {
			cache.put(f)
			return nil, false, err
		}
		incremental = true
	}
	f.update(a.wanted, a.forgotten)
	if f.epoch++; f.epoch <= 0 { // after the largest comes 1
		f.epoch = 1
	}
	return f, incremental, nil
}

// partitions is what to fetch, in order.
func (a *fetchAnswer) partitions(session *fetchSession) []*fetchPartition {
	var all []*fetchPartition
	if session != nil {
		for at := session.order.Front(); at != nil; at = at.Next() {
			all = append(all, at.Value.(*fetchPartition)) //nolint:forcetypeassert // nothing else is in the list
		}
		return all
	}
	for i := range a.wanted {
		all = append(all, &a.wanted[i])
	}
	return all
}

// read fetches partitions from the log. What it gives is given back when the
// outbox has written it.
func (a *fetchAnswer) read(ctx context.Context, wanted []*fetchPartition, out *outbox) ([]fetchedPart, error) {
	s := a.request.server
	view := s.topics.Topics()
	parts := make([]fetchedPart, len(wanted))
	q := siltstone.FetchRequest{
		Deadline: time.Now().Add(a.maxWait), MinBytes: a.minBytes, MaxBytes: a.maxBytes, Isolation: a.isolation,
	}
	var asked []*fetchedPart
	for i, w := range wanted {
		p := &parts[i]
		*p = fetchedPart{want: w, highWatermark: -1, lastStable: -1, logStart: -1, divergingEpoch: -1, divergingEnd: -1, leader: -1, leaderEpoch: -1}
		if p.tp, p.err = a.find(view, w); p.err != nil {
			continue
		}
		asked = append(asked, p)
		q.Parts = append(q.Parts, siltstone.FetchPart{
			Partition: p.tp, Offset: w.offset, MaxBytes: w.maxBytes, Epoch: w.epoch, LastEpoch: w.lastEpoch,
		})
	}
	if len(asked) == 0 {
		return parts, nil
	}
	result, err := s.log.Fetch(ctx, &q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, errStopping
		}
		for _, p := range asked {
			p.err = err
		}
		return parts, nil
	}
	if result.Release != nil {
		out.release = append(out.release, result.Release)
	}
	if result.Wanted != nil {
		out.wanted = append(out.wanted, result.Wanted)
	}
	for i, p := range asked {
		p.take(&result.Parts[i])
	}
	return parts, nil
}

// find finds the partition that a client names, and whether it may read it.
func (a *fetchAnswer) find(view *topic.View, w *fetchPartition) (tp siltstone.TopicPartition, err error) {
	var t *topic.Topic
	var ok bool
	if a.request.version >= 13 {
		if t, ok = view.TopicByID(w.topicID); !ok {
			return tp, kerr.UnknownTopicID
		}
	} else if t, ok = view.Topic(w.topic); !ok {
		return tp, siltstone.ErrUnknownPartition
	}
	tp = siltstone.TopicPartition{Topic: t.ID, Partition: w.partition}
	if w.partition < 0 || w.partition >= t.Partitions {
		return tp, siltstone.ErrUnknownPartition
	}
	if c := t.Config(); a.request.version < 10 && !c.AsProduced && c.Codec == batch.Zstd {
		return tp, kerr.UnsupportedCompressionType
	}
	return tp, nil
}

// refuse is an error's code in the words of the request's version.
func (a *fetchAnswer) refuse(err error) int16 {
	code := a.request.server.refuse(err)
	if a.request.version < 6 && code == kerr.KafkaStorageError.Code { // came with v6
		return kerr.NotLeaderForPartition.Code
	}
	return code
}

// fetchedPart is what became of one partition.
type fetchedPart struct {
	want *fetchPartition
	tp   siltstone.TopicPartition
	err  error
	code int16

	highWatermark, lastStable, logStart siltstone.Offset
	records                             [][]byte
	recordBytes                         int
	divergingEpoch                      siltstone.Epoch
	divergingEnd                        siltstone.Offset
	leader                              int32
	leaderEpoch                         siltstone.Epoch
}

// take takes over what the log gave.
func (p *fetchedPart) take(from *siltstone.FetchedPart) {
	p.err = from.Err
	p.highWatermark, p.lastStable, p.logStart = from.HighWatermark, from.LastStable, from.Start
	if from.Err != nil {
		return
	}
	p.divergingEpoch, p.divergingEnd = from.DivergingEpoch, from.DivergingEnd
	p.records = from.Records
	for _, b := range from.Records {
		p.recordBytes += len(b)
	}
}

// isNews says whether an incremental answer has the partition.
func (p *fetchedPart) isNews() bool {
	return p.recordBytes > 0 || p.err != nil || p.divergingEpoch >= 0 ||
		p.highWatermark != p.want.highWatermark || p.logStart != p.want.logStart
}

// tell notes what the client is told. After an error it is to hear of the
// partition again, whatever comes.
func (p *fetchedPart) tell(session *fetchSession) {
	p.want.highWatermark, p.want.logStart = p.highWatermark, p.logStart
	if p.err != nil {
		p.want.highWatermark = -1
	}
	if p.recordBytes > 0 {
		session.served(p.want)
	}
}
