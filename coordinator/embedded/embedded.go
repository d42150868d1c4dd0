// Package embedded is a coordinator in one local file, for one process at a
// time: bbolt's file, locked for as long as it is open.
//
// Open starts one goroutine, which makes all writes, and Close ends it. Writes
// that wait for it at the same moment share a transaction, and so the time
// that the disk takes to sync. Reads run beside it, and return nothing that is
// not on disk. docs/formats/embedded.md has the layout of the file.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Coordinator implements coordinator.Coordinator.
type Coordinator struct {
	path  string
	reads bool // it was opened for reading only
	queue chan *write
	ended chan struct{} // by the writer, when the queue is closed and empty

	state atomic.Pointer[state] // set by the writer alone

	mu     sync.Mutex // of closed, and of calls.Add against calls.Wait
	closed bool
	calls  sync.WaitGroup

	commitTx func(*bbolt.Tx) error // (*bbolt.Tx).Commit, but for tests
}

// state is what readers know of the file.
type state struct {
	db      *bbolt.DB     // nil: it is to be opened again, see settle
	file    fs.FileInfo   // what is open, as large as it was seen to be
	durable int           // the last transaction that is on disk
	next    chan struct{} // closed when there is a newer state
}

// queuedWrites bounds what waits for the writer; past it, callers wait to queue.
const queuedWrites = 1024

// Open opens the coordinator in a file, or makes one. A file that another
// process has open is coordinator.ErrLocked, at once; one that is something
// else, siltstone.ErrForeign; one of a later release, siltstone.ErrNewerFormat;
// a damaged one, siltstone.ErrCorrupt.
func Open(path string) (*Coordinator, error) {
	db, durable, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return start(&Coordinator{path: path}, db, durable)
}

// OpenForReading opens the coordinator in a file that stays as it is, also on a
// disk that is full or cannot be written. Writes are siltstone.ErrUnavailable.
// Others may read at the same time; a process that has it open for writing is
// coordinator.ErrLocked, and a file that Open would make is os.ErrNotExist.
// What an earlier process did not see synced is shown too, though a power cut
// may still take it back.
func OpenForReading(path string) (*Coordinator, error) {
	db, err := openForReading(path)
	if err != nil {
		return nil, err
	}
	return start(&Coordinator{path: path, reads: true}, db, math.MaxInt)
}

func start(c *Coordinator, db *bbolt.DB, durable int) (*Coordinator, error) {
	file, err := os.Stat(c.path)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	c.queue = make(chan *write, queuedWrites)
	c.ended = make(chan struct{})
	c.commitTx = (*bbolt.Tx).Commit
	c.state.Store(&state{db: db, file: file, durable: durable, next: make(chan struct{})})
	go c.writeAll()
	return c, nil
}

// Close waits for the calls under way and gives up the lock.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	if already {
		return nil
	}
	c.calls.Wait()
	close(c.queue)
	<-c.ended
	if db := c.state.Load().db; db != nil {
		return db.Close()
	}
	return nil
}

// begin counts a call in, unless there is something against it.
func (c *Coordinator) begin(ctx context.Context, check error) error {
	if check != nil {
		return check
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("%s is closed: %w", c.path, siltstone.ErrUnavailable)
	}
	c.calls.Add(1)
	return nil
}

// read runs a function over what is on disk. What the function returns must
// not point into the file.
func (c *Coordinator) read(ctx context.Context, check error, do func(*bbolt.Tx) error) error {
	if err := c.begin(ctx, check); err != nil {
		return err
	}
	defer c.calls.Done()
	s := c.state.Load()
	if s.db == nil {
		// The writer opens it again before it does anything.
		if err := c.write(ctx, func(*bbolt.Tx) (bool, error) { return false, nil }); err != nil {
			return err
		}
		s = c.state.Load()
	}
	if s.db == nil {
		return c.unavailable()
	}
	if _, err := c.present(s); err != nil {
		return fmt.Errorf("%s: %w: %w", c.path, siltstone.ErrUnavailable, err)
	}
	return guard(func() error {
		tx, err := s.db.Begin(false)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", c.path, siltstone.ErrUnavailable, err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := do(tx); err != nil {
			return err
		}
		return c.waitDurable(ctx, s.db, tx.ID())
	})
}

// waitDurable waits until a transaction that a reader has seen is on disk: its
// root is visible from when it is written, which is before it is synced.
func (c *Coordinator) waitDurable(ctx context.Context, db *bbolt.DB, id int) error {
	for {
		s := c.state.Load()
		if s.db != db {
			return c.unavailable()
		}
		if s.durable >= id {
			return nil
		}
		select {
		case <-s.next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// present looks whether the file that is open is still the one at its path, and
// whole: what is written to one that was removed is lost when it is closed, and
// to read in what was cut off is a fault.
func (c *Coordinator) present(s *state) (fs.FileInfo, error) {
	file, err := os.Stat(c.path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file is gone: %w", err)
	case !os.SameFile(file, s.file):
		return nil, errReplaced
	case file.Size() < s.file.Size():
		return nil, fmt.Errorf("the file was cut from %d bytes to %d", s.file.Size(), file.Size())
	}
	return file, nil
}

var errReplaced = errors.New("the file is gone: another is in its place")

func (c *Coordinator) unavailable() error {
	return fmt.Errorf("%s: a commit failed and is not settled: %w", c.path, siltstone.ErrUnavailable)
}

var _ coordinator.Coordinator = (*Coordinator)(nil)
