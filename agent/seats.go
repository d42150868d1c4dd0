package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// A seat is the office of leading a shard, as an agent sees it that has it, or
// may come to have it. What is decided here is who tries, and when; whether it
// is safe is for the fold.
type seat struct {
	// vacantFrom is since when nobody who lives is known to lead the shard;
	// zero: somebody is.
	vacantFrom time.Time
	// read is when the shard was begun to be read last: what it says may have
	// changed since.
	read time.Time
	// unread: it is to be read anew, as soon as it can be.
	unread bool

	// led and ledIn are who led it last, as far as this agent knows, for clients:
	// one that has handed it over knows to whom.
	led   siltstone.Incarnation
	ledIn siltstone.Epoch

	// known is since when it is known who has the seat, by the ledger: whether
	// that one lives counts only as of later.
	known time.Time
	// proposed is when this agent's last Lead was proposed, accepted when it
	// accepted the seat from another.
	proposed, accepted time.Time

	// served is the last epoch in which this agent led: it does not begin in that again.
	served siltstone.Epoch

	// Of who has the seat.
	offered   siltstone.Incarnation // who was asked to take it
	offeredAt time.Time
	heir      siltstone.Incarnation // has accepted: it is handed over, nothing is taken for it
	heirUntil time.Time             // then that is given up
	handedAt  time.Time             // when it came from another that lives

	// Of who is asked to take it, and reads the shard until it can.
	askedBy siltstone.Incarnation
}

const (
	// turnWait is how long each agent waits for the one before it to take a vacant seat.
	turnWait = 500 * time.Millisecond
	// readAgain is how soon a shard is read again that nobody seems to lead.
	readAgain = time.Second
	// offerAgain is how soon one is asked again who has not accepted.
	offerAgain = 5 * time.Second
	// handTime is what handing over may take.
	handTime = 10 * time.Second
	// moveLeast is how long a shard stays where it was handed to.
	moveLeast = time.Minute
)

// A seated shard is a log shard, or one of groups.
type seated interface {
	seat() *seat
	named() peer.Shard
	ledger() string
	stands() shardState
	// office is what the fold has: who leads, nobody if it is sealed.
	office() (leader siltstone.Incarnation, epoch siltstone.Epoch)
	// isr are those of whom one may hold what is not flushed, if they are two or more.
	isr() []siltstone.Incarnation
	// busy says whether something is in flight to its ledger.
	busy() bool
	// load begins to read the shard.
	load(c *core)
}

func (s *ledShard) seat() *seat        { return &s.seated }
func (s *ledShard) named() peer.Shard  { return peer.Shard{Shard: s.id} }
func (s *ledShard) ledger() string     { return s.log.Name() }
func (s *ledShard) stands() shardState { return s.state }
func (s *ledShard) busy() bool         { return s.log.Busy() }
func (s *ledShard) load(c *core)       { c.load(s) }
func (s *ledShard) office() (siltstone.Incarnation, siltstone.Epoch) {
	return s.fold().Leader(), s.fold().Epoch()
}

func (s *ledShard) isr() []siltstone.Incarnation { return s.fold().ISR() }

func (s *groupShard) seat() *seat        { return &s.seated }
func (s *groupShard) named() peer.Shard  { return peer.Shard{Group: true, Shard: s.id} }
func (s *groupShard) ledger() string     { return s.log.Name() }
func (s *groupShard) stands() shardState { return s.state }
func (s *groupShard) busy() bool         { return s.log.Busy() }
func (s *groupShard) load(c *core)       { c.loadGroups(s) }

// isr is nobody: what groups acknowledge is appended.
func (s *groupShard) isr() []siltstone.Incarnation { return nil }

func (s *groupShard) office() (siltstone.Incarnation, siltstone.Epoch) {
	return s.log.Fold().Leader(), s.log.Fold().Epoch()
}

// allSeats are all shards, those of logs first.
func (c *core) allSeats() func(yield func(seated) bool) {
	return func(yield func(seated) bool) {
		for _, s := range c.shards {
			if !yield(s) {
				return
			}
		}
		for _, s := range c.groups {
			if !yield(s) {
				return
			}
		}
	}
}

// find is a shard that another agent names; nil if there is none.
func (c *core) find(n peer.Shard) seated {
	switch {
	case n.Shard < 0 || n.Group && n.Shard >= len(c.groups) || !n.Group && n.Shard >= len(c.shards):
		return nil
	case n.Group:
		return c.groups[n.Shard]
	}
	return c.shards[n.Shard]
}

// order is who is to lead a shard, the first of them first.
func (c *core) order(s seated) []siltstone.Incarnation {
	plan, n := c.members.logs, s.named()
	if n.Group {
		plan = c.members.groups
	}
	if n.Shard >= len(plan) {
		return nil
	}
	return plan[n.Shard]
}

