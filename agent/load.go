package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// A shard is loaded in two steps: its ledger, then the indexes of the objects
// that the ledger's tail names, for the producers of what they hold. Nobody
// leads a shard who does not know the producers of all that is flushed. The
// second step is one worker's, for all shards whose ledgers have been read, as
// they share the objects.

// A shardLoad is a shard that is being loaded.
type shardLoad struct {
	s       *ledShard
	got     ledger.Loaded[*shard.State, shard.Change]
	err     error
	missing bool            // an object of the tail is: there may be a newer checkpoint
	tried   ledger.Position // the checkpoint when it was
}

// loads are the shards that are being loaded.
type loads struct {
	ledgers  int          // are being read
	read     []*shardLoad // whose ledgers have been read
	indexing bool         // indexes are being read
}

// load is readShard's, for a log shard.
func (c *core) load(s *ledShard) {
	c.setState(s, loading)
	s.rowless = false
	c.loadLedger(&shardLoad{s: s, tried: ledger.Position{Seq: math.MaxUint64}})
}

// newFold is a shard's before its first entry.
func (a *Agent) newFold() *shard.State {
	fold := shard.New()
	fold.Bug = a.opts.Plant
	return fold
}

// loadLedger reads a shard's checkpoint and tail.
func (c *core) loadLedger(l *shardLoad) {
	c.loads.ledgers++
	c.work(func(ctx context.Context) event {
		l.got, l.err = loadFold(ctx, c.Agent, l.s.log.Name(), c.newFold)
		return (*ledgerRead)(l)
	})
}

// loadFold reads a ledger to its end, however long the stores take to answer.
func loadFold[F ledger.Fold[C], C any](ctx context.Context, a *Agent, name string, empty func() F) (got ledger.Loaded[F, C], err error) {
	err = a.retry(ctx, "load "+name, func(ctx context.Context) (err error) {
		got, err = ledger.LoadFold[F, C](ctx, a.ledgers, name, empty)
		return err
	}, siltstone.ErrCorrupt, siltstone.ErrNewerFormat)
	return got, err
}

// replaceFold puts what was read of a shard's ledger in the place of what was
// folded of it. Nothing is folded while it is read, so a ledger that ends before
// that has lost something.
func replaceFold[F ledger.Fold[C], C any](log *ledger.Log[F, C], got ledger.Loaded[F, C]) error {
	if at := log.Position().Seq; got.At.Seq < at {
		return fmt.Errorf("load %s: it ends at %d, and entry %d has been folded: %w", log.Name(), got.At.Seq, at, siltstone.ErrCorrupt)
	}
	log.Replace(got.Fold, got.At)
	return nil
}

// ledgerRead is a load whose ledger has been read.
type ledgerRead shardLoad

func (e *ledgerRead) handle(c *core) {
	c.loads.ledgers--
	c.loads.read = append(c.loads.read, (*shardLoad)(e))
}

// loadIndexes reads what is missing of the shards whose ledgers have been
// read, once no other ledger is being read.
func (c *core) loadIndexes() {
	l := &c.loads
	if l.ledgers > 0 || l.indexing || len(l.read) == 0 {
		return
	}
	e := &indexesRead{of: l.read}
	l.read, l.indexing = nil, true
	c.work(func(ctx context.Context) event {
		var wg sync.WaitGroup
		for _, l := range e.of {
			if l.err == nil {
				wg.Go(func() { l.err = c.addRows(ctx, l) })
			}
		}
		wg.Wait()
		return e
	})
}

// addRows gives a shard's fold its producers. An object of the tail is there,
// or a newer checkpoint has its rows, or it is lost. Then a producer whose last
// records were in it learns of it: what it sends next is out of order.
func (a *Agent) addRows(ctx context.Context, l *shardLoad) error {
	name := l.s.log.Name()
	lost := func(id segment.ObjectID, err error) error {
		if errors.Is(err, bucket.ErrNotFound) && l.got.Checkpoint != l.tried {
			l.missing = true
			return err
		}
		a.opts.Log.Error("an object is lost, and with it what it says of producers", "ledger", name, "object", id.Key(), "err", err)
		return nil
	}
	return a.retry(ctx, "read indexes for "+name, func(ctx context.Context) error {
		return a.reader.AddRows(ctx, l.got.Fold, l.got.Tail, lost)
	}, siltstone.ErrNewerFormat, bucket.ErrNotFound)
}

// indexesRead are loads that have come to their ends.
type indexesRead struct{ of []*shardLoad }

func (e *indexesRead) handle(c *core) {
	c.loads.indexing = false
	for _, l := range e.of {
		switch {
		case l.missing:
			c.loadLedger(&shardLoad{s: l.s, tried: l.got.Checkpoint})
		case l.err == nil:
			c.loaded(l)
		case c.workCtx.Err() == nil:
			c.fail(fmt.Errorf("load %s: %w", l.s.log.Name(), l.err))
		}
	}
}

// loaded takes a shard as it stands in the stores.
func (c *core) loaded(l *shardLoad) {
	s := l.s
	if err := replaceFold(s.log, l.got); err != nil {
		c.fail(err)
		return
	}
	s.inFlight = nil
	s.unstored.restart(l.got.At, l.got.Checkpoint, c.now)
	fold := s.fold()
	for _, p := range s.parts {
		if _, ok := fold.Partition(p.tp); p.open && !ok {
			c.end(p)
		}
	}
	s.seated.known = c.now
	switch {
	case fold.Leader() == c.opts.Incarnation && s.epoch != 0 && fold.Epoch() == s.epoch:
		to := serving
		if s.seated.served != s.epoch {
			to = recovering
		}
		c.setState(s, to)
		c.resume(s)
		return
	case c.inherits(s):
		c.depose(s)
		c.serve(s)
		s.seated.handedAt = c.now
		return
	}
	c.depose(s)
	c.readFor(s)
}
