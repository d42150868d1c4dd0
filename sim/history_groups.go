package sim

import "fmt"

// A standing is as what somebody speaks to a group's coordinator.
type standing struct {
	group, member, instance string
	generation              int32 // -1: as nobody's member
}

func (s standing) String() string {
	name := s.member
	if s.instance != "" {
		name = s.instance + " (" + s.member + ")"
	}
	return fmt.Sprintf("%s in generation %d of %s", name, s.generation, s.group)
}

// A groupHistory is what clients of groups did and were shown.
type groupHistory struct {
	attempts     []*attempt
	joinings     []joining
	allotments   []allotment
	sharings     []sharing
	acts         []act
	leavings     []leaving
	commits      []*commit
	recalls      []recall
	losses       []*loss
	descriptions []description
	listings     []listing
	anew         []moment // at which agents booted, or woke: their groups may begin anew
	several      bool     // agents share the groups
	// expires: it is looked after groups and offsets that have become old.
	expires bool
	// settled is when all groups had their members, in a history in which they
	// keep them.
	settled    moment
	expulsions []standing // told to members after that
}

// An attempt is a JoinGroup, whatever came of it.
type attempt struct {
	group     string
	sent, got moment // got is 0 while there is no answer
}

// A joining is a JoinGroup that made somebody a member.
type joining struct {
	standing  // as answered
	sent, got moment
	leader    string
	protocol  string
	offered   []string
	members   []string // ids, for the leader; nil for others
}

// An allotment is what a leader gave in its SyncGroup.
type allotment struct {
	standing
	sent   moment
	mark   string // in each assignment; names the allotment
	shares map[string][]partition
}

// A sharing is an answer to a SyncGroup.
type sharing struct {
	standing
	sent, got  moment
	mark       string // empty: it was given nothing
	partitions []partition
}

// An act is something that the coordinator took from a member.
type act struct {
	standing
	what      string
	sent, got moment
}

// A leaving is a LeaveGroup that took somebody out.
type leaving struct {
	standing
	sent, got moment
}

// A commit is an offset committed for one partition, sent once.
type commit struct {
	standing
	partition partition
	id        string // in its metadata; names the commit
	offset    int64
	epoch     int32
	sent, got moment // got is 0 while there is no answer
	acked     bool
	refused   bool // for certain
}

// end is when it had happened, if it did.
func (c *commit) end() moment { return endOf(c.got, c.acked) }

// endOf is the moment by which something that was sent has happened, if it
// did: only an answer that it has says so.
func endOf(got moment, acked bool) moment {
	if acked {
		return got
	}
	return never
}

// never is later than any moment.
const never moment = 1 << 62

// A recall is what an OffsetFetch showed of one partition.
type recall struct {
	group     string
	partition partition
	asker     string
	sent, got moment
	id        string // of the commit that it shows; empty where there is none
	offset    int64  // -1: none
	epoch     int32  // -1: not shown
}

// A loss is something by which committed offsets may be forgotten.
type loss struct {
	what      string
	group     string // empty: of all groups
	topic     string // empty: of all topics
	partition int32  // -1: all
	ends      bool   // the group itself, too
	sent, got moment
	acked     bool
	refused   bool   // for certain: nothing was lost
	over      moment // by when it has happened, if nobody says so and it did; 0: nobody knows
}

func (l *loss) end() moment { return endOf(max(l.got, l.over), l.acked || l.over > 0) }

// concerns says whether offsets of a partition may be lost by it.
func (l *loss) concerns(group string, p partition) bool {
	return !l.refused && (l.group == "" || l.group == group) && (l.topic == "" || l.topic == p.topic) && (l.partition < 0 || l.partition == p.number)
}

// A description is what DescribeGroups told of a group.
type description struct {
	group     string
	sent, got moment
	state     string
	members   []described
}

type described struct {
	id         string
	mark       string
	partitions []partition
}

// A listing is an answer to ListGroups, without filters.
type listing struct {
	sent, got moment
	groups    map[string]bool
}
