package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

const (
	alice siltstone.Incarnation = 0xa
	bob   siltstone.Incarnation = 0xb
)

// An estate is what agents might have left behind, made by hand.
type estate struct {
	*testing.T
	store   *store
	history tale
	tp      siltstone.TopicPartition
	ledger  string
	last    map[string]ledger.Position
	objects uint64
}

// newEstate has one topic, "t", whose one partition is open, led by alice at epoch 1.
func newEstate(t *testing.T) *estate {
	e := &estate{T: t, store: newStore(), last: map[string]ledger.Position{}}
	e.tp.Topic = siltstone.TopicID{7}
	e.ledger = shard.Ledger(shard.Of(e.tp))
	d, errs := topic.Create(topic.New().View(), []topic.NewTopic{{Name: "t", ID: e.tp.Topic, Partitions: 1, Replication: -1}})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	e.entry(topic.Ledger, d.Kind, d.Body)
	e.shard(&shard.Lead{Epoch: 1, Leader: alice, ISR: []siltstone.Incarnation{alice}})
	e.shard(&shard.Open{Epoch: 1, Writer: alice, Topics: []shard.OpenTopic{{Topic: e.tp.Topic, Number: e.number(), Partitions: []int32{0}}}})
	return e
}

// number is the topic's short number, as its fold gave it.
func (e *estate) number() uint32 {
	fold := topic.New()
	for _, x := range e.store.archive[topic.Ledger] {
		f, err := ledger.DecodeFrame(x.Data)
		if err != nil {
			e.Fatal(err)
		}
		if _, err := fold.Apply(ledger.Entry{Seq: x.Seq, Kind: f.Kind, Body: f.Body}); err != nil {
			e.Fatal(err)
		}
	}
	t, _ := fold.View().TopicByID(e.tp.Topic)
	return t.Number
}

func (e *estate) entry(name string, kind byte, body []byte) {
	e.Helper()
	at := e.last[name]
	data := ledger.Frame{Kind: kind, Prev: at.Hash, Body: body}.Encode()
	if err := e.store.append(name, coordinator.Entry{Seq: at.Seq + 1, Data: data}); err != nil {
		e.Fatal(err)
	}
	e.last[name] = ledger.Position{Seq: at.Seq + 1, Hash: ledger.HashFrame(data)}
}

func (e *estate) shard(b shard.Body) { e.Helper(); e.entry(e.ledger, b.Kind(), b.Encode()) }

// object stores one batch, stamped with the base, and is how a Segment names it.
func (e *estate) object(base siltstone.Offset, ids ...recordID) shard.SegmentObject {
	e.Helper()
	b := encodeBatch(ids, 1000, newDice(1, "batch", 0))
	batch.Stamp(b, base, 1)
	h, err := batch.ParseHeader(b)
	if err != nil {
		e.Fatal(err)
	}
	e.objects++
	id := segment.ObjectID{Incarnation: alice, Number: e.objects}
	w := segment.NewWriter(segment.Header{Cluster: clusterID, ID: id, Shards: []uint16{uint16(shard.Of(e.tp))}})
	if err := w.Run(uint16(shard.Of(e.tp)), e.tp, base); err != nil {
		e.Fatal(err)
	}
	if err := w.Batch(b); err != nil {
		e.Fatal(err)
	}
	body, _, err := w.Finish()
	if err != nil {
		e.Fatal(err)
	}
	if err := e.store.bucket.Put(context.Background(), id.Key(), body); err != nil {
		e.Fatal(err)
	}
	return shard.SegmentObject{ID: id, Parts: []shard.Part{{
		Extent: shard.Extent{Number: e.number(), Offsets: int64(len(ids)), LengthBytes: int64(len(b)), MaxTimestamp: h.MaxTimestamp},
		Epoch:  1,
	}}}
}

func (e *estate) segment(o shard.SegmentObject) {
	e.Helper()
	e.shard(&shard.Segment{Epoch: 1, Writer: alice, Objects: []shard.SegmentObject{o}})
}

// flush stores a batch and commits it.
func (e *estate) flush(base siltstone.Offset, ids ...recordID) segment.ObjectID {
	e.Helper()
	o := e.object(base, ids...)
	e.segment(o)
	return o.ID
}

