package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// ask hands a request to a coordinator and waits for its outcome.
func (a *running) ask(r group.Request) error {
	a.rig.t.Helper()
	if err := a.Group(context.Background(), r); err != nil {
		a.rig.t.Fatalf("%T: %v", r, err)
	}
	return r.Common().Err
}

func to(id string) group.Call { return group.Call{Group: id} }

// join makes a group of one member stable, and returns the member and its generation.
func (a *running) join(id, member string) (string, int32) {
	a.rig.t.Helper()
	j := &group.Join{
		Call: to(id), Member: member, ClientID: "c", ClientHost: "/127.0.0.1", Type: "consumer",
		Protocols: []group.Protocol{{Name: "range", Metadata: []byte{0, 1}}}, SessionMS: 30_000, RebalanceMS: 60_000,
	}
	if err := a.ask(j); err != nil {
		a.rig.t.Fatalf("join %s: %v", id, err)
	}
	s := &group.Sync{Call: to(id), Member: j.MemberID, Generation: j.Generation, Assignments: map[string][]byte{j.MemberID: []byte("all")}}
	if err := a.ask(s); err != nil || string(s.Assignment) != "all" {
		a.rig.t.Fatalf("sync %s: %v, %q", id, err, s.Assignment)
	}
	return j.MemberID, j.Generation
}

func (a *running) heartbeat(id, member string, generation int32) error {
	a.rig.t.Helper()
	return a.ask(&group.Heartbeat{Call: to(id), Member: member, Generation: generation})
}

// number is the short number of a topic.
func (a *running) number(id siltstone.TopicID) uint32 {
	a.rig.t.Helper()
	t, ok := a.Topics().TopicByID(id)
	if !ok {
		a.rig.t.Fatalf("no topic %s", id)
	}
	return t.Number
}

func aCommit(id, member string, generation int32, topic uint32, offset int64) *group.Commit {
	return &group.Commit{Call: to(id), Member: member, Generation: generation, Parts: []group.CommitPart{{Committed: group.Committed{
		TopicPartition: group.TopicPartition{Topic: topic}, Offset: offset, Epoch: -1, ExpireMS: -1,
	}}}}
}

func (a *running) commitOffset(id, member string, generation int32, topic uint32, offset int64) error {
	a.rig.t.Helper()
	r := aCommit(id, member, generation, topic, offset)
	return errors.Join(a.ask(r), r.Parts[0].Err)
}

func (a *running) committed(id string, topic uint32) int64 {
	a.rig.t.Helper()
	f := &group.Fetch{Call: to(id), Generation: -1, Parts: []group.FetchPart{{TopicPartition: group.TopicPartition{Topic: topic}}}}
	if err := a.ask(f); err != nil {
		a.rig.t.Fatalf("fetch %s: %v", id, err)
	}
	return f.Parts[0].Offset
}

// TestGroupsOutliveTheAgent: generation, member, assignment and offsets are
// the same after a graceful end, after none, and from a checkpoint.
func TestGroupsOutliveTheAgent(t *testing.T) {
	for name, adjust := range map[string]func(*Options){
		"sealed": nil,
		"killed": func(o *Options) { o.DrainTime = -1 },
		"killed after checkpoints": func(o *Options) {
			o.DrainTime, o.CheckpointEntries = -1, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.adjust = adjust
				a := r.start()
				n := a.number(a.create("t", 1))
				member, generation := a.join("g", "")
				if err := a.commitOffset("g", member, generation, n, 7); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					synctest.Wait()
					if err := a.end(); err != nil {
						t.Fatal(err)
					}
					a = r.start()
					if err := a.heartbeat("g", member, generation); err != nil {
						t.Errorf("heartbeat: %v", err)
					}
					if got := a.committed("g", n); got != 7 {
						t.Errorf("committed offset is %d", got)
					}
					d := &group.Describe{Call: to("g")}
					if err := a.ask(d); err != nil || d.Description.Phase != group.Stable || string(d.Description.Members[0].Assignment) != "all" {
						t.Errorf("%v, %+v", err, d.Description)
					}
				}
				if err := a.commitOffset("g", member, generation, n, 9); err != nil || a.committed("g", n) != 9 {
					t.Errorf("commit after the restart: %v, %d", err, a.committed("g", n))
				}
				if all, err := a.ListGroups(context.Background()); err != nil || len(all) != 1 || all[0].ID != "g" {
					t.Errorf("listed %v, %v", all, err)
				}
			})
		})
	}
}

