// Package faulty wraps a coordinator so that a test or the simulator decides
// what becomes of each call: whether it is made, when, how often, and what its
// caller is told. It starts no goroutine.
package faulty

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/siltstone-io/siltstone/coordinator"
)

// Op is a method of coordinator.Coordinator.
type Op string

// The methods.
const (
	Append Op = "append"
	Read   Op = "read"
	Floor  Op = "floor"
	Trim   Op = "trim"
	Get    Op = "get"
	Put    Op = "put"
	Delete Op = "delete"
	List   Op = "list"
)

// Writes says that the method changes something, if only on a condition, so
// that its outcome can be unknown.
func (o Op) Writes() bool { return o == Append || o == Trim || o == Put || o == Delete }

// Call is one call.
type Call struct {
	Op   Op
	Name string            // ledger, key or prefix
	Seq  coordinator.Seq   // Append: the slot; Read: after; Trim: through
	Mark coordinator.Nonce // of a conditional write
}

// Hook decides one call's fate. do makes the call, and returns its error; the
// caller gets what the hook returns, and with no error the result of the last
// do. It runs on the caller's goroutine and may block, with regard to ctx.
//
// It may keep do and call it after it has returned, with another context: the
// write lands late. Then it returns coordinator.ErrUnknown.
type Hook func(ctx context.Context, c Call, do func(context.Context) error) error

// Transparent lets every call through.
func Transparent(ctx context.Context, _ Call, do func(context.Context) error) error { return do(ctx) }

// LoseReply makes the call, and tells the caller that its outcome is unknown.
func LoseReply(ctx context.Context, c Call, do func(context.Context) error) error {
	_ = do(ctx)
	return Unanswered(c)
}

// Unanswered is the error of a call without a reply.
func Unanswered(c Call) error {
	if c.Op.Writes() {
		return fmt.Errorf("no reply to %s %s: %w", c.Op, c.Name, coordinator.ErrUnknown)
	}
	return fmt.Errorf("no reply to %s %s", c.Op, c.Name)
}

// Coordinator is a coordinator.Coordinator with faults.
type Coordinator struct {
	inner coordinator.Coordinator
	hook  Hook
}

// Wrap returns inner with faults. The hook is called from many goroutines.
func Wrap(inner coordinator.Coordinator, hook Hook) *Coordinator {
	return &Coordinator{inner: inner, hook: hook}
}

// call takes one call through the hook. A result that comes after the hook has
// returned is dropped.
func call[T any](ctx context.Context, f *Coordinator, c Call, do func(context.Context) (T, error)) (T, error) {
	var (
		mu     sync.Mutex
		result T
	)
	err := f.hook(ctx, c, func(ctx context.Context) error {
		r, err := do(ctx)
		mu.Lock()
		defer mu.Unlock()
		result = r
		return err
	})
	var zero T
	if err != nil {
		return zero, err
	}
	mu.Lock()
	defer mu.Unlock()
	return result, nil
}

// none is the result of a call that has only an error.
type none = struct{}

// Append implements coordinator.Ledger.
func (f *Coordinator) Append(ctx context.Context, ledger string, e coordinator.Entry) error {
	c := Call{Op: Append, Name: ledger, Seq: e.Seq, Mark: e.Nonce}
	e.Data = bytes.Clone(e.Data) // it may land when the caller has it back
	_, err := call(ctx, f, c, func(ctx context.Context) (none, error) {
		return none{}, f.inner.Append(ctx, ledger, e)
	})
	return err
}

// Read implements coordinator.Ledger.
func (f *Coordinator) Read(ctx context.Context, ledger string, after coordinator.Seq, limit int) ([]coordinator.Entry, error) {
	return call(ctx, f, Call{Op: Read, Name: ledger, Seq: after}, func(ctx context.Context) ([]coordinator.Entry, error) {
		return f.inner.Read(ctx, ledger, after, limit)
	})
}

// Floor implements coordinator.Ledger.
func (f *Coordinator) Floor(ctx context.Context, ledger string) (coordinator.Seq, error) {
	return call(ctx, f, Call{Op: Floor, Name: ledger}, func(ctx context.Context) (coordinator.Seq, error) {
		return f.inner.Floor(ctx, ledger)
	})
}

// Trim implements coordinator.Ledger.
func (f *Coordinator) Trim(ctx context.Context, ledger string, through coordinator.Seq) error {
	_, err := call(ctx, f, Call{Op: Trim, Name: ledger, Seq: through}, func(ctx context.Context) (none, error) {
		return none{}, f.inner.Trim(ctx, ledger, through)
	})
	return err
}

// Get implements coordinator.Register.
func (f *Coordinator) Get(ctx context.Context, key string) (coordinator.Value, error) {
	return call(ctx, f, Call{Op: Get, Name: key}, func(ctx context.Context) (coordinator.Value, error) {
		return f.inner.Get(ctx, key)
	})
}

// Put implements coordinator.Register.
func (f *Coordinator) Put(ctx context.Context, key string, data []byte, ifVersion coordinator.Version, nonce coordinator.Nonce) (coordinator.Version, error) {
	data = bytes.Clone(data)
	return call(ctx, f, Call{Op: Put, Name: key, Mark: nonce}, func(ctx context.Context) (coordinator.Version, error) {
		return f.inner.Put(ctx, key, data, ifVersion, nonce)
	})
}

// Delete implements coordinator.Register.
func (f *Coordinator) Delete(ctx context.Context, key string, ifVersion coordinator.Version, nonce coordinator.Nonce) error {
	_, err := call(ctx, f, Call{Op: Delete, Name: key, Mark: nonce}, func(ctx context.Context) (none, error) {
		return none{}, f.inner.Delete(ctx, key, ifVersion, nonce)
	})
	return err
}

// List implements coordinator.Register.
func (f *Coordinator) List(ctx context.Context, prefix string) ([]coordinator.Listed, error) {
	return call(ctx, f, Call{Op: List, Name: prefix}, func(ctx context.Context) ([]coordinator.Listed, error) {
		return f.inner.List(ctx, prefix)
	})
}

// Close closes the wrapped coordinator; no hook is asked.
func (f *Coordinator) Close() error { return f.inner.Close() }
