package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// consumer is a client that does what its user's code, its network and its
// machine make of it.
type consumer struct {
	*client
}

// even draws a number below n, each about as often as the others: rapid's own
// ranges prefer small ones.
func even(t *rapid.T, n int, label string) int {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range 8 {
			v *= 2
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v % n
	}).Draw(t, label)
}

// groupIDs are the groups; nobody joins the last.
var groupIDs = []string{"g", "h", "i"}

func (j *judge) consumers() (all []*consumer) {
	for i := range 4 {
		c := j.client(groupIDs[i/3], fmt.Sprint("dynamic-", i))
		c.twoSteps = i%2 == 0
		all = append(all, &consumer{client: c})
	}
	for i := range 4 { // two of each instance
		c := j.static(groupIDs[0], fmt.Sprint("static-", i/2))
		c.maySkip = i%2 == 0
		all = append(all, &consumer{client: c})
	}
	for i, c := range all {
		c.session, c.rebalance = []int32{6000, 10_000, 30_000}[i%3], []int32{5000, 20_000, 60_000}[i%3]
	}
	return all
}

// hears takes what has been answered.
func (c *consumer) hears() {
	if r := c.client.join; r != nil && !c.w.waits(r) {
		c.client.join = nil
		switch {
		case r.Err == nil && r.Generation > 0:
			c.id, c.generation, c.leads, c.members = r.MemberID, r.Generation, r.MemberID == r.Leader && !r.SkipAssignment, r.Members
		case errors.Is(r.Err, ErrMemberIDRequired):
			c.id = r.MemberID
		case errors.Is(r.Err, ErrUnknownMember), errors.Is(r.Err, ErrFencedInstance), errors.Is(r.Err, ErrGroupFull):
			c.id, c.generation = "", -1
		}
	}
}

// does one thing.
func (c *consumer) does(j *judge, t *rapid.T) {
	c.hears()
	switch even(t, 26, "does") {
	case 0, 1, 2:
		if even(t, 4, "reads") == 0 {
			c.protocols = []Protocol{{"range", reads([]string{"a", "b"}[even(t, 2, "topic")])}, {"sticky", nil}}
		}
		c.sendsJoin(j)
	case 3, 4, 5:
		c.sendsSync(j)
	case 6:
		j.asks(&Heartbeat{Call: c.call(), Member: c.id, Instance: c.instance, Generation: c.generation})
	case 7, 8:
		r := outsider(c.group, at(1, int32(even(t, 2, "partition"))), 0)
		r.Member, r.Instance, r.Generation = c.id, c.instance, c.generation
		if even(t, 4, "stale") == 0 {
			r.Generation--
		}
		j.asks(r)
	case 9:
		j.asks(&Leave{Call: c.call(), Members: []LeavingMember{{Member: c.id, Instance: c.instance}}})
	case 10:
		c.id, c.generation = "", -1 // it is started anew
	default:
		c.goesOn(j)
	}
	c.hears()
}

func (c *consumer) sendsJoin(j *judge) {
	r := &Join{
		Call: c.call(), Member: c.id, Instance: c.instance, ClientID: c.name, Type: "consumer", Protocols: slices.Clone(c.protocols),
		SessionMS: c.session, RebalanceMS: c.rebalance, TwoSteps: c.twoSteps, MaySkip: c.maySkip,
	}
	c.client.join = r
	j.asks(r)
}

func (c *consumer) sendsSync(j *judge) {
	r := &Sync{Call: c.call(), Member: c.id, Instance: c.instance, Generation: c.generation}
	if c.leads {
		r.Assignments = map[string][]byte{}
		for _, m := range c.members {
			r.Assignments[m.ID] = fmt.Appendf(nil, "%d of %s by %s", c.generation, m.ID, c.id)
		}
	}
	c.client.sync = r
	j.asks(r)
}