// TestCommitsShareAppends: with all groups of a shard committing all the time,
// it appends once in joinUpdates, and once more, at most; and no commit waits for long.
func TestCommitsShareAppends(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		const took = 2 * time.Millisecond // an append
		var appends atomic.Int32
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == group.Ledger(3) {
				appends.Add(1)
				time.Sleep(took)
			}
			return do(ctx)
		}
		a := r.start()
		n := a.number(a.create("t", 1))
		var ids []string
		for i := 0; len(ids) < 100; i++ {
			if id := fmt.Sprint("group ", i); group.Of(id) == 3 {
				ids = append(ids, id)
			}
		}
		appends.Store(0)
		began := time.Now()
		const seconds = 2
		slowest := make([]time.Duration, len(ids))
		done := make(chan error, len(ids))
		for i, id := range ids {
			go func() {
				time.Sleep(time.Duration(i) * 97 * time.Microsecond)
				for offset := int64(0); time.Since(began) < seconds*time.Second; offset++ {
					sent := time.Now()
					if err := a.commitOffset(id, "", -1, n, offset); err != nil {
						done <- err
						return
					}
					slowest[i] = max(slowest[i], time.Since(sent))
				}
				done <- nil
			}()
		}
		for range ids {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if got, most := appends.Load(), int32(time.Since(began)/joinUpdates)+2; got > most {
			t.Errorf("%d appends in %v, at most %d are allowed", got, time.Since(began), most)
		}
		if got := slices.Max(slowest); got > 2*(joinUpdates+took) {
			t.Errorf("a commit took %v, an append %v", got, took)
		}
	})
}

// TestGroupAppendIsSettled: an update whose append is answered late, twice or
// not at all is folded once, and only then answered.
func TestGroupAppendIsSettled(t *testing.T) {
	for name, fate := range map[string]func(context.Context, func(context.Context) error) error{
		"landed, no answer": func(ctx context.Context, do func(context.Context) error) error {
			return errors.Join(do(ctx), coordinator.ErrUnknown)
		},
		"lost": func(context.Context, func(context.Context) error) error { return coordinator.ErrUnknown },
		"refused": func(context.Context, func(context.Context) error) error {
			return siltstone.ErrUnavailable
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				a := r.start()
				n := a.number(a.create("t", 1))
				left := 2
				r.set(func() {
					r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
						if c.Op != cfaulty.Append || c.Name != group.Ledger(group.Of("g")) {
							return do(ctx)
						}
						r.mu.Lock()
						left--
						odd := left >= 0
						r.mu.Unlock()
						if odd {
							return fate(ctx, do)
						}
						return do(ctx)
					}
				})
				member, generation := a.join("g", "")
				if err := a.commitOffset("g", member, generation, n, 5); err != nil || a.committed("g", n) != 5 || generation != 1 {
					t.Errorf("%v, offset %d, generation %d", err, a.committed("g", n), generation)
				}
			})
		})
	}
}

// TestStrayUpdateTakesTheSlot: an update of a dead incarnation that lands late
// is void, takes the slot, and costs nobody an answer.
func TestStrayUpdateTakesTheSlot(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		n := a.number(a.create("t", 1))
		member, generation := a.join("g", "")
		r.appendToGroup("g", &group.Update{Epoch: 1, Writer: 0xdead, Groups: []group.GroupUpdate{{ID: "g", Delete: true}}})
		if err := a.commitOffset("g", member, generation, n, 5); err != nil || a.committed("g", n) != 5 {
			t.Errorf("%v, offset %d", err, a.committed("g", n))
		}
		if err := a.heartbeat("g", member, generation); err != nil {
			t.Error(err)
		}
	})
}

// TestDeposedCoordinator: who finds another's Lead answers NOT_COORDINATOR to
// all that wait, and goes on, once it leads again, from what is folded.
func TestDeposedCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		n := a.number(a.create("t", 1))
		member, generation := a.join("g", "")
		waits := make(chan error, 1)
		go func() { // a second member waits for the first, which never joins again
			waits <- a.ask(&group.Join{
				Call: to("g"), Type: "consumer", Protocols: []group.Protocol{{Name: "range"}}, SessionMS: 30_000, RebalanceMS: 60_000,
			})
		}()
		synctest.Wait()
		r.appendToGroup("g", &group.Lead{Epoch: 2, Leader: 0xbeef})
		if err := a.commitOffset("g", member, generation, n, 5); !errors.Is(err, group.ErrNotCoordinator) {
			t.Errorf("the commit of a deposed coordinator: %v", err)
		}
		if err := <-waits; !errors.Is(err, group.ErrNotCoordinator) {
			t.Errorf("a join with a deposed coordinator: %v", err)
		}
		synctest.Wait() // until it is told that it does not lead any more
		for !a.Coordinates("g") {
			time.Sleep(time.Millisecond)
		}
		if err := a.heartbeat("g", member, generation); err != nil {
			t.Errorf("heartbeat: %v", err)
		}
		if err := a.commitOffset("g", member, generation, n, 6); err != nil || a.committed("g", n) != 6 {
			t.Errorf("%v, offset %d", err, a.committed("g", n))
		}
	})
}