// claimed is who says that it leads a shard, of the others that live; the newest epoch counts.
func (c *core) claimed(s seated) (by siltstone.Incarnation, in siltstone.Epoch) {
	n := s.named()
	for _, o := range c.members.others {
		if o.status == nil {
			continue
		}
		led := o.status.Logs
		if n.Group {
			led = o.status.Groups
		}
		i, ok := slices.BinarySearchFunc(led, n.Shard, func(l peer.Led, shard int) int { return cmp.Compare(l.Shard, shard) })
		if ok && led[i].Epoch > in {
			by, in = o.Incarnation, led[i].Epoch
		}
	}
	return by, in
}

// leaderOf is who leads a shard, as far as this agent knows; nobody if it does not.
func (c *core) leaderOf(s seated) (leader siltstone.Incarnation, epoch siltstone.Epoch) {
	own, at := s.office()
	if s.stands() == serving {
		return c.opts.Incarnation, at
	}
	if by, in := c.claimed(s); by != 0 {
		return by, in
	}
	if s.stands() == standing && own != c.opts.Incarnation && c.listed(own) {
		return own, at
	}
	return 0, 0
}

// lookSeats does what is due about who leads what. Whatever that depends on,
// but for the time, is also in the status, so it is as stale.
func (c *core) lookSeats() {
	if !c.statusStale && (c.seatsNext.IsZero() || c.now.Before(c.seatsNext)) {
		return
	}
	c.seatsNext = time.Time{}
	if c.draining || !c.mayElect() {
		return
	}
	for s := range c.allSeats() {
		if s.stands() == serving {
			c.lookHandover(s)
		} else {
			c.lookVacant(s)
		}
	}
	c.seatsNext = c.seatsDue()
}

// lookVacant reads a shard that nobody is known to lead, if it is this agent's
// turn: what the fold says then decides whether it is proposed as the leader.
func (c *core) lookVacant(s seated) {
	seat := s.seat()
	if by, _ := c.claimed(s); by != 0 {
		seat.vacantFrom, seat.read = time.Time{}, time.Time{}
		if led, ok := s.(*ledShard); ok {
			c.openedElsewhere(led)
		}
		return
	}
	if seat.vacantFrom.IsZero() {
		seat.vacantFrom = c.now
	}
	if leader, _ := s.office(); s.stands() == standing && !c.listed(leader) && !c.free(s) {
		if c.members.due.After(c.now.Add(beatAgain)) { // else they are about to be, or cannot be
			c.members.due = c.now
		}
		return // the registers are to be read first
	}
	if due := c.vacantDue(s); !due.IsZero() && !due.After(c.now) {
		c.readShard(s)
	}
}

// vacantDue is when a shard without a leader is to be read; zero: not by this
// agent, or it has been, and may be led.
func (c *core) vacantDue(s seated) time.Time {
	seat := s.seat()
	switch s.stands() {
	case standing:
		if c.free(s) {
			return time.Time{}
		}
	case absent:
	default:
		return time.Time{}
	}
	turn := c.turnIn(c.order(s), seat.vacantFrom)
	if again := seat.read.Add(readAgain); !turn.IsZero() && !seat.read.IsZero() && again.After(turn) {
		return again
	}
	return turn
}

// turnOf is when it is this agent's turn to take a vacant seat; zero if never.
func (c *core) turnOf(s seated) time.Time {
	order, from := c.order(s), s.seat().vacantFrom
	if from.IsZero() {
		return from
	}
	if isr := s.isr(); s.stands() == standing && len(isr) > 1 && !c.opts.Plant.Is(planted.LeadWithoutTail) {
		switch inISR := func(i siltstone.Incarnation) bool { return slices.Contains(isr, i) }; {
		case inISR(c.opts.Incarnation):
			order = slices.DeleteFunc(slices.Clone(order), func(i siltstone.Incarnation) bool { return !inISR(i) })
		case slices.ContainsFunc(isr, c.listed):
			return time.Time{} // one that lives may hold what is not flushed
		default:
			for _, i := range isr {
				if silent := c.members.silent[i]; silent.After(from) && !c.opts.Plant.Is(planted.UncleanWhileHeard) {
					from = silent
				}
			}
			from = from.Add(c.uncleanGrace())
		}
	}
	return c.turnIn(order, from)
}

// turnIn is when it is this agent's turn of those in an order, each of whom
// waits for the one before it; zero if it is not among them, or nothing is vacant.
func (c *core) turnIn(order []siltstone.Incarnation, from time.Time) time.Time {
	rank := slices.Index(order, c.opts.Incarnation)
	if rank < 0 || from.IsZero() {
		return time.Time{}
	}
	if slices.ContainsFunc(c.members.others, func(o *member) bool { return o.status == nil }) {
		rank++ // one that has said nothing yet may lead it
	}
	return from.Add(time.Duration(rank) * turnWait)
}

// free says whether nobody who lives leads a shard, by its fold. One that is
// not listed may have come back since the registers were read, and have been
// elected since: they must have been read after its Lead was known.
func (c *core) free(s seated) bool {
	leader, _ := s.office()
	return leader == 0 || leader == c.opts.Incarnation || c.members.alone ||
		!c.listed(leader) && !c.members.listed.Before(s.seat().known)
}

// memberSince says whether this agent has had its register ever since a time.
// Else others may have taken it for dead, and be about to take over whatever it
// came to lead by what it did then.
func (c *core) memberSince(at time.Time) bool {
	return c.members.alone || !at.IsZero() && !at.Before(c.members.since)
}

