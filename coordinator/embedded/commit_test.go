package embedded

import (
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// commits gives one commit after the other a fate; then they pass.
func commits(c *Coordinator, fates ...func(*bbolt.Tx) error) {
	c.commitTx = func(tx *bbolt.Tx) error {
		if len(fates) == 0 {
			return tx.Commit()
		}
		fate := fates[0]
		fates = fates[1:]
		return fate(tx)
	}
}

var errDisk = errors.New("disk failure")

// failedBefore is a commit whose pages could not be written.
func failedBefore(tx *bbolt.Tx) error { return errors.Join(errDisk, tx.Rollback()) }

// failedSync is one whose root was written, and then not synced.
func failedSync(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), errDisk) }

func panics(*bbolt.Tx) error { panic("page 7 is no page") }

func opened(t *testing.T) *Coordinator {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "cluster.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func slot(seq coordinator.Seq) coordinator.Entry {
	return coordinator.Entry{Seq: seq, Nonce: coordinator.Nonce{byte(seq)}}
}

func wantSlots(t *testing.T, c *Coordinator, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := c.Read(ctx, "a", 0, 100)
	if err != nil || len(got) != want {
		t.Fatalf("%d slots, %v; want %d", len(got), err, want)
	}
}

func TestCommitThatDidNotLand(t *testing.T) {
	for name, fate := range map[string]func(*bbolt.Tx) error{"failed": failedBefore, "panicked": panics} {
		t.Run(name, func(t *testing.T) {
			c := opened(t)
			commits(c, fate)
			err := c.Append(t.Context(), "a", slot(1))
			if errors.Is(err, coordinator.ErrUnknown) || !errors.Is(err, siltstone.ErrUnavailable) {
				t.Errorf("append: %v", err)
			}
			wantSlots(t, c, 0)
			if err := c.Append(t.Context(), "a", slot(1)); err != nil {
				t.Errorf("append again: %v", err)
			}
			wantSlots(t, c, 1)
		})
	}
}

func TestCommitUnknown(t *testing.T) {
	for name, next := range map[string]func(*testing.T, *Coordinator){
		"settled by the writer, who sends it again": func(t *testing.T, c *Coordinator) {
			var conflict *coordinator.Conflict
			if err := c.Append(t.Context(), "a", slot(1)); !errors.As(err, &conflict) || conflict.Occupant.Nonce != slot(1).Nonce {
				t.Errorf("append again: %v", err)
			}
		},
		"settled by a reader": func(t *testing.T, c *Coordinator) {
			wantSlots(t, c, 1)
		},
		"settled by another write": func(t *testing.T, c *Coordinator) {
			if _, err := c.Put(t.Context(), "r", nil, "", coordinator.Nonce{}); err != nil {
				t.Errorf("put: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := opened(t)
			commits(c, failedSync)
			if err := c.Append(t.Context(), "a", slot(1)); !errors.Is(err, coordinator.ErrUnknown) || !errors.Is(err, errDisk) {
				t.Errorf("append: %v", err)
			}
			before := c.state.Load()
			if before.db != nil {
				t.Error("what may be taken back can be read")
			}
			next(t, c)
			wantSlots(t, c, 1)
			if c.state.Load() == before {
				t.Error("it was not settled")
			}
		})
	}
}

// A file that another has locked meanwhile is his.
func TestCommitUnknownAndLocked(t *testing.T) {
	c := opened(t)
	commits(c, failedSync)
	if err := c.Append(t.Context(), "a", slot(1)); !errors.Is(err, coordinator.ErrUnknown) {
		t.Errorf("append: %v", err)
	}
	other, err := Open(c.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append(t.Context(), "a", slot(1)); err == nil || errors.Is(err, coordinator.ErrUnknown) {
		t.Errorf("append again: %v", err)
	}
	if _, err := c.Read(t.Context(), "a", 0, 1); !errors.Is(err, siltstone.ErrUnavailable) {
		t.Errorf("read: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	wantSlots(t, c, 1)
}

// held is a commit that is done, and returns when it is let go.
func held(done, let chan struct{}) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		err := tx.Commit()
		close(done)
		<-let
		return err
	}
}

// A reader does not see what is not known to be on disk, and others are not held up.
func TestReadWaitsForSync(t *testing.T) {
	c := opened(t)
	if err := c.Append(t.Context(), "a", slot(1)); err != nil {
		t.Fatal(err)
	}
	done, let := make(chan struct{}), make(chan struct{})
	commits(c, held(done, let))
	before, err := c.state.Load().db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Append(t.Context(), "a", slot(2)); err != nil {
			t.Error(err)
		}
	})
	<-done
	if err := c.waitDurable(t.Context(), c.state.Load().db, before.ID()); err != nil {
		t.Errorf("a reader of what was there before: %v", err)
	}
	_ = before.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if got, err := c.Read(ctx, "a", 0, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read %d slots before the sync: %v", len(got), err)
	}
	wg.Go(func() {
		if got, err := c.Read(t.Context(), "a", 0, 10); err != nil || len(got) != 2 {
			t.Errorf("read %d slots after the sync: %v", len(got), err)
		}
	})
	close(let)
	wg.Wait()
}

