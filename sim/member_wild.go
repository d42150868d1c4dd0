package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// misbehave lets a wild member do now and then what members do in the wild. It
// says whether this life is over.
func (m *member) misbehave() bool {
	switch roll := m.dice.below(100); {
	case roll < 10:
		m.sleep(m.dice.duration(m.habits.session/4, m.habits.session*3))
		return false
	case roll < 14:
		m.leave()
	case roll < 18:
		m.vanish()
		m.team.follow(m)
	case roll < 26 && m.habits.instance != "":
		m.team.follow(m) // while it lives
		return false
	case roll < 32:
		m.rejoin()
	default:
		return false
	}
	return true
}

// sleep is a pause of the process: then all goes on as if nothing had been.
func (m *member) sleep(d time.Duration) {
	m.world.tracef("%s sleeps for %v", m.name, d)
	m.asleep = true
	m.world.after(d, m.wake)
}

// wake does what has come up meanwhile, one thing at a time.
func (m *member) wake() {
	if len(m.held) == 0 || m.stopped {
		m.asleep, m.held = false, nil
		return
	}
	do := m.held[0]
	m.held = m.held[1:]
	do()
	m.world.soon(m.wake)
}

// leave is a goodbye; after a while it comes back as somebody new.
func (m *member) leave() {
	as := m.standing()
	msg := kmsg.NewPtrLeaveGroupRequest()
	msg.Version, msg.Group, msg.MemberID = m.habits.versions.leave, m.team.group, m.id
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID, one.InstanceID = m.id, m.instance()
	msg.Members = append(msg.Members, one)
	m.world.tracef("%s leaves %s", m.name, m.team.group)
	m.life++
	m.lose()
	var sent moment
	m.ask(m.guide.timeout, func() kmsg.Request {
		sent = m.history.tick()
		return msg
	}, func(resp kmsg.Response, err error) {
		if err == nil {
			m.left(as, sent, resp.(*kmsg.LeaveGroupResponse))
		}
		m.id = ""
		m.later(m.dice.duration(0, 5*time.Second), m.join)
	})
}

func (m *member) left(as standing, sent moment, r *kmsg.LeaveGroupResponse) {
	good := !m.world.refused(m.name, r.ErrorCode, "leave %s", as)
	for _, one := range r.Members {
		good = !m.world.refused(m.name, one.ErrorCode, "leave %s", as) && good
	}
	if good {
		m.history.groups.leavings = append(m.history.groups.leavings, leaving{as, sent, m.history.tick()})
	}
}
