package group

import (
	"errors"
	"testing"
)

// errWaits stands for an answer that is not there yet.
var errWaits = errors.New("waits")

// scenes are a group g in each state that it may be in: with a follower, in
// the generation that it knows.
var scenes = map[string]func(t *testing.T) (*world, *client){
	"none": func(t *testing.T) (*world, *client) {
		w := newWorld(t)
		c := w.client("g", "client")
		c.id, c.generation = "client-1", 1
		return w, c
	},
	"simple": func(t *testing.T) (*world, *client) {
		w := newWorld(t)
		w.handle(outsider("g", at(1, 0), 5))
		w.settle()
		c := w.client("g", "client")
		c.id, c.generation = "client-1", 1
		return w, c
	},
	"empty": func(t *testing.T) (*world, *client) {
		w, cs := stable(t, 2)
		cs[0].leaves()
		cs[1].leaves()
		w.settle()
		w.is("g", Empty, 2, 0)
		return w, cs[1]
	},
	"preparing": func(t *testing.T) (*world, *client) {
		w, cs := stable(t, 2)
		w.client("g", "late").joins()
		w.is("g", PreparingRebalance, 1, 3)
		return w, cs[1]
	},
	// All have joined, and the next generation is not folded.
	"forming": func(t *testing.T) (*world, *client) {
		w, cs := stable(t, 2)
		cs[0].joins()
		cs[1].joins()
		w.is("g", PreparingRebalance, 1, 2)
		return w, cs[1]
	},
	"completing": func(t *testing.T) (*world, *client) {
		w := newWorld(t)
		cs := []*client{w.client("g", "client-0"), w.client("g", "client-1")}
		gather(cs...)
		w.is("g", CompletingRebalance, 1, 2)
		return w, cs[1]
	},
	// The assignments are in, and not folded.
	"assigning": func(t *testing.T) (*world, *client) {
		w := newWorld(t)
		cs := []*client{w.client("g", "client-0"), w.client("g", "client-1")}
		gather(cs...)
		cs[0].syncs()
		w.is("g", CompletingRebalance, 1, 2)
		return w, cs[1]
	},
	"stable": func(t *testing.T) (*world, *client) {
		w, cs := stable(t, 2)
		return w, cs[1]
	},
}

// asking is a request by a client.
type asking func(c *client) Request

func (c *client) call() Call { return Call{Group: c.group} }

func heartbeats(change func(*Heartbeat)) asking {
	return func(c *client) Request {
		r := &Heartbeat{Call: c.call(), Member: c.id, Generation: c.generation}
		change(r)
		return r
	}
}

func commitsOf(change func(*Commit)) asking {
	return func(c *client) Request {
		r := outsider(c.group, at(1, 1), 7)
		r.Member, r.Generation = c.id, c.generation
		change(r)
		return r
	}
}

func syncsOf(change func(*Sync)) asking {
	return func(c *client) Request {
		r := &Sync{Call: c.call(), Member: c.id, Generation: c.generation}
		change(r)
		return r
	}
}

func joinsOf(change func(*Join)) asking {
	return func(c *client) Request {
		r := &Join{
			Call: c.call(), Member: c.id, ClientID: c.name, Type: "consumer", Protocols: c.protocols,
			SessionMS: c.session, RebalanceMS: c.rebalance, TwoSteps: true,
		}
		change(r)
		return r
	}
}