func TestWritesShareCommits(t *testing.T) {
	c := opened(t)
	done, let := make(chan struct{}), make(chan struct{})
	var count atomic.Int32
	hold := held(done, let)
	c.commitTx = func(tx *bbolt.Tx) error {
		if count.Add(1) == 1 {
			return hold(tx)
		}
		return tx.Commit()
	}
	var wg sync.WaitGroup
	for seq := range coordinator.Seq(50) {
		wg.Go(func() {
			if err := c.Append(t.Context(), "a", slot(seq+1)); err != nil {
				t.Error(err)
			}
		})
		if seq == 0 {
			<-done
		}
	}
	for len(c.queue) < 49 {
		time.Sleep(time.Millisecond)
	}
	close(let)
	wg.Wait()
	if n := count.Load(); n != 2 {
		t.Errorf("%d commits for 50 appends", n)
	}
	wantSlots(t, c, 50)
}

// A write that its caller gives up before the writer has it is not made; later,
// nobody knows.
func TestGivenUp(t *testing.T) {
	c := opened(t)
	done, let := make(chan struct{}), make(chan struct{})
	commits(c, held(done, let))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Append(ctx, "a", slot(1)); !errors.Is(err, coordinator.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("given up during the commit: %v", err)
		}
	})
	<-done
	wg.Go(func() {
		if err := c.Append(ctx, "a", slot(2)); errors.Is(err, coordinator.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("given up in the queue: %v", err)
		}
	})
	for len(c.queue) < 1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	wg.Wait()
	close(let)
	wantSlots(t, c, 1)
}

// Others write between the steps of a long trim.
func TestTrimLetsOthersIn(t *testing.T) {
	c := opened(t)
	const n = 20_000
	var wg sync.WaitGroup
	for w := range coordinator.Seq(groupWrites) {
		wg.Go(func() {
			for seq := w + 1; seq <= n; seq += groupWrites {
				if err := c.Append(t.Context(), "a", slot(seq)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	trimmed := make(chan error, 1)
	go func() { trimmed <- c.Trim(t.Context(), "a", n) }()
	for between := coordinator.Seq(0); ; {
		select {
		case err := <-trimmed:
			if err != nil || between < n/trimSlots/2 {
				t.Errorf("%d appends during the trim, %v", between, err)
			}
			wantSlots(t, c, 0)
			return
		default:
			between++
			if err := c.Append(t.Context(), "b", slot(between)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestOldTombstonesAreForgotten(t *testing.T) {
	c := opened(t)
	put := func(key string, r stored) {
		r.nonce, r.version = coordinator.Nonce{1}, 5
		err := c.state.Load().db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(registerBucket).Put([]byte(key), r.encode())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	old, young := time.Now().Add(-25*time.Hour), time.Now().Add(-23*time.Hour)
	put("old", stored{deleted: true, put: old})
	put("young", stored{deleted: true, put: young})
	put("value", stored{put: old})
	commits(c, failedSync) // it is opened again
	if err := c.Append(t.Context(), "a", slot(1)); !errors.Is(err, coordinator.ErrUnknown) {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"old": false, "young": true, "value": true} {
		if v, err := c.Get(t.Context(), key); err != nil || (v.Version != "") != want {
			t.Errorf("%s: %+v, %v", key, v, err)
		}
	}
}

func TestCellsGolden(t *testing.T) {
	nonce := coordinator.Nonce{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	for name, test := range map[string]struct {
		got  []byte
		want string
	}{
		"slot":      {encodeSlot(coordinator.Entry{Seq: 9, Nonce: nonce, Data: []byte("data")}), "000102030405060708090a0b0c0d0e0f64617461" + "0dcf76cd"},
		"register":  {stored{version: 258, put: time.UnixMilli(3), nonce: nonce, data: []byte("data")}.encode(), "00" + "0000000000000102" + "0000000000000003" + "000102030405060708090a0b0c0d0e0f" + "64617461" + "399be35d"},
		"tombstone": {stored{deleted: true, version: 1, put: time.UnixMilli(3)}.encode(), "01" + "0000000000000001" + "0000000000000003" + "00000000000000000000000000000000" + "0f7edbaa"},
		"floor":     {seal(seqKey(7)), "0000000000000007" + "58e2d661"},
	} {
		if got := hex.EncodeToString(test.got); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func FuzzCells(f *testing.F) {
	f.Add(encodeSlot(coordinator.Entry{Seq: 1, Data: []byte("data")}))
	f.Add(stored{version: 3, data: []byte("data")}.encode())
	f.Add(stored{deleted: true, version: 3}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		// Whatever its end, as if the CRC fitted, and as it is.
		for _, b := range [][]byte{b, seal(append([]byte{}, b...))} {
			if e, err := decodeSlot(seqKey(1), b); err == nil && string(encodeSlot(e)) != string(b) {
				t.Fatalf("%x is not the slot %+v", b, e)
			} else if err != nil && !errors.Is(err, siltstone.ErrCorrupt) {
				t.Fatal(err)
			}
			if r, err := decodeRegister([]byte("r"), b); err == nil && string(r.encode()) != string(b) {
				t.Fatalf("%x is not the register %+v", b, r)
			} else if err != nil && !errors.Is(err, siltstone.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}
