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

// judge holds what a Machine says and proposes against what must hold.
type judge struct {
	*world
	t *rapid.T

	number  int64             // of requests: a commit's offset
	commits map[int64]*Commit // by their offsets
	last    map[string]int64  // by group and partition: the last commit folded,
	through map[string]int64  // and the last request that is known to be folded
	deleted map[string]int64  // by group: the last request before a Delete that is folded
	asked   map[Request]int64 // when each request came
	fenced  map[string]bool   // member ids whose instance has been taken over
	before  int64             // the last request before the entry in flight was proposed
}

func newJudge(t *rapid.T) *judge {
	j := &judge{
		world: newWorld(t), t: t, commits: map[int64]*Commit{}, last: map[string]int64{}, through: map[string]int64{},
		deleted: map[string]int64{}, asked: map[Request]int64{}, fenced: map[string]bool{},
	}
	j.answers, j.updates, j.taken = j.answered, j.folding, func() { j.before = j.number }
	j.settings.RetentionCheckMS = 6 * 3600 * 1000
	return j
}

func key(id string, tp TopicPartition) string { return fmt.Sprint(id, tp) }

// asks hands a request over.
func (j *judge) asks(r Request) {
	j.number++
	j.asked[r] = j.number
	if c, ok := r.(*Commit); ok {
		j.commits[j.number] = c
		for i := range c.Parts {
			c.Parts[i].Offset = j.number
		}
		valid := j.valid(c)
		if !j.handle(c) && !valid {
			j.t.Fatalf("taken: %+v; folded is %+v, in flight %+v", c, j.info(c.Group), j.inFlight)
		}
		return
	}
	taken := j.takesOver(r)
	j.handle(r)
	if jr, ok := r.(*Join); ok && (j.waits(r) || jr.Err == nil) {
		for _, id := range taken {
			j.fenced[id] = true
		}
	}
}

// info is a group as it is folded; the zero Info if it is not.
func (j *judge) info(id string) Info {
	if f, ok := j.fold.Group(id); ok {
		return f.Info
	}
	return Info{}
}

// proposed is a group as it will be when what is in flight is folded.
func (j *judge) proposed(id string) Info {
	if j.inFlight != nil {
		for _, u := range j.inFlight.Groups {
			if u.ID == id && u.Set != nil {
				return *u.Set
			}
		}
	}
	return j.info(id)
}

func (i *Info) has(member string) bool {
	return slices.ContainsFunc(i.Members, func(m Member) bool { return m.ID == member })
}

// valid says whether a commit may be taken: it is of the present generation,
// and of a member of it that nobody has replaced.
func (j *judge) valid(c *Commit) bool {
	now, next := j.info(c.Group), j.proposed(c.Group)
	if c.Generation < 0 {
		return len(now.Members) == 0
	}
	return c.Generation == now.Generation && c.Generation == next.Generation && next.has(c.Member) && !j.fenced[c.Member]
}

// takesOver is the member ids that a join without one fences.
func (j *judge) takesOver(r Request) (ids []string) {
	jr, ok := r.(*Join)
	if !ok || jr.Member != "" || jr.Instance == nil {
		return nil
	}
	for _, mem := range j.m.group(jr.Group).members {
		if mem.instance != nil && *mem.instance == *jr.Instance {
			ids = append(ids, mem.id)
		}
	}
	return ids
}

// folding looks at an entry that is about to be folded.
func (j *judge) folding(u *Update) {
	for _, g := range u.Groups {
		if g.Delete {
			j.deleted[g.ID] = j.before
		}
		if g.Set != nil && !g.Delete {
			j.follows(g.ID, j.info(g.ID), *g.Set)
		}
		for _, tp := range g.Forget {
			j.through[key(g.ID, tp)] = j.before
		}
		for _, c := range g.Commit {
			k := key(g.ID, c.TopicPartition)
			if c.Offset <= j.last[k] {
				j.t.Fatalf("%s goes back from %d to %d", k, j.last[k], c.Offset)
			}
			j.last[k], j.through[k] = c.Offset, max(j.through[k], c.Offset)
		}
	}
}

// follows fails unless one Info of a group may follow another: in the same
// generation only assignments come, once, and static members' ids change.
func (j *judge) follows(id string, was, is Info) {
	if is.Generation != was.Generation {
		if is.Generation != was.Generation+1 && was.Generation > 0 {
			j.t.Fatalf("%s goes from generation %d to %d", id, was.Generation, is.Generation)
		}
		return
	}
	same := len(was.Members) == len(is.Members) && was.Protocol == is.Protocol && was.Type == is.Type &&
		was.ChangedMS == is.ChangedMS && (!was.Assigned || is.Assigned)
	for i := 0; same && i < len(was.Members); i++ {
		a, b := was.Members[i], is.Members[i]
		same = a.ID == b.ID || a.Instance != nil && b.Instance != nil && *a.Instance == *b.Instance
		same = same && (a.ID == was.Leader) == (b.ID == is.Leader)
		same = same && (!was.Assigned || string(a.Assignment) == string(b.Assignment))
	}
	if !same {
		j.t.Fatalf("%s: generation %d is\n%+v, and was\n%+v", id, is.Generation, is, was)
	}
}

