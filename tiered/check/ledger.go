package check

import (
	"context"
	"fmt"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// kind is what differs between kinds of ledgers.
type kind[F ledger.Fold[C], C any] struct {
	empty      func() F
	void       func(C) string      // why an entry was void; empty where it was not
	difference func(a, b F) string // empty where they are the same
	// seen, if there, is told each entry, and what it changed if it comes after
	// the checkpoint.
	seen func(e ledger.Entry, change C)
}

var (
	ofTopics = kind[*topic.State, topic.Change]{
		empty:      topic.New,
		void:       func(c topic.Change) string { return c.Void },
		difference: differentRows[*topic.State],
	}
	ofGroups = kind[*group.State, group.Change]{
		empty:      group.New,
		void:       func(c group.Change) string { return c.Void },
		difference: differentRows[*group.State],
	}
	ofShard = kind[*shard.State, shard.Change]{
		empty:      shard.New,
		void:       func(c shard.Change) string { return c.Void },
		difference: differentShards,
	}
)

// checkLedger follows a ledger from its floor to its end. It returns the fold
// of checkpoint and tail, as far as that goes.
func checkLedger[F ledger.Fold[C], C any](ctx context.Context, c *checker, name string, k kind[F, C]) (F, error) {
	fold := k.empty()
	floor, err := c.Coordinator.Floor(ctx, name)
	if err != nil {
		return fold, fmt.Errorf("ledger %s: %w", name, err)
	}
	w := walk[F, C]{c: c, kind: k, name: name, at: ledger.Position{Seq: floor}}
	w.knowsHash = floor == 0
	if fold, err = w.restore(ctx); err != nil {
		return fold, err
	}
	if w.fromStart = floor == 0 && w.checkpoint.Seq > 0; w.fromStart {
		w.whole = k.empty()
	}
	w.fold = fold
	if w.checkpoint.Seq < floor { // what comes after the floor folds to nothing without it
		w.fail("it is trimmed through %d, and its checkpoint goes to %d only", floor, w.checkpoint.Seq)
	}
	for w.good() {
		o, err := c.ledgers.Read(ctx, name, w.at.Seq, coordinator.MaxReadEntries)
		if err != nil {
			return fold, c.damage("ledger "+name, err)
		}
		if len(o.Entries) == 0 {
			break
		}
		for _, e := range o.Entries {
			if w.step(e); !w.good() {
				break
			}
		}
	}
	w.finish()
	c.report.Ledgers = append(c.report.Ledgers, Ledger{Name: name, Floor: floor, Last: w.at.Seq, Checkpoint: w.checkpoint.Seq})
	return fold, nil
}

// restore reads the newest checkpoint, if there is one.
func (w *walk[F, C]) restore(ctx context.Context) (F, error) {
	c, fold := w.c, w.kind.empty()
	cp, found, err := c.ledgers.Newest(ctx, w.name)
	if err != nil || !found {
		return fold, c.damage("checkpoint of "+w.name, err)
	}
	c.used[cp.Key] = true
	if err := c.ledgers.Restore(ctx, cp, fold.Restore); err != nil {
		return w.kind.empty(), c.damage("checkpoint "+cp.Key, err)
	}
	w.checkpoint = cp.At
	if w.at.Seq == cp.At.Seq {
		w.at, w.knowsHash = cp.At, true
	}
	return fold, nil
}

// walk goes along one ledger, entry by entry.
type walk[F ledger.Fold[C], C any] struct {
	c    *checker
	kind kind[F, C]
	name string

	at         ledger.Position
	knowsHash  bool // at.Hash is known: not before the first entry of a trimmed ledger
	checkpoint ledger.Position
	fold       F    // of checkpoint and tail
	whole      F    // of all entries, where all are there
	fromStart  bool // whole is kept
	broken     bool
}

func (w *walk[F, C]) good() bool { return !w.broken }

func (w *walk[F, C]) fail(format string, args ...any) {
	w.broken = true
	w.c.problem("ledger "+w.name, format, args...)
}

func (w *walk[F, C]) step(e coordinator.Entry) {
	frame, err := ledger.DecodeFrame(e.Data)
	switch {
	case e.Seq != w.at.Seq+1:
		w.fail("entry %d follows entry %d", e.Seq, w.at.Seq)
		return
	case err != nil:
		w.fail("entry %d: %v", e.Seq, err)
		return
	case w.knowsHash && frame.Prev != w.at.Hash:
		w.fail("entry %d follows one of hash %s; the one before it has %s", e.Seq, frame.Prev, w.at.Hash)
		return
	}
	w.at, w.knowsHash = ledger.Position{Seq: e.Seq, Hash: ledger.HashFrame(e.Data)}, true
	if e.Seq == w.checkpoint.Seq && w.at.Hash != w.checkpoint.Hash {
		w.fail("its checkpoint is of another history: entry %d has hash %s, there %s", e.Seq, w.at.Hash, w.checkpoint.Hash)
		return
	}
	entry := ledger.Entry{Seq: e.Seq, Kind: frame.Kind, TimeMS: frame.TimeMS, Body: frame.Body}
	var change C
	if e.Seq > w.checkpoint.Seq {
		change = w.apply(w.fold, entry, true)
	}
	if w.kind.seen != nil && w.good() {
		w.kind.seen(entry, change)
	}
	if w.fromStart && w.good() {
		w.apply(w.whole, entry, e.Seq <= w.checkpoint.Seq)
	}
}

// apply folds an entry, and reports a void one once.
func (w *walk[F, C]) apply(fold F, e ledger.Entry, report bool) C {
	change, err := fold.Apply(e)
	if err != nil {
		w.fail("entry %d: %v", e.Seq, err)
	} else if why := w.kind.void(change); why != "" && report {
		w.c.problem("ledger "+w.name, "entry %d is void: %s", e.Seq, why)
	}
	return change
}

func (w *walk[F, C]) finish() {
	if w.broken {
		return
	}
	if w.at.Seq < w.checkpoint.Seq {
		w.fail("it ends at %d, before its checkpoint at %d", w.at.Seq, w.checkpoint.Seq)
		return
	}
	if !w.fromStart {
		return
	}
	if diff := w.kind.difference(w.whole, w.fold); diff != "" {
		w.fail("its checkpoint and tail fold to something else than all its entries: %s", diff)
	}
}