func TestRequestsInEveryState(t *testing.T) {
	other := "another"
	for name, c := range map[string]struct {
		ask  asking
		want map[string]error
	}{
		"heartbeat": {heartbeats(func(*Heartbeat) {}), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": ErrRebalanceInProgress, "forming": ErrRebalanceInProgress,
			"completing": nil, "assigning": nil, "stable": nil,
		}},
		"heartbeat of nobody": {heartbeats(func(r *Heartbeat) { r.Member = "nobody" }), all(ErrUnknownMember)},
		"heartbeat of another generation": {heartbeats(func(r *Heartbeat) { r.Generation++ }), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": ErrIllegalGeneration, "forming": ErrIllegalGeneration,
			"completing": ErrIllegalGeneration, "assigning": ErrIllegalGeneration, "stable": ErrIllegalGeneration,
		}},
		"heartbeat of an instance that is not there": {heartbeats(func(r *Heartbeat) { r.Instance = &other }), all(ErrUnknownMember)},
		"commit": {commitsOf(func(*Commit) {}), map[string]error{
			"none": ErrIllegalGeneration, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": errWaits, "forming": ErrRebalanceInProgress,
			"completing": ErrRebalanceInProgress, "assigning": ErrRebalanceInProgress, "stable": errWaits,
		}},
		"commit of nobody": {commitsOf(func(r *Commit) { r.Member = "nobody" }), map[string]error{
			"none": ErrIllegalGeneration, "simple": ErrUnknownMember, "empty": ErrUnknownMember, "preparing": ErrUnknownMember,
			"forming": ErrUnknownMember, "completing": ErrUnknownMember, "assigning": ErrUnknownMember, "stable": ErrUnknownMember,
		}},
		"commit of an old generation": {commitsOf(func(r *Commit) { r.Generation-- }), map[string]error{
			"none": ErrIllegalGeneration, "simple": ErrUnknownMember, "empty": ErrUnknownMember, "preparing": ErrIllegalGeneration,
			"forming": ErrIllegalGeneration, "completing": ErrIllegalGeneration, "assigning": ErrIllegalGeneration, "stable": ErrIllegalGeneration,
		}},
		"commit of a member without a generation": {commitsOf(func(r *Commit) { r.Generation = -1 }), map[string]error{
			"none": errWaits, "simple": errWaits, "empty": errWaits, "preparing": ErrIllegalGeneration,
			"forming": ErrIllegalGeneration, "completing": ErrIllegalGeneration, "assigning": ErrIllegalGeneration, "stable": ErrIllegalGeneration,
		}},
		"commit from outside": {commitsOf(func(r *Commit) { r.Generation, r.Member = -1, "" }), map[string]error{
			"none": errWaits, "simple": errWaits, "empty": errWaits, "preparing": ErrUnknownMember,
			"forming": ErrUnknownMember, "completing": ErrUnknownMember, "assigning": ErrUnknownMember, "stable": ErrUnknownMember,
		}},
		"commit of no group's name": {commitsOf(func(r *Commit) { r.Group, r.Generation, r.Member = "", -1, "" }), all(errWaits)},
		"sync": {syncsOf(func(*Sync) {}), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": ErrRebalanceInProgress, "forming": ErrRebalanceInProgress,
			"completing": errWaits, "assigning": errWaits, "stable": nil,
		}},
		"sync of another generation": {syncsOf(func(r *Sync) { r.Generation-- }), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": ErrIllegalGeneration, "forming": ErrIllegalGeneration,
			"completing": ErrIllegalGeneration, "assigning": ErrIllegalGeneration, "stable": ErrIllegalGeneration,
		}},
		"sync of another type": {syncsOf(func(r *Sync) { r.Type = &other }), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": ErrInconsistentProtocol, "forming": ErrInconsistentProtocol,
			"completing": ErrInconsistentProtocol, "assigning": ErrInconsistentProtocol, "stable": ErrInconsistentProtocol,
		}},
		"sync of another protocol": {syncsOf(func(r *Sync) { r.Protocol = &other }), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": ErrInconsistentProtocol, "forming": ErrInconsistentProtocol,
			"completing": ErrInconsistentProtocol, "assigning": ErrInconsistentProtocol, "stable": ErrInconsistentProtocol,
		}},
		"join again": {joinsOf(func(*Join) {}), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": errWaits, "forming": errWaits,
			"completing": nil, "assigning": nil, "stable": nil,
		}},
		"join again with other topics": {joinsOf(func(r *Join) { r.Protocols = []Protocol{{"range", reads("b")}} }), map[string]error{
			"none": ErrUnknownMember, "simple": ErrUnknownMember, "empty": ErrUnknownMember,
			"preparing": errWaits, "forming": errWaits,
			"completing": errWaits, "assigning": errWaits, "stable": errWaits,
		}},
		"join anew":        {joinsOf(func(r *Join) { r.Member = "" }), all(ErrMemberIDRequired)},
		"join in one step": {joinsOf(func(r *Join) { r.Member, r.TwoSteps = "", false }), all(errWaits)},
		"join statically":  {joinsOf(func(r *Join) { r.Member, r.Instance = "", &other }), all(errWaits)},
		"join as another type": {joinsOf(func(r *Join) { r.Member, r.Type = "", "connect" }), map[string]error{
			"none": ErrMemberIDRequired, "simple": ErrMemberIDRequired, "empty": ErrMemberIDRequired,
			"preparing": ErrInconsistentProtocol, "forming": ErrInconsistentProtocol,
			"completing": ErrInconsistentProtocol, "assigning": ErrInconsistentProtocol, "stable": ErrInconsistentProtocol,
		}},
		"join with no protocol that others have": {joinsOf(func(r *Join) { r.Member, r.Protocols = "", []Protocol{{"new", nil}} }), map[string]error{
			"none": ErrMemberIDRequired, "simple": ErrMemberIDRequired, "empty": ErrMemberIDRequired,
			"preparing": ErrInconsistentProtocol, "forming": ErrInconsistentProtocol,
			"completing": ErrInconsistentProtocol, "assigning": ErrInconsistentProtocol, "stable": ErrInconsistentProtocol,
		}},
		"join with no protocol":          {joinsOf(func(r *Join) { r.Member, r.Protocols = "", nil }), all(ErrInconsistentProtocol)},
		"join without a type":            {joinsOf(func(r *Join) { r.Member, r.Type = "", "" }), all(ErrInconsistentProtocol)},
		"join without a group":           {joinsOf(func(r *Join) { r.Member, r.Group = "", "" }), all(ErrInvalidGroup)},
		"join for too short a session":   {joinsOf(func(r *Join) { r.SessionMS = 5999 }), all(ErrInvalidSessionTimeout)},
		"join for too long a session":    {joinsOf(func(r *Join) { r.SessionMS = 1_800_001 }), all(ErrInvalidSessionTimeout)},
		"join with an id of nobody":      {joinsOf(func(r *Join) { r.Member = "nobody" }), all(ErrUnknownMember)},
		"join again as unknown instance": {joinsOf(func(r *Join) { r.Instance = &other }), all(ErrUnknownMember)},
		"delete": {func(c *client) Request { return &Delete{c.call()} }, map[string]error{
			"none": ErrNotFound, "simple": errWaits, "empty": errWaits, "preparing": ErrNotEmpty,
			"forming": ErrNotEmpty, "completing": ErrNotEmpty, "assigning": ErrNotEmpty, "stable": ErrNotEmpty,
		}},
		"describe": {func(c *client) Request { return &Describe{Call: c.call()} }, map[string]error{
			"none": ErrNotFound, "simple": nil, "empty": nil, "preparing": nil,
			"forming": nil, "completing": nil, "assigning": nil, "stable": nil,
		}},
		"fetch":          {func(c *client) Request { return &Fetch{Call: c.call(), Generation: -1, All: true} }, all(nil)},
		"stale fetch":    {func(c *client) Request { return &Fetch{Call: c.call(), Member: "nobody", Generation: 77} }, all(nil)},
		"leave no group": {func(c *client) Request { return &Leave{} }, all(ErrInvalidGroup)},
		"delete an offset": {func(c *client) Request {
			return &DeleteOffsets{Call: c.call(), Parts: []DeletePart{{TopicPartition: at(2, 0)}}}
		}, map[string]error{
			"none": ErrNotFound, "simple": nil, "empty": nil, "preparing": nil,
			"forming": errWaits, "completing": nil, "assigning": errWaits, "stable": nil,
		}},
		"delete an offset of no group": {func(*client) Request { return &DeleteOffsets{} }, all(ErrInvalidGroup)},
	} {
		t.Run(name, func(t *testing.T) {
			for scene, begin := range scenes {
				w, cl := begin(t)
				r := c.ask(cl)
				got := errWaits
				if w.handle(r) {
					got = r.Common().Err
				}
				want, listed := c.want[scene]
				if !listed {
					t.Fatalf("%s is not listed", scene)
				}
				if !errors.Is(got, want) {
					t.Errorf("%s: %v, want %v", scene, got, want)
				}
				if scene == "none" && !errors.Is(got, errWaits) && !errors.Is(got, ErrMemberIDRequired) && len(w.m.List()) > 0 {
					t.Errorf("refused, it leaves %+v behind", w.m.List())
				}
				w.pass(0)
			}
		})
	}
}

