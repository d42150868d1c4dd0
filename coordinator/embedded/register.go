package embedded

import (
	"bytes"
	"context"
	"time"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone/coordinator"
)

// Get implements coordinator.Register.
func (c *Coordinator) Get(ctx context.Context, key string) (coordinator.Value, error) {
	var r stored
	err := c.read(ctx, coordinator.CheckName(key), func(tx *bbolt.Tx) (err error) {
		r, err = decodeRegister([]byte(key), tx.Bucket(registerBucket).Get([]byte(key)))
		return err
	})
	if err != nil {
		return coordinator.Value{}, err
	}
	return r.value(), nil
}

// Put implements coordinator.Register.
func (c *Coordinator) Put(ctx context.Context, key string, data []byte, ifVersion coordinator.Version, nonce coordinator.Nonce) (coordinator.Version, error) {
	if err := c.begin(ctx, coordinator.CheckPut(key, data)); err != nil {
		return "", err
	}
	defer c.calls.Done()
	// The caller has its data back when it gives up, perhaps before the commit.
	return c.put(ctx, key, stored{nonce: nonce, data: bytes.Clone(data)}, ifVersion)
}

// Delete implements coordinator.Register.
func (c *Coordinator) Delete(ctx context.Context, key string, ifVersion coordinator.Version, nonce coordinator.Nonce) error {
	if err := c.begin(ctx, coordinator.CheckName(key)); err != nil {
		return err
	}
	defer c.calls.Done()
	_, err := c.put(ctx, key, stored{nonce: nonce, deleted: true}, ifVersion)
	return err
}

func (c *Coordinator) put(ctx context.Context, key string, r stored, ifVersion coordinator.Version) (coordinator.Version, error) {
	r.put = time.Now()
	version := make(chan coordinator.Version, 1) // the writer may be at it when this has returned
	err := c.write(ctx, func(tx *bbolt.Tx) (bool, error) {
		b := tx.Bucket(registerBucket)
		current, err := decodeRegister([]byte(key), b.Get([]byte(key)))
		if err != nil {
			return false, err
		}
		if current.value().Version != ifVersion {
			return false, &coordinator.VersionConflict{Current: current.value()}
		}
		// The bucket's sequence counts all versions of all registers; it is
		// never given back, so a version is never used again.
		if r.version, err = b.NextSequence(); err != nil {
			return false, err
		}
		version <- r.value().Version
		if err := b.Put([]byte(key), r.encode()); err != nil {
			return true, err
		}
		return true, notePut(tx, []byte(key), current, r)
	})
	if err != nil {
		return "", err
	}
	return <-version, nil
}

// List implements coordinator.Register.
func (c *Coordinator) List(ctx context.Context, prefix string) (listed []coordinator.Listed, err error) {
	err = c.read(ctx, nil, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(registerBucket).Cursor()
		key, value := cursor.Seek([]byte(prefix))
		for ; key != nil && bytes.HasPrefix(key, []byte(prefix)); key, value = cursor.Next() {
			r, err := decodeRegister(key, value)
			if err != nil {
				return err
			}
			if !r.deleted {
				listed = append(listed, coordinator.Listed{Key: string(key), Value: r.value()})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return listed, nil
}

// forgetTombstones removes those of registers deleted before a time.
func forgetTombstones(b *bbolt.Bucket, before time.Time) error {
	var old [][]byte
	err := b.ForEach(func(key, value []byte) error {
		r, err := decodeRegister(key, value)
		if err == nil && r.deleted && r.put.Before(before) {
			old = append(old, key)
		}
		return err
	})
	for _, key := range old {
		if err == nil {
			err = b.Delete(key)
		}
	}
	return err
}