// elected says whether this agent, whom a Lead of its own has just named, may
// serve by it: it does not come late.
func (c *core) elected(s seated, mine bool) bool {
	return mine && c.memberSince(s.seat().proposed)
}

// inherits says whether this agent, having read a shard, may serve it because
// another that led it has named it.
func (c *core) inherits(s seated) bool {
	leader, epoch := s.office()
	return leader == c.opts.Incarnation && epoch > s.seat().served && c.members.on && c.memberSince(s.seat().accepted)
}

// mayTake says whether this agent is to try to lead a shard that it has read.
func (c *core) mayTake(s seated) bool {
	turn := c.turnOf(s)
	return !c.draining && c.mayElect() && c.free(s) && !turn.IsZero() && !turn.After(c.now)
}

// lookHandover offers a shard to who is to lead it.
func (c *core) lookHandover(s seated) {
	seat := s.seat()
	seat.vacantFrom = time.Time{}
	if seat.heir != 0 && (c.now.After(seat.heirUntil) || !c.listed(seat.heir)) {
		seat.heir, seat.offered = 0, 0
	}
	if due := c.offerDue(s); due.IsZero() || due.After(c.now) {
		return
	}
	seat.offered, seat.offeredAt = c.order(s)[0], c.now
	c.tell(seat.offered, &peer.Offer{Shard: s.named()})
}

// offerDue is when a shard that this agent leads is to be offered to another; zero if never.
func (c *core) offerDue(s seated) time.Time {
	seat, order := s.seat(), c.order(s)
	if len(order) == 0 || order[0] == c.opts.Incarnation || seat.heir != 0 {
		return time.Time{}
	}
	if o := c.member(order[0]); o == nil || !o.up {
		return time.Time{}
	}
	due := c.members.since
	if seat.offered == order[0] {
		due = seat.offeredAt.Add(offerAgain)
	}
	if !seat.handedAt.IsZero() {
		if stays := seat.handedAt.Add(moveLeast); stays.After(due) {
			due = stays
		}
	}
	return due
}

// seatsDue is when lookSeats has something to do with no event; zero if never.
// What was due has been done, or waits for an event.
func (c *core) seatsDue() (due time.Time) {
	sooner := func(t time.Time) {
		if t.After(c.now) && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for s := range c.allSeats() {
		switch {
		case s.stands() != serving:
			sooner(c.vacantDue(s))
			if s.stands() == standing && c.free(s) {
				sooner(c.turnOf(s))
			}
		case s.seat().heir != 0:
			sooner(s.seat().heirUntil)
		default:
			sooner(c.offerDue(s))
		}
	}
	return due
}

// heardOffer reads a shard that this agent is asked to lead.
func (c *core) heardOffer(from siltstone.Incarnation, n peer.Shard) {
	s := c.find(n)
	if s == nil || c.draining || !c.mayElect() || s.stands() == serving {
		return
	}
	s.seat().askedBy = from
	if s.stands() != loading {
		c.readShard(s)
	}
}

// readShard begins to read a shard, once another reading has ended, and nothing
// is in flight to its ledger: what came of that would be folded meanwhile, and
// the reading be older.
func (c *core) readShard(s seated) {
	seat := s.seat()
	if s.busy() || s.stands() == loading {
		seat.unread = true
		return
	}
	seat.unread, seat.read = false, c.now
	s.load(c)
}

// readFor accepts a shard that has been read, if this agent was asked to lead
// it; it is read once more if it has to be.
func (c *core) readFor(s seated) {
	seat := s.seat()
	if seat.unread {
		c.readShard(s)
		return
	}
	if seat.askedBy != 0 {
		c.tell(seat.askedBy, &peer.Accept{Shard: s.named()})
		seat.askedBy, seat.accepted = 0, c.now
	}
}

// heardAccept begins to hand a shard over.
func (c *core) heardAccept(from siltstone.Incarnation, n peer.Shard) {
	s := c.find(n)
	if s == nil || s.stands() != serving || c.draining || s.seat().offered != from || s.seat().heir != 0 {
		return
	}
	s.seat().heir, s.seat().heirUntil, c.statusStale = from, c.now.Add(handTime), true
}

// handed is for a shard that another leads now, by a Lead that names it.
func (c *core) handed(s seated) {
	seat := s.seat()
	if heir := seat.heir; heir != 0 {
		c.tell(heir, &peer.Handed{Shard: s.named()})
	}
	*seat = seat.anew()
}

// anew is a seat that this agent does not have.
func (s *seat) anew() seat {
	return seat{
		askedBy: s.askedBy, led: s.led, ledIn: s.ledIn, served: s.served,
		known: s.known, proposed: s.proposed, accepted: s.accepted, unread: s.unread,
	}
}

// heardHanded reads a shard anew that names this agent as its leader.
func (c *core) heardHanded(n peer.Shard) {
	if s := c.find(n); s != nil && (s.stands() == standing || s.stands() == loading) {
		c.readShard(s)
	}
}
