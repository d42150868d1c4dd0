package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

const expirationMS = 86_400_000 // producer.id.expiration.ms

// forge stores a checkpoint after the last entry whose producers are other
// ones than the objects say.
func (c *cluster) forge(change func(p *shard.Partition)) {
	c.t.Helper()
	forged := shard.New()
	for key, value := range c.shard.Fold().Rows {
		if err := forged.Restore(key, value); err != nil {
			c.t.Fatal(err)
		}
	}
	p, _ := forged.Partition(c.tp)
	change(p)
	other := ledger.New(c.shard.Name(), forged)
	other.Replace(forged, c.shard.Position())
	c.save(other.Checkpoint())
}

// rebuild remembers batches of three records from these offsets on.
func rebuild(id int64, epoch int16, bases ...siltstone.Offset) *shard.Producer {
	pr := shard.NewProducer(id, epoch)
	pr.LastTimestamp = flushMS
	for _, at := range bases {
		pr.Add(epoch, shard.ProducerBatch{Base: at, Offsets: 3, FirstSequence: int32(at), Timestamp: recordMS})
	}
	return &pr
}

// merge rewrites all objects into one.
func (c *cluster) merge() {
	c.t.Helper()
	c.objects++
	id := segment.ObjectID{Hour: 490_000, Incarnation: leader, Number: c.objects}
	w := segment.NewWriter(segment.Header{Cluster: c.id, ID: id})
	if err := w.Run(uint16(shard.Of(c.tp)), c.tp, 0); err != nil {
		c.t.Fatal(err)
	}
	r := &shard.Replace{}
	for i := range c.partition().Len() {
		_, b := c.object(i)
		o, err := segment.Parse(b)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, row := range o.Index.Runs[0].Rows {
			if err := w.Batch(b[row.Position:][:row.LengthBytes]); err != nil {
				c.t.Fatal(err)
			}
		}
		r.Out = append(r.Out, shard.ReplaceOut{ID: o.Header.ID, Parts: []shard.Ref{{Number: c.partition().Number}}})
	}
	parts, x, err := w.Finish()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.bucket.Put(c.t.Context(), id.Key(), parts); err != nil {
		c.t.Fatal(err)
	}
	run := &x.Runs[0]
	r.In = []shard.ReplaceIn{{ID: id, Parts: []shard.Extent{{
		Number: c.partition().Number, Offsets: run.Offsets, LengthBytes: run.LengthBytes, MaxTimestamp: run.MaxTimestamp(),
	}}}}
	if change := c.append(r); change.Void != "" {
		c.t.Fatal(change.Void)
	}
}

// lastObject is the key of the only object that the tail names.
func (c *cluster) lastObject() string {
	key, _ := c.object(c.partition().Len() - 1)
	return key
}

func (c *cluster) delete(key string) {
	if err := c.bucket.Delete(c.t.Context(), []string{key}); err != nil {
		c.t.Fatal(err)
	}
}

