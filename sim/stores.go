package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// audit judges what the agents left behind: every ledger, refolded from all
// entries that ever were in it, and every object that it refers to, by what
// clients were shown. It returns what is wrong.
func (s *store) audit(h *history) []string {
	a := &auditor{
		store: s, history: h, names: map[siltstone.TopicID]string{}, numbers: map[uint32]string{},
		stored: map[partition]map[int64]readRecord{}, starts: map[partition]int64{},
		wrong: slices.Clone(s.wrong),
	}
	a.client = ledger.NewClient(ledger.Options{
		Coordinator: s.coordinator, Bucket: s.bucket, Rand: func() uint64 { return 1 },
	})
	reader, err := tiered.New(tiered.Options{Bucket: s.bucket})
	if err != nil {
		return []string{err.Error()}
	}
	defer reader.Close()
	a.reader = reader
	a.cluster()
	for i := range shard.Count {
		a.shard(i)
	}
	for i := range group.Count {
		a.groups(i, h)
	}
	a.compare(h)
	return a.wrong
}

type auditor struct {
	store      *store
	history    *history
	client     *ledger.Client
	reader     *tiered.Reader
	expiration int64 // producer.id.expiration.ms
	names      map[siltstone.TopicID]string
	numbers    map[uint32]string // names, too
	stored     map[partition]map[int64]readRecord
	starts     map[partition]int64 // of logs
	wrong      []string
}