func TestAudit(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name string
		do   func(e *estate)
		want string // begins one of the complaints; empty is none
	}{
		{"written and read", func(e *estate) {
			e.flush(0, 1, 2)
			e.flush(2, 3)
			e.history.pass("r", 1, 2, 3)
		}, ""},
		{"an object that no entry names", func(e *estate) {
			e.object(0, 9)
			e.flush(0, 1)
			e.history.pass("r", 1)
		}, ""},
		{"what is deleted is neither", func(e *estate) {
			e.flush(0, 1, 2)
			e.flush(2, 3)
			e.shard(&shard.Trim{Parts: []shard.TrimPart{{Number: e.number(), Start: 1}}})
			e.history.write(-1, 2, 3)
			e.history.read("r", 1, 3, 2, 3)
		}, ""},
		{"stored and not shown", func(e *estate) { e.flush(0, 1) }, "1: t/0 offset 0: stored is"},
		{"shown and not stored", func(e *estate) { e.history.pass("r", 1) }, "1: t/0 offset 0: stored is"},
		{"another record stored than shown", func(e *estate) {
			e.flush(0, 1)
			e.history.pass("r", 2)
		}, "1: t/0 offset 0: stored is"},
		{"an object is missing", func(e *estate) {
			id := e.flush(0, 1)
			_ = e.store.bucket.Delete(ctx, []string{id.Key()})
		}, "1: t offsets 0 to 0"},
		{"an object is damaged", func(e *estate) {
			id := e.flush(0, 1)
			b, _ := e.store.bucket.Get(ctx, id.Key(), 0, -1)
			_ = e.store.bucket.Delete(ctx, []string{id.Key()})
			b[len(b)/2] ^= 1
			_ = e.store.bucket.Put(ctx, id.Key(), bucket.Body{b})
		}, "1: t offsets 0 to 0"},
		{"stamped for other offsets", func(e *estate) {
			e.flush(0, 1)
			e.flush(5, 2)
		}, "1: t offsets 1 to 1"},
		{"named for more offsets than it holds", func(e *estate) {
			o := e.object(0, 1)
			o.Parts[0].Offsets = 2
			e.segment(o)
		}, "1: t offsets 0 to 1"},
		{"two leaders of one epoch", func(e *estate) {
			e.shard(&shard.Lead{Epoch: 1, Leader: bob, ISR: []siltstone.Incarnation{bob}})
		}, "3: " + shardOfTests + " entry 3"},
		{"a deposed leader commits", func(e *estate) {
			o := e.object(0, 1)
			e.shard(&shard.Lead{Epoch: 2, Leader: bob, ISR: []siltstone.Incarnation{bob}})
			e.segment(o)
		}, "3: " + shardOfTests + " entry 4"},
		{"an entry that does not follow", func(e *estate) {
			e.last[e.ledger] = ledger.Position{Seq: e.last[e.ledger].Seq}
			e.shard(&shard.Lead{Epoch: 2, Leader: bob, ISR: []siltstone.Incarnation{bob}})
		}, "3: " + shardOfTests + " entry 3 does not follow"},
		{"a true checkpoint", func(e *estate) {
			e.checkpoint()
			e.flush(0, 1)
			e.history.pass("r", 1)
		}, ""},
		{"a false checkpoint", func(e *estate) {
			whole := e.store.archive[e.ledger]
			e.store.archive[e.ledger] = whole[:1] // without the Open
			e.checkpoint()
			e.store.archive[e.ledger] = whole
		}, "8: " + shardOfTests},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := newEstate(t)
			test.do(e)
			complains(t, e.store.audit(&e.history.history), test.want)
		})
	}
}

var shardOfTests = shard.Ledger(shard.Of(siltstone.TopicPartition{Topic: siltstone.TopicID{7}}))

// checkpoint stores the fold of the archive as that of the whole ledger.
func (e *estate) checkpoint() {
	e.Helper()
	fold := shard.New()
	for _, x := range e.store.archive[e.ledger] {
		f, _ := ledger.DecodeFrame(x.Data)
		if _, err := fold.Apply(ledger.Entry{Seq: x.Seq, Kind: f.Kind, Body: f.Body}); err != nil {
			e.Fatal(err)
		}
	}
	c := ledger.NewClient(ledger.Options{Coordinator: e.store.coordinator, Bucket: e.store.bucket, Rand: func() uint64 { return 7 }})
	if err := c.SaveCheckpoint(context.Background(), ledger.EncodeCheckpoint(e.ledger, e.last[e.ledger], fold.Rows)); err != nil {
		e.Fatal(err)
	}
}

// complains checks that one of the complaints begins as wanted, or that there is none.
func complains(t *testing.T, wrong []string, want string) {
	t.Helper()
	if want == "" && len(wrong) > 0 {
		t.Errorf("complaints about what is good: %q", wrong)
	}
	for _, s := range wrong {
		if strings.HasPrefix(s, want) {
			return
		}
	}
	if want != "" {
		t.Errorf("complaints %q, none begins with %q", wrong, want)
	}
}
