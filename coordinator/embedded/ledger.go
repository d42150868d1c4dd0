package embedded

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Append implements coordinator.Ledger.
func (c *Coordinator) Append(ctx context.Context, ledger string, e coordinator.Entry) error {
	if err := c.begin(ctx, coordinator.CheckAppend(ledger, e)); err != nil {
		return err
	}
	defer c.calls.Done()
	key, slot := seqKey(e.Seq), encodeSlot(e)
	return c.write(ctx, func(tx *bbolt.Tx) (bool, error) {
		all := tx.Bucket(ledgersBucket)
		b, err := all.CreateBucketIfNotExists([]byte(ledger))
		if err != nil {
			return false, err
		}
		if taken := b.Get(key); taken != nil {
			occupant, err := decodeSlot(key, taken)
			if err != nil {
				return false, err
			}
			return false, &coordinator.Conflict{Occupant: occupant}
		}
		// Slots are filled in order: a page is left full when it is split.
		b.FillPercent = 0.95
		if err := b.Put(key, slot); err != nil {
			return true, err
		}
		return true, noteEnd(all, b, ledger, e.Seq, slot)
	})
}

// Read implements coordinator.Ledger.
func (c *Coordinator) Read(ctx context.Context, ledger string, after coordinator.Seq, limit int) (entries []coordinator.Entry, err error) {
	err = c.read(ctx, coordinator.CheckName(ledger), func(tx *bbolt.Tx) error {
		b := tx.Bucket(ledgersBucket).Bucket([]byte(ledger))
		if b == nil || after+1 == 0 {
			return nil
		}
		size := 0
		cursor := b.Cursor()
		key, value := cursor.Seek(seqKey(after + 1))
		for seq := after + 1; key != nil && len(entries) < min(limit, coordinator.MaxReadEntries); seq++ {
			e, err := decodeSlot(key, value)
			if err != nil {
				return fmt.Errorf("ledger %s: %w", ledger, err)
			}
			if e.Seq != seq {
				return coordinator.ErrGap
			}
			if size += len(e.Data); size > coordinator.MaxReadBytes && len(entries) > 0 {
				return nil
			}
			entries = append(entries, e)
			key, value = cursor.Next()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Floor implements coordinator.Ledger.
func (c *Coordinator) Floor(ctx context.Context, ledger string) (floor coordinator.Seq, err error) {
	err = c.read(ctx, coordinator.CheckName(ledger), func(tx *bbolt.Tx) error {
		floor, err = floorOf(tx, ledger)
		return err
	})
	if err != nil {
		return 0, err
	}
	return floor, nil
}

func floorOf(tx *bbolt.Tx, ledger string) (coordinator.Seq, error) {
	value := tx.Bucket(floorsBucket).Get([]byte(ledger))
	if value == nil {
		return 0, nil
	}
	b, err := unseal(value, 8)
	if err != nil || len(b) != 8 {
		return 0, fmt.Errorf("floor of %s, %x: %w", ledger, value, siltstone.ErrCorrupt)
	}
	return coordinator.Seq(binary.BigEndian.Uint64(b)), nil
}

// trimSlots is how many slots one transaction of a trim deletes: few, so that
// the writes of others, which come between, do not wait.
const trimSlots = 512

// Trim implements coordinator.Ledger.
func (c *Coordinator) Trim(ctx context.Context, ledger string, through coordinator.Seq) error {
	if err := c.begin(ctx, coordinator.CheckName(ledger)); err != nil {
		return err
	}
	defer c.calls.Done()
	err := c.write(ctx, func(tx *bbolt.Tx) (bool, error) {
		floor, err := floorOf(tx, ledger)
		if err != nil || through <= floor {
			return false, err
		}
		return true, tx.Bucket(floorsBucket).Put([]byte(ledger), seal(seqKey(through)))
	})
	if err != nil {
		return err
	}
	for {
		deleted := make(chan int, 1) // the writer may be at it when this has returned
		err := c.write(ctx, func(tx *bbolt.Tx) (bool, error) {
			n, err := deleteSlots(tx.Bucket(ledgersBucket).Bucket([]byte(ledger)), through)
			deleted <- n
			return n > 0, err
		})
		if err != nil {
			return fmt.Errorf("floor raised, slots left: %w: %w", coordinator.ErrUnknown, err)
		}
		if <-deleted < trimSlots {
			return nil
		}
	}
}

// deleteSlots deletes the first slots up to one, at most trimSlots, and says
// how many there were.
func deleteSlots(b *bbolt.Bucket, through coordinator.Seq) (int, error) {
	if b == nil {
		return 0, nil
	}
	var keys [][]byte // first, as deleting moves the cursor
	cursor := b.Cursor()
	for key, _ := cursor.First(); key != nil && len(keys) < trimSlots; key, _ = cursor.Next() {
		if len(key) != 8 || coordinator.Seq(binary.BigEndian.Uint64(key)) > through {
			break
		}
		keys = append(keys, key)
	}
	for i, key := range keys {
		if err := b.Delete(key); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}