func (a *auditor) failf(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// frames are a ledger's entries, all that ever were, if they are one chain.
func (a *auditor) frames(name string) []ledger.Entry {
	entries := a.store.archive[name]
	var out []ledger.Entry
	var prev ledger.Hash
	for i, e := range entries {
		f, err := ledger.DecodeFrame(e.Data)
		switch {
		case err != nil:
			a.failf("3: %s entry %d: %v", name, e.Seq, err)
			return nil
		case e.Seq != coordinator.Seq(i+1):
			a.failf("3: %s has entry %d where %d is due", name, e.Seq, i+1)
			return nil
		case f.Prev != prev:
			a.failf("3: %s entry %d does not follow the one before it", name, e.Seq)
			return nil
		}
		prev = ledger.HashFrame(e.Data)
		out = append(out, ledger.Entry{Seq: e.Seq, Kind: f.Kind, TimeMS: f.TimeMS, Body: f.Body})
	}
	return out
}

// cluster refolds the cluster's ledger, and learns the topics' names.
func (a *auditor) cluster() {
	fold := topic.New()
	for _, e := range a.frames(topic.Ledger) {
		ch, err := fold.Apply(e)
		if err != nil || ch.Void != "" {
			a.failf("8: %s entry %d: %v %s", topic.Ledger, e.Seq, err, ch.Void)
		}
	}
	for _, t := range fold.View().All() {
		a.names[t.ID], a.numbers[t.Number] = t.Name, t.Name
	}
	a.expiration = fold.View().Cluster().ProducerIDExpirationMS
	sameFold(a, topic.Ledger, fold, topic.New, func([]ledger.Change[topic.Change], *topic.State) {})
}

// shard refolds a shard's ledger. Two leaders never commit at one epoch, and a
// partition's ranges lie side by side.
func (a *auditor) shard(id int) {
	name := shard.Ledger(id)
	fold := shard.New()
	leaders := map[siltstone.Epoch]siltstone.Incarnation{}
	next := map[siltstone.TopicPartition]siltstone.Offset{}
	var changes []ledger.Change[shard.Change]
	for _, e := range a.frames(name) {
		ch, err := fold.Apply(e)
		if err != nil || ch.Void != "" {
			a.failf("3: %s entry %d: %v %s", name, e.Seq, err, ch.Void)
			return
		}
		body, err := shard.Decode(e.Kind, e.Body)
		if err != nil {
			a.failf("3: %s entry %d: %v", name, e.Seq, err)
			return
		}
		switch b := body.(type) {
		case *shard.Lead:
			if ch.Jumped {
				a.jumped(fold, next)
			}
			if other, ok := leaders[b.Epoch]; ok && other != b.Leader {
				a.failf("3: %s and %s both lead %s at epoch %d", other, b.Leader, name, b.Epoch)
			}
			leaders[b.Epoch] = b.Leader
		case *shard.Segment:
			if leaders[b.Epoch] != b.Writer {
				a.failf("3: %s entry %d is by %s, the leader of epoch %d is %s", name, e.Seq, b.Writer, b.Epoch, leaders[b.Epoch])
			}
		}
		for _, r := range ch.Assigned {
			if r.Base != next[r.Partition.TP] {
				a.failf("3: %s entry %d: a range of %s at %d, due at %d", name, e.Seq, r.Partition.TP, r.Base, next[r.Partition.TP])
			}
			next[r.Partition.TP] = r.End()
		}
		changes = append(changes, ledger.Change[shard.Change]{Entry: e, Effect: ch})
	}
	a.addRows(name, changes, fold)
	sameFold(a, name, fold, shard.New, func(tail []ledger.Change[shard.Change], loaded *shard.State) {
		a.addRows(name, tail, loaded)
		a.sameProducers(name, fold, loaded)
	})
	for p := range fold.Partitions() {
		a.starts[partition{a.names[p.TP.Topic], p.TP.Partition}] = int64(p.LogStart)
		for r := range p.Ranges(0) {
			if err := a.object(id, p.TP, r); err != nil {
				a.failf("1: %s offsets %d to %d of %s: %v", a.names[p.TP.Topic], r.Base, r.End()-1, p.TP, err)
			}
		}
	}
}

// jumped notes what an unclean takeover has left out.
func (a *auditor) jumped(fold *shard.State, next map[siltstone.TopicPartition]siltstone.Offset) {
	if a.history.lost == nil {
		a.history.lost = map[partition][]span{}
	}
	for p := range fold.Partitions() {
		from := next[p.TP]
		if next[p.TP] += siltstone.UncleanJump; p.Next != next[p.TP] {
			a.failf("2: an unclean takeover moves the next offset of %s from %d to %d", p.TP, from, p.Next)
		}
		of := partition{a.names[p.TP.Topic], p.TP.Partition}
		a.history.lost[of] = append(a.history.lost[of], span{int64(from), int64(p.Next)})
	}
}

// sameFold loads a ledger as an agent does, from its checkpoint and tail, and
// compares it with the fold of all entries. What an agent reads besides the
// ledger, more does.
func sameFold[F ledger.Fold[C], C any](a *auditor, name string, whole F, empty func() F, more func([]ledger.Change[C], F)) {
	got, err := ledger.LoadFold[F](context.Background(), a.client, name, empty)
	if err != nil {
		a.failf("8: load %s: %v", name, err)
		return
	}
	if last := len(a.store.archive[name]); got.At.Seq != coordinator.Seq(last) {
		a.failf("8: %s ends at %d when loaded, at %d in truth", name, got.At.Seq, last)
		return
	}
	more(got.Tail, got.Fold)
	if !bytes.Equal(rowsOf(got.Fold), rowsOf(whole)) {
		a.failf("8: %s: the checkpoint at %d and the entries after it do not give what all entries give", name, got.Checkpoint.Seq)
	}
}

func rowsOf[C any](f ledger.Fold[C]) []byte {
	var b bytes.Buffer
	for k, v := range f.Rows {
		fmt.Fprintf(&b, "%x=%x\n", k, v)
	}
	return b.Bytes()
}

// object reads a live range from its object, as it was stored.
func (a *auditor) object(id int, tp siltstone.TopicPartition, r shard.Range) error {
	whole, err := a.store.bucket.Get(context.Background(), r.Object.Key(), 0, -1)
	if err != nil {
		return err
	}
	if err := segment.Verify(whole); err != nil {
		return err
	}
	o, err := segment.Parse(whole)
	if err != nil {
		return err
	}
	run, ok := o.Index.Find(tp)
	switch {
	case !ok:
		return errors.New("the object does not hold the partition")
	case int(run.Shard) != id || run.Offsets != r.Offsets || run.LengthBytes != r.LengthBytes || run.MaxTimestamp() != r.MaxTimestamp || run.LastEpoch() != r.Epoch:
		return fmt.Errorf("the run is %+v, the range %+v", run, r)
	}
	for _, row := range run.Rows {
		b := whole[row.Position : row.Position+int64(row.LengthBytes)]
		h, err := batch.ParseHeader(b)
		if err != nil {
			return err
		}
		if h.BaseOffset != r.Base+siltstone.Offset(row.OffsetDelta) || h.Epoch != row.Epoch {
			return fmt.Errorf("a batch is stamped %d of epoch %d, and lies at %d of epoch %d", h.BaseOffset, h.Epoch, int64(r.Base)+row.OffsetDelta, row.Epoch)
		}
		records, _, err := decodeBatches(b)
		if err != nil {
			return err
		}
		a.keep(partition{a.names[tp.Topic], tp.Partition}, records)
	}
	return nil
}

func (a *auditor) keep(p partition, records []readRecord) {
	if a.stored[p] == nil {
		a.stored[p] = map[int64]readRecord{}
	}
	for _, r := range records {
		if r.offset >= a.starts[p] {
			a.stored[p][r.offset] = r
		}
	}
}

// compare holds what is stored against what was shown: the last pass began
// when all was flushed, so each has what the other has.
func (a *auditor) compare(h *history) {
	seen := map[partition]map[int64]readRecord{}
	for _, r := range h.reads {
		if seen[r.partition] == nil {
			seen[r.partition] = map[int64]readRecord{}
		}
		for _, rec := range r.records {
			if rec.offset >= a.starts[r.partition] {
				seen[r.partition][rec.offset] = rec
			}
		}
	}
	all := maps.Clone(a.stored)
	maps.Copy(all, seen)
	for _, p := range sortedPartitions(all) {
		if strings.HasPrefix(p.topic, janitorsTopic) || maps.Equal(seen[p], a.stored[p]) {
			continue
		}
		offsets := maps.Clone(a.stored[p])
		if offsets == nil {
			offsets = map[int64]readRecord{}
		}
		maps.Copy(offsets, seen[p])
		for _, off := range slices.Sorted(maps.Keys(offsets)) {
			in, isIn := a.stored[p][off]
			if was, isSeen := seen[p][off]; (in != was || isIn != isSeen) && (isIn || !h.isLost(p, off, off+1)) {
				a.failf("1: %s offset %d: stored is %+v (%v), shown was %+v (%v)", p, off, in, isIn, was, isSeen)
				break
			}
		}
	}
}