func TestProducerProblems(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(c *cluster)
		what   string // in the problem's text; empty: there is none
	}{
		{"as they are", func(c *cluster) { c.forge(func(*shard.Partition) {}) }, ""},
		{"not in the checkpoint", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers = nil })
		}, "producer 900: it is not known, and wrote at offset 15 less than"},
		{"not in the checkpoint, but after it", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers = nil })
			c.flush()
		}, "producer 900: its last batches are"},
		{"in another epoch", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[producer] = rebuild(producer, 2, 6, 9, 12, 15) })
		}, "producer 900: it is at epoch 2; objects have 1"},
		{"without the last batch", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[producer] = rebuild(producer, 1, 3, 6, 9, 12) })
		}, "producer 900: its last batches are"},
		{"without the first batches", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[producer] = rebuild(producer, 1, 9, 12, 15) })
		}, "producer 900: its last batches are"},
		{"without batches", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[producer] = rebuild(producer, 1) })
		}, "producer 900: its last batches are"},
		{"with a batch too many", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[producer] = rebuild(producer, 1, 6, 9, 12, 15, 18) })
		}, "producer 900: its last batches are"},
		{"with another time", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[producer].LastTimestamp-- })
		}, "producer 900: it last wrote at 1799999999999; offset 15 was written at 1800000000000"},
		{"one that never wrote", func(c *cluster) {
			c.forge(func(p *shard.Partition) { p.Producers[901] = rebuild(901, 1, 9) })
		}, "producer 901: no object has its batch at offset 9"},
		{"one that wrote what is trimmed", func(c *cluster) {
			number := c.partition().Number
			c.append(&shard.Trim{Parts: []shard.TrimPart{{Number: number, Start: 12}}})
			c.forge(func(p *shard.Partition) { p.Producers[901] = rebuild(901, 1, 6, 9) })
		}, ""},
		{"in objects that were rewritten", func(c *cluster) {
			c.merge()
			c.forge(func(p *shard.Partition) { p.Producers[producer] = rebuild(producer, 5, 12, 15) })
		}, ""},
		{"in an object of the tail of which nothing is live", func(c *cluster) { c.merge() }, ""},
		{"in an object that is missing, of the tail", func(c *cluster) { c.delete(c.lastObject()) }, "missing, and holds"},
		{"in an object that is missing, of the checkpoint", func(c *cluster) {
			key, _ := c.object(0)
			c.delete(key)
		}, "missing, and holds"},
		{"in such a one that is missing", func(c *cluster) {
			key := c.lastObject()
			c.merge()
			c.delete(key)
		}, "no such object"},
		{"in such a one that is damaged", func(c *cluster) {
			key, b := c.object(c.partition().Len() - 1)
			c.merge()
			c.overwrite(key, b[:len(b)-1])
		}, "corrupt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			tt.damage(c)
			r := c.check()
			if tt.what == "" {
				if len(r.Problems) > 0 {
					t.Error(r.Problems)
				}
				return
			}
			if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, tt.what) {
				t.Errorf("%v, want one that says %q", r.Problems, tt.what)
			}
		})
	}
}

// What the tail names is needed until there is a newer checkpoint.
func TestRewrittenObjectsOfTheTailAreNoOrphans(t *testing.T) {
	c := newCluster(t)
	var want []string
	for i := range 2 {
		key, _ := c.object(i)
		want = append(want, key)
	}
	c.merge()
	var got []string
	for _, o := range c.check().Orphans {
		got = append(got, o.Key)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("orphans %v, want %v", got, want)
	}
}

// A producer that was idle for long may be forgotten, and come back.
func TestForgottenProducersAreNoProblem(t *testing.T) {
	c := newCluster(t)
	c.forge(func(p *shard.Partition) { p.Producers = nil })
	check := func(now int64) []Problem {
		r, err := Run(t.Context(), Options{Coordinator: c.coord, Bucket: c.bucket, Now: time.UnixMilli(now)})
		if err != nil {
			t.Fatal(err)
		}
		return r.Problems
	}
	if got := check(flushMS + expirationMS); len(got) > 0 {
		t.Error(got)
	}
	if got := check(flushMS + expirationMS - 1); len(got) != 1 {
		t.Errorf("forgotten too early: %v", got)
	}
	c.clockMS = expirationMS
	c.flush() // goes on with its sequence numbers
	if got := check(flushMS + expirationMS + 5); len(got) > 0 {
		t.Error(got)
	}
}

func TestWrittenInAnyOrder(t *testing.T) {
	const n, bumped = 20, 17 // batches, and the first of epoch 1
	for name, nth := range map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return n - 1 - i },
		"mixed":      func(i int) int { return i * 7 % n },
	} {
		w := &written{producers: map[int64]*writer{}}
		for i := range n {
			at := nth(i)
			row := segment.Row{ProducerID: producer, BaseSequence: int32(3 * at), Offsets: 3, MaxTimestamp: recordMS}
			if at >= bumped {
				row.ProducerEpoch = 1
			}
			w.note(siltstone.Offset(3*at), flushMS+int64(at), []segment.Row{row})
		}
		want := rebuild(producer, 1, 3*bumped, 3*bumped+3, 3*bumped+6)
		want.LastTimestamp = flushMS + n - 1
		if diff := w.producers[producer].difference(want, 0, 0, expirationMS); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		more := rebuild(producer, 1, 3*bumped-3, 3*bumped, 3*bumped+3, 3*bumped+6)
		more.LastTimestamp = want.LastTimestamp
		if diff := w.producers[producer].difference(more, 3*bumped, 0, expirationMS); diff != "" {
			t.Errorf("%s: one below what is to be read: %s", name, diff)
		}
		if diff := w.producers[producer].difference(more, 0, 0, expirationMS); diff == "" {
			t.Errorf("%s: it knows one that is in no object", name)
		}
	}
}
