package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

func (c *cluster) check() *Report {
	c.t.Helper()
	r, err := Run(c.t.Context(), Options{Coordinator: c.coord, Bucket: c.bucket, Now: time.UnixMilli(flushMS + 1000)})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func TestClean(t *testing.T) {
	c := newCluster(t)
	r := c.check()
	if len(r.Problems) > 0 || len(r.Orphans) > 0 {
		t.Fatalf("problems %v, orphans %v", r.Problems, r.Orphans)
	}
	if r.Topics != 1 || r.Partitions != 1 || r.Objects != 3 || r.Batches != 6 || r.Records != 18 || r.Cluster != c.id.String() {
		t.Errorf("%+v", r)
	}
	want := Ledger{Name: shard.Ledger(shard.Of(c.tp)), Last: 5, Checkpoint: 4}
	if !slices.Contains(r.Ledgers, want) || len(r.Ledgers) != 1+shard.Count+group.Count {
		t.Errorf("ledgers %+v, want among them %+v", r.Ledgers, want)
	}
}

func TestTrimmedIsClean(t *testing.T) {
	c := newCluster(t)
	for through := coordinator.Seq(1); through <= 4; through++ {
		if err := c.coord.Trim(t.Context(), c.shard.Name(), through); err != nil {
			t.Fatal(err)
		}
		if r := c.check(); len(r.Problems) > 0 || r.Records != 18 {
			t.Errorf("trimmed through %d: %d records, problems %v", through, r.Records, r.Problems)
		}
	}
}

func TestJumpIsClean(t *testing.T) {
	c := newCluster(t)
	c.append(&shard.Lead{Epoch: epoch + 1, Leader: leader, ISR: []siltstone.Incarnation{leader}, Unclean: true})
	if r := c.check(); len(r.Problems) > 0 {
		t.Errorf("problems %v", r.Problems)
	}
}

func TestOrphansAreNoProblem(t *testing.T) {
	c := newCluster(t)
	id, _ := c.upload()
	if err := c.bucket.Put(t.Context(), "lost/and/found", bucket.Body{[]byte("x")}); err != nil {
		t.Fatal(err)
	}
	r := c.check()
	var keys []string
	for _, o := range r.Orphans {
		keys = append(keys, o.Key)
	}
	if want := []string{id.Key(), "lost/and/found"}; len(r.Problems) > 0 || !slices.Equal(keys, want) {
		t.Errorf("problems %v, orphans %v, want %v", r.Problems, keys, want)
	}
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name   string
		damage func(c *cluster)
		where  string // in the problem's place
		what   string // in its text
	}{
		{"an object is missing", func(c *cluster) {
			key, _ := c.object(1)
			_ = c.bucket.Delete(c.t.Context(), []string{key})
		}, "object", "missing, and holds offsets 6 to 11 of partition t-0"},
		{"a byte of an object", func(c *cluster) {
			key, b := c.object(1)
			b[len(b)/2] ^= 1
			c.overwrite(key, b)
		}, "object", "corrupt"},
		{"an object is cut", func(c *cluster) {
			key, b := c.object(0)
			c.overwrite(key, b[:len(b)-1])
		}, "object", "corrupt"},
		{"two objects are swapped", func(c *cluster) {
			key0, b0 := c.object(0)
			key1, b1 := c.object(1)
			c.overwrite(key0, b1)
			c.overwrite(key1, b0)
		}, "object", "calls itself"},
		{"batches stamped for another place", func(c *cluster) {
			id, x := c.upload()
			late, y := c.upload() // stamped as if it came first
			c.append(c.segment(id, &x.Runs[0]))
			c.append(c.segment(late, &y.Runs[0]))
		}, "object", "the batch at offset 24 is stamped 18"},
		{"fewer offsets in the object than in the fold", func(c *cluster) {
			id, x := c.upload()
			x.Runs[0].Offsets++
			c.append(c.segment(id, &x.Runs[0]))
		}, "object", "the fold says 7 offsets"},
		{"a void entry", func(c *cluster) {
			id, x := c.upload()
			s := c.segment(id, &x.Runs[0])
			s.Writer = leader + 1
			c.append(s)
		}, "ledger shard", "entry 6 is void"},
		{"an entry of another history", func(c *cluster) {
			f := ledger.Frame{Kind: shard.KindDrop, Prev: ledger.Hash{1}, Body: (&shard.Drop{}).Encode()}
			c.put(coordinator.Entry{Seq: 6, Data: f.Encode()})
		}, "ledger shard", "entry 6 follows one of hash 01000000"},
		{"an entry that is damaged", func(c *cluster) {
			c.put(coordinator.Entry{Seq: 6, Data: []byte("no frame of ours, but as long as one is")})
		}, "ledger shard", "entry 6: CRC"},
		{"an entry of an unknown kind", func(c *cluster) {
			propose6 := ledger.Frame{Kind: 200, Prev: c.shard.Position().Hash}
			c.put(coordinator.Entry{Seq: 6, Data: propose6.Encode()})
		}, "ledger shard", "newer format"},
		{"a checkpoint of another history", func(c *cluster) {
			other := ledger.New(c.shard.Name(), c.shard.Fold())
			other.Replace(c.shard.Fold(), ledger.Position{Seq: 5, Hash: ledger.Hash{1}})
			c.save(other.Checkpoint())
		}, "ledger shard", "of another history"},
		{"a checkpoint that folds to something else", func(c *cluster) {
			other := ledger.New(c.shard.Name(), shard.New())
			other.Replace(shard.New(), c.shard.Position())
			c.save(other.Checkpoint())
		}, "ledger shard", "something else than all its entries"},
		{"a checkpoint is damaged", func(c *cluster) {
			keys, _ := c.bucket.List(c.t.Context(), checkpoints, "", 10)
			b, _ := c.bucket.Get(c.t.Context(), keys[0].Key, 0, -1)
			b = slices.Clone(b)
			b[len(b)-1] ^= 1
			c.overwrite(keys[0].Key, b)
		}, "checkpoint", "corrupt"},
		{"a checkpoint is missing", func(c *cluster) {
			keys, _ := c.bucket.List(c.t.Context(), checkpoints, "", 10)
			_ = c.bucket.Delete(c.t.Context(), []string{keys[0].Key})
		}, "checkpoint", "no such object"},
		{"trimmed past its checkpoint", func(c *cluster) {
			if err := c.coord.Trim(c.t.Context(), c.shard.Name(), 5); err != nil {
				c.t.Fatal(err)
			}
		}, "ledger shard", "trimmed through 5"},
		{"a partition in the wrong shard", func(c *cluster) {
			wrong := ledger.New(shard.Ledger((shard.Of(c.tp)+1)%shard.Count), shard.New())
			lead := &shard.Lead{Epoch: 1, Leader: leader, ISR: []siltstone.Incarnation{leader}}
			propose(c, wrong, lead.Kind(), lead.Encode())
			open := &shard.Open{Epoch: 1, Writer: leader, Topics: []shard.OpenTopic{{Topic: c.tp.Topic, Number: c.partition().Number, Partitions: []int32{0}}}}
			propose(c, wrong, open.Kind(), open.Encode())
		}, "partition", "it belongs into " + "shard"},
		{"stores of two clusters", func(c *cluster) {
			c.overwrite(coordinator.ClusterKey, []byte("siltstone 1 "+siltstone.ClusterID{8}.String()+"\n"))
		}, "cluster id", "belongs to something else"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			tt.damage(c)
			r := c.check()
			if !slices.ContainsFunc(r.Problems, func(p Problem) bool {
				return strings.Contains(p.Where, tt.where) && strings.Contains(p.What, tt.what)
			}) {
				t.Errorf("no problem at %q that says %q among %v", tt.where, tt.what, r.Problems)
			}
		})
	}
}

// put fills a slot without asking anybody.
func (c *cluster) put(e coordinator.Entry) {
	c.t.Helper()
	e.Nonce = coordinator.Nonce{0xff}
	if err := c.coord.Append(c.t.Context(), c.shard.Name(), e); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) save(e ledger.EncodedCheckpoint) {
	c.t.Helper()
	if err := c.ledgers.SaveCheckpoint(c.t.Context(), e); err != nil {
		c.t.Fatal(err)
	}
}

func TestEmptyStoresAreAProblem(t *testing.T) {
	c := newCluster(t)
	_ = c.bucket.Delete(t.Context(), []string{coordinator.ClusterKey})
	if r := c.check(); len(r.Problems) == 0 {
		t.Error("a bucket without its cluster's id passes")
	}
}
