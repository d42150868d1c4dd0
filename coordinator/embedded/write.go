package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// write is one conditional write, on its way to the writer.
type write struct {
	// do changes the file if its condition holds, and says whether it did. An
	// error is the write's outcome, and not the transaction's.
	do    func(*bbolt.Tx) (changed bool, err error)
	taken atomic.Bool // by the writer, or back by its caller: whoever is first
	done  chan error  // room for one

	changed bool
	err     error
}

// groupWrites bounds the writes of one transaction.
const groupWrites = 256

// write hands a change to the writer and waits for it to be on disk. When ctx
// ends before the writer has taken it, it will not be made.
func (c *Coordinator) write(ctx context.Context, do func(*bbolt.Tx) (bool, error)) error {
	if c.reads {
		return fmt.Errorf("%s is open for reading only: %w", c.path, siltstone.ErrUnavailable)
	}
	w := &write{do: do, done: make(chan error, 1)}
	select {
	case c.queue <- w:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	if w.taken.CompareAndSwap(false, true) {
		return ctx.Err()
	}
	select {
	case err := <-w.done: // it came just then
		return err
	default:
		return fmt.Errorf("%w: %w", coordinator.ErrUnknown, ctx.Err())
	}
}

// writeAll is the writer's goroutine. It takes whatever waits into one
// transaction, and waits for nothing more: who comes during a commit shares
// the next.
func (c *Coordinator) writeAll() {
	defer close(c.ended)
	for first := range c.queue {
		group := []*write{first}
		for len(group) < groupWrites && len(c.queue) > 0 {
			group = append(group, <-c.queue)
		}
		live := group[:0]
		for _, w := range group {
			if w.taken.CompareAndSwap(false, true) {
				live = append(live, w)
			}
		}
		if len(live) > 0 {
			c.commitGroup(live)
		}
	}
}

// commitGroup answers the writes only when all of them are on disk: also one
// that lost its slot, perhaps to another of the same group.
func (c *Coordinator) commitGroup(group []*write) {
	err := c.settle()
	if err == nil {
		err = c.commit(group)
	}
	for _, w := range group {
		switch {
		case err == nil:
			w.done <- w.err
		case !w.changed: // whatever became of the others, this one has not landed
			w.done <- fmt.Errorf("%s: %w: %s", c.path, siltstone.ErrUnavailable, err.Error())
		default:
			w.done <- fmt.Errorf("%s: %w", c.path, err)
		}
	}
}

// commit makes one transaction of a group. An error that is not
// coordinator.ErrUnknown says that nothing of it is in the file.
func (c *Coordinator) commit(group []*write) error {
	s := c.state.Load()
	if _, err := c.present(s); err != nil {
		return err
	}
	var tx *bbolt.Tx
	err := guard(func() (err error) {
		tx, err = s.db.Begin(true)
		return err
	})
	if err != nil {
		return err
	}
	changed := false
	err = guard(func() error {
		for _, w := range group {
			w.changed, w.err = w.do(tx)
			changed = changed || w.changed
		}
		return nil
	})
	if err != nil || !changed {
		return errors.Join(err, tx.Rollback())
	}
	id := tx.ID()
	if err := guard(func() error { return c.commitTx(tx) }); err != nil {
		_ = tx.Rollback() // where it panicked; else it is over already
		return c.failed(s.db, id, err)
	}
	file, err := c.present(s)
	if err != nil {
		c.publish(s.db, s.file, id)
		return fmt.Errorf("%w: %w", coordinator.ErrUnknown, err)
	}
	c.publish(s.db, file, id)
	return nil
}

// failed tells what a failed commit has left. A transaction is made by its
// last step, the write of its root. If the file, as it reads now, does not
// have that, nothing will put it there any more: it has not landed, and the
// store goes on. If it has, only its sync has failed: whether it is on disk
// nobody can say, and a crash could take it back. Then the file is closed, and
// nobody sees it, until settle has put what it says on disk for certain.
func (c *Coordinator) failed(db *bbolt.DB, id int, cause error) error {
	seen := id
	err := guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			seen = tx.ID()
			return nil
		})
	})
	if err == nil && seen < id {
		return fmt.Errorf("nothing was written: %w: %w", siltstone.ErrUnavailable, cause)
	}
	c.publish(nil, c.state.Load().file, 0)
	closing := db.Close()
	return fmt.Errorf("%w: %w", coordinator.ErrUnknown, errors.Join(cause, err, closing))
}

// settle opens the file again where a commit was left unknown. Opening it
// commits a transaction of its own, whose success puts on disk whatever the
// file then says: with the unknown one or without. Nobody has seen either.
func (c *Coordinator) settle() error {
	s := c.state.Load()
	if s.db != nil {
		return nil
	}
	file, err := c.present(s) // a new one is not made in its place
	if err != nil {
		return err
	}
	db, durable, err := openFile(c.path)
	if err != nil {
		return err
	}
	c.publish(db, file, durable)
	return nil
}

func (c *Coordinator) publish(db *bbolt.DB, file fs.FileInfo, durable int) {
	old := c.state.Load()
	c.state.Store(&state{db: db, file: file, durable: durable, next: make(chan struct{})})
	close(old.next)
}
