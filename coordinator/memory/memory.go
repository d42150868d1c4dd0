// Package memory is a coordinator in memory, for tests and the simulator. It
// starts no goroutine and blocks on nothing; what it holds lasts as long as
// some handle on it does.
package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Coordinator is a handle on a store. It implements coordinator.Coordinator.
type Coordinator struct {
	store  *store
	closed atomic.Bool
}

type store struct {
	mu        sync.Mutex // over memory only
	ledgers   map[string]*ledger
	registers map[string]coordinator.Value
	versions  uint64 // given out
}

type ledger struct {
	floor coordinator.Seq
	last  coordinator.Seq // no filled slot is above it
	slots map[coordinator.Seq]coordinator.Entry
}

// New makes an empty store and the first handle on it.
func New() *Coordinator {
	return &Coordinator{store: &store{ledgers: map[string]*ledger{}, registers: map[string]coordinator.Value{}}}
}

// Open makes another handle on the same store, as another process would have.
// Each is closed for itself.
func (c *Coordinator) Open() *Coordinator { return &Coordinator{store: c.store} }

// Close makes later calls by this handle fail. The store stays.
func (c *Coordinator) Close() error {
	c.closed.Store(true)
	return nil
}

// begin checks what may keep a call from being made, and takes the lock.
func (c *Coordinator) begin(ctx context.Context, check error) (*store, error) {
	if check != nil {
		return nil, check
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.closed.Load() {
		return nil, siltstone.ErrUnavailable
	}
	c.store.mu.Lock()
	return c.store, nil
}

func (s *store) ledger(name string) *ledger {
	l := s.ledgers[name]
	if l == nil {
		l = &ledger{slots: map[coordinator.Seq]coordinator.Entry{}}
		s.ledgers[name] = l
	}
	return l
}

// Append implements coordinator.Ledger.
func (c *Coordinator) Append(ctx context.Context, name string, e coordinator.Entry) error {
	s, err := c.begin(ctx, coordinator.CheckAppend(name, e))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	l := s.ledger(name)
	if occupant, taken := l.slots[e.Seq]; taken {
		return &coordinator.Conflict{Occupant: cloneEntry(occupant)}
	}
	l.slots[e.Seq] = cloneEntry(e)
	l.last = max(l.last, e.Seq)
	return nil
}

// Read implements coordinator.Ledger.
func (c *Coordinator) Read(ctx context.Context, name string, after coordinator.Seq, limit int) ([]coordinator.Entry, error) {
	s, err := c.begin(ctx, coordinator.CheckName(name))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.ledger(name)
	var entries []coordinator.Entry
	size := 0
	for seq := after + 1; seq > after && seq <= l.last && len(entries) < min(limit, coordinator.MaxReadEntries); seq++ {
		e, filled := l.slots[seq]
		if !filled {
			return nil, coordinator.ErrGap
		}
		if size += len(e.Data); size > coordinator.MaxReadBytes && len(entries) > 0 {
			break
		}
		entries = append(entries, cloneEntry(e))
	}
	return entries, nil
}

// Floor implements coordinator.Ledger.
func (c *Coordinator) Floor(ctx context.Context, name string) (coordinator.Seq, error) {
	s, err := c.begin(ctx, coordinator.CheckName(name))
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return s.ledger(name).floor, nil
}

// Trim implements coordinator.Ledger.
func (c *Coordinator) Trim(ctx context.Context, name string, through coordinator.Seq) error {
	s, err := c.begin(ctx, coordinator.CheckName(name))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	l := s.ledger(name)
	l.floor = max(l.floor, through)
	maps.DeleteFunc(l.slots, func(seq coordinator.Seq, _ coordinator.Entry) bool { return seq <= through })
	if through >= l.last {
		l.last = 0
	}
	return nil
}

// Get implements coordinator.Register.
func (c *Coordinator) Get(ctx context.Context, key string) (coordinator.Value, error) {
	s, err := c.begin(ctx, coordinator.CheckName(key))
	if err != nil {
		return coordinator.Value{}, err
	}
	defer s.mu.Unlock()
	return cloneValue(s.registers[key]), nil
}

// Put implements coordinator.Register.
func (c *Coordinator) Put(ctx context.Context, key string, data []byte, ifVersion coordinator.Version, nonce coordinator.Nonce) (coordinator.Version, error) {
	s, err := c.begin(ctx, coordinator.CheckPut(key, data))
	if err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	return s.put(key, coordinator.Value{Data: bytes.Clone(data), Nonce: nonce}, ifVersion)
}

// Delete implements coordinator.Register.
func (c *Coordinator) Delete(ctx context.Context, key string, ifVersion coordinator.Version, nonce coordinator.Nonce) error {
	s, err := c.begin(ctx, coordinator.CheckName(key))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	_, err = s.put(key, coordinator.Value{Nonce: nonce, Deleted: true}, ifVersion)
	return err
}

func (s *store) put(key string, v coordinator.Value, ifVersion coordinator.Version) (coordinator.Version, error) {
	if current := s.registers[key]; current.Version != ifVersion {
		return "", &coordinator.VersionConflict{Current: cloneValue(current)}
	}
	s.versions++
	v.Version = coordinator.Version(strconv.FormatUint(s.versions, 10))
	s.registers[key] = v
	return v.Version, nil
}

// List implements coordinator.Register.
func (c *Coordinator) List(ctx context.Context, prefix string) ([]coordinator.Listed, error) {
	s, err := c.begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var listed []coordinator.Listed
	for key, v := range s.registers {
		if strings.HasPrefix(key, prefix) && !v.Deleted {
			v.Data = bytes.Clone(v.Data)
			listed = append(listed, coordinator.Listed{Key: key, Value: v})
		}
	}
	slices.SortFunc(listed, func(a, b coordinator.Listed) int { return strings.Compare(a.Key, b.Key) })
	return listed, nil
}

func cloneEntry(e coordinator.Entry) coordinator.Entry {
	e.Data = bytes.Clone(e.Data)
	return e
}

func cloneValue(v coordinator.Value) coordinator.Value {
	v.Data = bytes.Clone(v.Data)
	return v
}
