package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// SaveCheckpoint stores a checkpoint under a key of its own, and after that
// points the ledger's register to it, unless that points to one as new
// already: it never goes back. After an error nothing points to the object, or
// may at any time; the caller saves a later checkpoint some time later.
func (c *Client) SaveCheckpoint(ctx context.Context, e EncodedCheckpoint) error {
	cp := e.Checkpoint
	nonce := c.nonce()
	cp.Key = objectKey(cp.Ledger, cp.At.Seq, nonce)
	// Nobody else has the key: what exists there is of a try whose answer was lost.
	if err := c.o.Bucket.Put(ctx, cp.Key, e.body); err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("save checkpoint %s: %w", cp.Key, err)
	}
	for {
		register, newest, err := c.pointer(ctx, cp.Ledger)
		if err != nil {
			return err
		}
		if newest.At.Seq >= cp.At.Seq {
			return nil
		}
		// The condition is what keeps the register from going back, also where
		// this put lands late.
		err = c.try(ctx, func(ctx context.Context) error {
			_, err := c.o.Coordinator.Put(ctx, checkpointKey(cp.Ledger), cp.appendPointer(nil), register.Version, nonce)
			return err
		})
		if conflict := (*coordinator.VersionConflict)(nil); !errors.As(err, &conflict) {
			if err != nil {
				return fmt.Errorf("point to checkpoint %s: %w", cp.Key, err)
			}
			return nil
		}
	}
}

// Newest is the checkpoint that a ledger's register points to; found is false
// if there is none.
func (c *Client) Newest(ctx context.Context, ledger string) (cp Checkpoint, found bool, err error) {
	register, cp, err := c.pointer(ctx, ledger)
	return cp, err == nil && len(register.Data) > 0, err
}

func (c *Client) pointer(ctx context.Context, ledger string) (v coordinator.Value, cp Checkpoint, err error) {
	err = c.retry(ctx, func(ctx context.Context) error {
		v, err = c.o.Coordinator.Get(ctx, checkpointKey(ledger))
		return err
	})
	if err != nil {
		return v, cp, fmt.Errorf("find checkpoint of %s: %w", ledger, err)
	}
	if len(v.Data) > 0 {
		cp, err = parsePointer(ledger, v.Data)
	}
	return v, cp, err
}

// Restore reads a checkpoint and hands on its rows, in order, checked. A
// checkpoint that is gone, after a newer one, is bucket.ErrNotFound; damage is
// siltstone.ErrCorrupt, and names the part.
func (c *Client) Restore(ctx context.Context, cp Checkpoint, restore func(key, value []byte) error) error {
	object, err := c.o.Bucket.Get(ctx, cp.Key, 0, -1)
	if err != nil {
		return fmt.Errorf("read checkpoint %s: %w", cp.Key, err)
	}
	got, err := DecodeCheckpoint(object, restore)
	if err != nil {
		return fmt.Errorf("read checkpoint %s: %w", cp.Key, err)
	}
	if got.Key = cp.Key; got != cp {
		return fmt.Errorf("checkpoint %s is of %s at %d, not as its pointer says: %w", cp.Key, got.Ledger, got.At.Seq, siltstone.ErrCorrupt)
	}
	return nil
}

// Lookup reads the rows whose keys have a prefix from a checkpoint, by two
// ranged reads of its object, whatever its size.
func (c *Client) Lookup(ctx context.Context, cp Checkpoint, prefix []byte) (found []Row, err error) {
	defer func() {
		if err != nil {
			found, err = nil, fmt.Errorf("look up %x in checkpoint %s: %w", prefix, cp.Key, err)
		}
	}()
	if cp.index.position > math.MaxInt64 || cp.index.lengthBytes > math.MaxInt64 {
		return nil, siltstone.ErrCorrupt
	}
	index, err := c.o.Bucket.Get(ctx, cp.Key, int64(cp.index.position), int64(cp.index.lengthBytes))
	if err != nil {
		return nil, err
	}
	blocks, err := parseIndex(index, cp.index)
	if err != nil {
		return nil, err
	}
	if blocks = withPrefix(blocks, prefix); len(blocks) == 0 {
		return nil, nil
	}
	start, end := blocks[0], blocks[len(blocks)-1]
	data, err := c.o.Bucket.Get(ctx, cp.Key, int64(start.position), int64(end.position+end.lengthBytes-start.position))
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		size := min(b.lengthBytes, uint64(len(data)))
		for row, err := range b.rows(data[:size]) {
			if err != nil {
				return nil, err
			}
			if bytes.HasPrefix(row.Key, prefix) {
				found = append(found, row)
			}
		}
		data = data[size:]
	}
	return found, nil
}

// withPrefix are the blocks that may hold keys with a prefix.
func withPrefix(blocks []block, prefix []byte) []block {
	first, end := 0, 0
	for i, b := range blocks {
		switch {
		case bytes.HasPrefix(b.firstKey, prefix):
			end = i + 1
		case bytes.Compare(b.firstKey, prefix) < 0:
			first, end = i, i+1
		}
	}
	// A block that begins below the prefix may hold it; of those only the last.
	return blocks[first:end]
}

// nonce makes a nonce.
func (c *Client) nonce() (n coordinator.Nonce) {
	binary.BigEndian.PutUint64(n[:8], c.o.Rand())
	binary.BigEndian.PutUint64(n[8:], c.o.Rand())
	return n
}