// all is the same outcome in every state.
func all(err error) map[string]error {
	m := map[string]error{}
	for name := range scenes {
		m[name] = err
	}
	return m
}

func TestLeaveInEveryState(t *testing.T) {
	for scene, want := range map[string]struct {
		err   error
		phase Phase
		left  int
		waits bool // for the entry that says so
	}{
		"none":       {ErrUnknownMember, Dead, 0, false},
		"simple":     {ErrUnknownMember, Empty, 0, false},
		"empty":      {ErrUnknownMember, Empty, 0, false},
		"preparing":  {nil, PreparingRebalance, 2, false},
		"forming":    {nil, PreparingRebalance, 1, true},
		"completing": {nil, PreparingRebalance, 1, false},
		"assigning":  {nil, PreparingRebalance, 1, false},
		"stable":     {nil, PreparingRebalance, 1, false},
	} {
		t.Run(scene, func(t *testing.T) {
			w, c := scenes[scene](t)
			r := c.leaves()
			if w.waits(r) != want.waits {
				t.Errorf("it waits: %v", w.waits(r))
			}
			must(t, "leave", r.Members[0].Err, want.err)
			d := w.describe("g")
			if d.Phase != want.phase || len(d.Members) != want.left {
				t.Errorf("then it is %s with %d members, want %s, %d", d.Phase, len(d.Members), want.phase, want.left)
			}
			w.settle()
			must(t, "its heartbeat", c.beats(), ErrUnknownMember)
			must(t, "all", r.Err, nil)
		})
	}
}