// others do what is done from outside the group, and to the coordinator.
func (j *judge) others(t *rapid.T) {
	id := groupIDs[even(t, 3, "group")]
	tp := at(1, int32(even(t, 2, "partition")))
	switch even(t, 14, "other") {
	case 0:
		j.asks(outsider(id, tp, 0))
	case 1:
		j.asks(&DeleteOffsets{Call: Call{Group: id}, Parts: []DeletePart{{TopicPartition: tp}, {TopicPartition: at(2, 0)}}})
	case 2:
		j.asks(&Delete{Call{Group: id}})
	case 3, 4:
		j.asks(&Describe{Call: Call{Group: id}})
		j.asks(&Fetch{Call: Call{Group: id}, Generation: -1, All: true})
	case 5:
		j.restarts(rapid.Bool().Draw(t, "folded"), even(t, 3, "stops") == 0)
	case 6:
		r := outsider(id, at(1, 0), 0)
		for i := range int32(3) {
			r.Parts = append(r.Parts, partOf(at(3, i), 0))
			r.Parts[i+1].Metadata = strings.Repeat("x", even(t, 700, "metadata"))
		}
		j.asks(r)
	case 7:
		if even(t, 10, "long") == 0 {
			j.tick(j.now.Add(time.Duration(rapid.IntRange(0, 9*24).Draw(t, "hours")) * time.Hour))
		}
	case 8, 9:
		j.propose()
	case 10, 11, 12:
		if j.inFlight != nil {
			j.folds()
		}
	case 13:
		j.tick(j.now.Add(time.Duration([]int{1, 500, 2999, 6000, 20_000}[even(t, 5, "ms")]) * time.Millisecond))
	}
}

func TestWhatMustHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { live(t, newJudge(t)) })
}

// live lets everything happen, and then everybody do what is right.
func live(t *rapid.T, j *judge) {
	j.settings.InitialDelayMS = int32(rapid.SampledFrom([]int{0, 3000}).Draw(t, "delay"))
	j.settings.MaxMembers = rapid.SampledFrom([]int{2, 100}).Draw(t, "most")
	j.entryBytes = rapid.SampledFrom([]int{ledger.MaxBodyBytes, 2000, 1000}).Draw(t, "entry bytes")
	j.elect()
	all := j.consumers()
	for range rapid.IntRange(1, 300).Draw(t, "steps") {
		if n := even(t, len(all)+6, "who"); n < len(all) {
			all[n].does(j, t)
		} else {
			j.others(t)
		}
	}
	j.calm(all)
	j.silence()
}

// calm lets one client of each instance and all others go on as a client does,
// until their groups are stable.
func (j *judge) calm(all []*consumer) {
	j.settings.MaxMembers = 100
	j.settle()
	all = slices.DeleteFunc(all, func(c *consumer) bool { return c.instance != nil && c.maySkip })
	for range 300 {
		for _, c := range all {
			c.goesOn(j)
			j.settle()
		}
		j.pass(time.Second)
	}
	for _, id := range groupIDs[:2] {
		var want []string
		for _, c := range all {
			if c.group == id {
				want = append(want, c.id)
			}
		}
		d := &Describe{Call: Call{Group: id}}
		j.asks(d)
		var got []string
		for _, m := range d.Description.Members {
			got = append(got, m.ID)
		}
		slices.Sort(want)
		slices.Sort(got)
		if d.Description.Phase != Stable || !slices.Equal(want, got) {
			j.t.Fatalf("%s is %s with %q, after five minutes of %q", id, d.Description.Phase, got, want)
		}
	}
}

// goesOn does what a client does next.
func (c *consumer) goesOn(j *judge) {
	c.hears()
	if c.client.join != nil { // it waits
		return
	}
	if c.id == "" || c.generation < 0 {
		c.sendsJoin(j)
		return
	}
	if r := c.client.sync; r == nil || r.Generation != c.generation || r.Member != c.id || !c.w.waits(r) && r.Err != nil {
		c.sendsSync(j)
	}
	if r := c.client.sync; c.w.waits(r) {
		return
	} else if r.Err != nil {
		c.again(j, r.Err)
		return
	}
	h := &Heartbeat{Call: c.call(), Member: c.id, Instance: c.instance, Generation: c.generation}
	j.asks(h)
	c.again(j, h.Err)
}

// again joins again after an error that asks for it.
func (c *consumer) again(j *judge, err error) {
	switch {
	case err == nil:
		return
	case !errors.Is(err, ErrRebalanceInProgress):
		c.id, c.generation = "", -1
	}
	c.sendsJoin(j)
}

// silence lets everybody go: what waits is answered, and nobody is left.
func (j *judge) silence() {
	j.pass(6 * time.Minute)
	if len(j.waiting) > 0 {
		for r := range j.waiting {
			j.t.Errorf("%T waits for ever: %+v", r, r)
		}
	}
	j.pass(8 * 24 * time.Hour)
	if n := len(j.m.groups) + len(slices.Collect(j.fold.Groups())); n > 0 || len(j.m.deadlines.heap) != 1 {
		j.t.Errorf("%d groups and %d deadlines are left", n, len(j.m.deadlines.heap))
	}
}
