package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// take goes on with a new share: what it had and keeps from where it is, what
// is new to it from the committed offsets on. In a cooperative team it commits
// what it gives up, and joins again.
func (m *member) take(share []partition) {
	had := map[partition]int64{}
	if m.reader != nil {
		had = m.reader.next
	}
	revoked := slices.DeleteFunc(slices.Clone(m.owned), func(p partition) bool { return slices.Contains(share, p) })
	if len(revoked) > 0 {
		m.sendCommit(revoked, had, func() {})
		m.later(time.Millisecond, m.join)
	}
	from := map[partition]int64{}
	var ask []partition
	for _, p := range share {
		if at, known := had[p]; known && slices.Contains(m.owned, p) {
			from[p] = at
		} else {
			ask = append(ask, p)
		}
	}
	m.owned = share
	m.stopReading()
	if len(share) > 0 {
		m.learn(ask, from)
	}
}

// learn asks for committed offsets, and reads from there on.
func (m *member) learn(ask []partition, from map[partition]int64) {
	if len(ask) == 0 {
		m.read(from)
		return
	}
	of := &recallAsk{group: m.team.group, partitions: ask, as: m.standing()}
	q := &recallRequest{version: m.habits.versions.fetch, asks: []*recallAsk{of}}
	var sent moment
	m.ask(m.guide.timeout, func() kmsg.Request {
		sent = m.history.tick()
		return q.message(m.guide)
	}, func(resp kmsg.Response, err error) {
		if err == nil {
			q.answer(resp.(*kmsg.OffsetFetchResponse), m.guide)
		}
		switch {
		case err != nil || m.line.moved(of.code):
			m.later(m.dice.duration(50*time.Millisecond, 200*time.Millisecond), func() { m.learn(ask, from) })
			return
		case m.refused(of.code, "fetch offsets as"):
			return
		}
		m.history.recalled(m.name, sent, q)
		for _, r := range of.found {
			m.world.tracef("%s finds %s committed at %d by %q", m.name, r.partition, r.offset, r.id)
			if r.offset >= 0 {
				from[r.partition] = r.offset
			}
		}
		m.read(from)
	})
}

// read reads what it owns; partitions for which there is no place to begin
// from the start of their logs.
func (m *member) read(from map[partition]int64) {
	d := m.dice
	m.reader = &consumer{
		guide: m.guide, world: m.world, history: m.history, name: m.name, dice: d, partitions: slices.Clone(m.owned),
		version: [...]int16{4, 11, 12, 13, 16}[d.below(5)],
		maxWait: d.duration(100*time.Millisecond, m.guide.timeout/2), maxBytes: 256 << 10, rest: d.duration(0, 100*time.Millisecond),
	}
	m.reader.beginAt(from)
}

// commitNow commits how far it has read, and comes again.
func (m *member) commitNow() {
	m.later(m.dice.duration(m.habits.pace/2, m.habits.pace*3/2), m.commitNow)
	if m.reader == nil || m.committing {
		return
	}
	m.committing = true
	m.sendCommit(m.owned, m.reader.next, func() { m.committing = false })
}

// sendCommit commits positions for those partitions that have one. Sometimes
// it does so a good while later, whatever has become of it by then.
func (m *member) sendCommit(parts []partition, at map[partition]int64, done func()) {
	q := commitRequest{version: m.habits.versions.commit, as: m.standing()}
	for _, p := range parts {
		if offset, known := at[p]; known {
			q.commits = append(q.commits, &commit{
				standing: q.as, partition: p, id: m.team.commitID(), offset: offset, epoch: int32(m.dice.between(-1, 3)),
			})
		}
	}
	if len(q.commits) == 0 {
		done()
		return
	}
	m.send(q, done)
	if m.habits.wild && m.dice.chance(0.3) {
		m.world.after(m.dice.duration(0, 5*time.Second), func() { m.now(func() { m.sendLate(q) }) })
	}
}

// sendLate speaks once more as what it was, if it has begun another life since,
// on another connection: it commits what it had committed, or sends a heartbeat.
func (m *member) sendLate(q commitRequest) {
	if q.as == m.standing() && m.stable > 0 {
		return
	}
	if m.dice.chance(0.3) {
		m.beatLate(q.as)
		return
	}
	late := commitRequest{version: q.version, as: q.as}
	for _, c := range q.commits {
		again := *c
		again.id, again.got, again.acked, again.refused = m.team.commitID(), 0, false, false
		late.commits = append(late.commits, &again)
	}
	m.world.tracef("%s commits late, as %s", m.name, q.as)
	m.late.ask(m.guide.timeout, func() kmsg.Request { return late.message(m.history, m.guide) }, func(resp kmsg.Response, err error) {
		if err == nil {
			late.answer(m.history, m.guide, resp.(*kmsg.OffsetCommitResponse))
		}
	})
}

func (m *member) beatLate(as standing) {
	m.world.tracef("%s sends a heartbeat late, as %s", m.name, as)
	var sent moment
	m.late.ask(m.guide.timeout, func() kmsg.Request {
		sent = m.history.tick()
		return m.beat(as)
	}, func(resp kmsg.Response, err error) {
		if err == nil && !m.world.refused(m.name, resp.(*kmsg.HeartbeatResponse).ErrorCode, "heartbeat of %s", as) {
			m.accepted(as, "a heartbeat", sent)
		}
	})
}

// send sends a commit, and goes on after its answer. Its outcome counts
// whatever life it comes in.
func (m *member) send(q commitRequest, done func()) {
	life := m.life
	m.line.ask(m.guide.timeout, func() kmsg.Request { return q.message(m.history, m.guide) }, func(resp kmsg.Response, err error) {
		m.now(done)
		if err != nil {
			return
		}
		code := q.answer(m.history, m.guide, resp.(*kmsg.OffsetCommitResponse))
		for _, x := range q.commits {
			if x.acked {
				m.lastCommit, m.committed[x.partition] = x.got, x.offset
			}
		}
		m.now(func() {
			switch {
			case m.life != life || m.line.moved(code):
			case code == kerr.RebalanceInProgress.Code:
				m.rejoin()
			case code != 0:
				m.refused(code, "commit as")
			}
		})
	})
}

// rejoin joins the next generation, having committed, or not.
func (m *member) rejoin() {
	if m.reader != nil && m.dice.chance(0.7) {
		m.sendCommit(m.owned, m.reader.next, func() {})
		m.later(5*time.Millisecond, m.join)
		return
	}
	m.join()
}