// answered looks at an answer: whatever it says is folded.
func (j *judge) answered(r Request) {
	err := r.Common().Err
	f := j.info(r.GroupID())
	wrong := func() {
		j.t.Fatalf("%T %+v is answered %v; folded is %+v", r, r, err, f)
	}
	switch r := r.(type) {
	case *Join:
		if (err == nil) == (r.Generation < 0) {
			wrong()
		}
		if err != nil {
			return
		}
		if r.Generation != f.Generation || r.Protocol != f.Protocol || !f.has(r.MemberID) {
			wrong()
		}
		for _, p := range r.Protocols {
			if p.Name == r.Protocol && string(p.Metadata) != f.of(r.MemberID).subscription {
				wrong()
			}
		}
		leads := r.Leader == r.MemberID
		if leads && len(r.Members) != len(f.Members) || !leads && len(r.Members) > 0 || r.SkipAssignment && !(leads && r.MaySkip && f.Assigned) {
			wrong()
		}
		if r.Leader != f.Leader && (r.MaySkip || r.MemberID != f.Leader) {
			wrong()
		}
	case *Sync:
		if err == nil && !(f.Assigned && f.Generation == r.Generation && f.has(r.Member) && string(r.Assignment) == f.of(r.Member).assignment) {
			wrong()
		}
	case *Heartbeat:
		if err == nil && !(f.Generation == r.Generation && f.has(r.Member)) || errors.Is(err, ErrIllegalGeneration) && f.Generation == r.Generation {
			wrong()
		}
	case *Commit:
		for i := range r.Parts {
			if p := r.Parts[i]; err == nil && p.Err == nil && j.isFolded(r.Group, p.TopicPartition) < p.Offset {
				wrong()
			}
		}
	case *Fetch:
		for _, p := range r.Parts {
			if c := j.commits[p.Offset]; p.Offset >= 0 && (c == nil || c.Group != r.Group || c.Err != nil && !errors.Is(c.Err, ErrNotCoordinator)) {
				j.t.Fatalf("fetched %+v, committed by %+v", p, c)
			}
		}
	case *DeleteOffsets:
		for i := range r.Parts {
			_, there := j.committedNow(r.Group, r.Parts[i].TopicPartition)
			if err == nil && r.Parts[i].Err == nil && there && j.last[key(r.Group, r.Parts[i].TopicPartition)] < j.asked[r] {
				wrong()
			}
		}
	case *Delete:
		if err == nil && j.deleted[r.Group] < j.asked[r] {
			wrong()
		}
	case *Describe:
		j.described(r, f)
	}
}

// isFolded is the last request about a partition's offset that is known to be folded.
func (j *judge) isFolded(id string, tp TopicPartition) int64 {
	return max(j.through[key(id, tp)], j.deleted[id])
}

func (j *judge) committedNow(id string, tp TopicPartition) (Committed, bool) {
	f, ok := j.fold.Group(id)
	if !ok {
		return Committed{}, false
	}
	c, ok := f.Offsets[tp]
	return c, ok
}

type given struct{ subscription, assignment string }

// of is what a generation has of a member.
func (i *Info) of(member string) given {
	for _, m := range i.Members {
		if m.ID == member {
			return given{string(m.Subscription), string(m.Assignment)}
		}
	}
	return given{}
}

// described holds a description against what is folded.
func (j *judge) described(r *Describe, f Info) {
	d := r.Description
	ok := true
	switch d.Phase {
	case Stable, CompletingRebalance:
		ok = d.Generation == f.Generation && len(d.Members) == len(f.Members) && f.Assigned == (d.Phase == Stable)
		for i := 0; ok && i < len(d.Members); i++ {
			ok = d.Members[i].ID == f.Members[i].ID
		}
	case Empty:
		ok = len(f.Members) == 0 && len(d.Members) == 0
	case Dead:
		_, there := j.fold.Group(r.Group)
		ok = !there && errors.Is(r.Err, ErrNotFound)
	}
	if !ok {
		j.t.Fatalf("described %+v; folded is %+v", d, f)
	}
}

// restarts drops the Machine: the next one goes on from the fold.
func (j *judge) restarts(folded, stops bool) {
	if stops {
		j.depose(folded)
	} else {
		j.crash(folded)
	}
	clear(j.fenced)
	for f := range j.fold.Groups() {
		d := &Describe{Call: Call{Group: f.ID}}
		j.handle(d)
		if d.Description.Generation != f.Generation || len(d.Description.Members) != len(f.Members) || d.Description.Phase == PreparingRebalance {
			j.t.Fatalf("loaded %+v as %+v", f.Info, d.Description)
		}
	}
}

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
