package group

import (
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"
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