// appendToGroup is another agent's append to a group's shard.
func (r *rig) appendToGroup(id string, body group.Body) {
	r.t.Helper()
	client := ledger.NewClient(ledger.Options{Coordinator: r.coord, Bucket: r.bucket, Rand: rand.Uint64})
	name := group.Ledger(group.Of(id))
	got, err := ledger.LoadFold[*group.State](context.Background(), client, name, group.New)
	if err != nil {
		r.t.Fatal(err)
	}
	log := ledger.New(name, got.Fold)
	log.Replace(got.Fold, got.At)
	p, err := log.Propose(body.Kind(), body.Encode(), time.Now().UnixMilli(), coordinator.Nonce{0xbe, 0xef})
	if err != nil {
		r.t.Fatal(err)
	}
	if out, err := client.Append(context.Background(), p); err != nil || !out.Won {
		r.t.Fatalf("%+v, %v", out, err)
	}
}

// TestGroupsWhileLoading: until its shard is read and led, a group's
// coordinator is loading; and is none once the agent is stopping.
func TestGroupsWhileLoading(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		held := make(chan struct{})
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == group.Ledger(group.Of("g")) {
				<-held
			}
			return do(ctx)
		}
		a := r.launch()
		synctest.Wait()
		if err := a.heartbeat("g", "m", 1); !errors.Is(err, group.ErrLoading) || a.Coordinates("g") || a.Status().Ready {
			t.Errorf("%v, coordinates %v, ready %v", err, a.Coordinates("g"), a.Status().Ready)
		}
		if _, err := a.ListGroups(context.Background()); !errors.Is(err, group.ErrLoading) {
			t.Errorf("list: %v", err)
		}
		close(held)
		<-a.Ready()
		if err := a.heartbeat("g", "m", 1); !errors.Is(err, group.ErrUnknownMember) {
			t.Error(err)
		}
		waits := make(chan error, 1)
		a.join("g", "")
		go func() {
			waits <- a.ask(&group.Join{
				Call: to("g"), Type: "consumer", Protocols: []group.Protocol{{Name: "range"}}, SessionMS: 30_000, RebalanceMS: 60_000,
			})
		}()
		synctest.Wait()
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		if err := <-waits; !errors.Is(err, group.ErrNotCoordinator) {
			t.Errorf("a join with a coordinator that stops: %v", err)
		}
	})
}

// TestSessionsBeginWithTheFirstClient: an agent lets clients in once all shards
// are led. Members of a group whose shard it has led for longer than their
// sessions until then have not been late.
func TestSessionsBeginWithTheFirstClient(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		member, generation := a.join("g", "")
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		held := make(chan struct{})
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == shard.Ledger(3) {
				<-held
			}
			return do(ctx)
		}
		a = r.launch()
		time.Sleep(40 * time.Second) // more than the session
		if !a.Coordinates("g") || a.Status().Ready {
			t.Fatalf("coordinates %v, ready %v", a.Coordinates("g"), a.Status().Ready)
		}
		close(held)
		<-a.Ready()
		if err := a.heartbeat("g", member, generation); err != nil {
			t.Error(err)
		}
	})
}

// TestDeletedTopicsAreForgotten: offsets go with their topic, also where it
// was deleted while the group's shard was not led.
func TestDeletedTopicsAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		kept, gone := a.create("kept", 1), a.create("gone", 1)
		numbers := []uint32{a.number(kept), a.number(gone)}
		for _, n := range numbers {
			if err := a.commitOffset("g", "", -1, n, 5); err != nil {
				t.Fatal(err)
			}
		}
		err := a.Change(context.Background(), func(v *topic.View) topic.Decision {
			d, _ := topic.Delete(v, []siltstone.TopicID{gone})
			return d
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.commitOffset("g", "", -1, numbers[1], 6); !errors.Is(err, group.ErrUnknownPartition) {
			t.Errorf("a commit for a deleted topic: %v", err)
		}
		for range 2 {
			time.Sleep(time.Second)
			all := &group.Fetch{Call: to("g"), Generation: -1, All: true}
			if err := a.ask(all); err != nil || !slices.ContainsFunc(all.Parts, func(p group.FetchPart) bool { return p.Topic == numbers[0] }) || len(all.Parts) != 1 {
				t.Errorf("%v, %+v", err, all.Parts)
			}
			if err := a.end(); err != nil {
				t.Fatal(err)
			}
			a = r.start()
		}
	})
}
