package bucket

import (
	"context"
	"errors"
	"fmt"
)

// ErrConditions means that the store overwrites what it should not, so that two
// writers can both believe that an object is theirs. Siltstone cannot use it.
var ErrConditions = errors.New("the store does not honour conditional writes (If-None-Match: *)")

// CheckConditions finds out whether a bucket refuses to overwrite: it puts two
// objects under one new key. It is for the start of a process; the nonce is
// one that no other process uses. A new cluster is told by an empty bucket, so
// its id is claimed first. The probe is deleted; where that fails, a few bytes
// stay, which is no reason to refuse the store.
func CheckConditions(ctx context.Context, b Bucket, nonce uint64) error {
	key := fmt.Sprintf("probe/%016x", nonce)
	// ErrExists here is of a try whose answer was lost.
	if err := b.Put(ctx, key, Body{[]byte("first")}); err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("probe the store: %w", err)
	}
	err := b.Put(ctx, key, Body{[]byte("second")})
	var there []byte
	if errors.Is(err, ErrExists) {
		if there, err = b.Get(ctx, key, 0, -1); err == nil && string(there) != "first" {
			err = ErrConditions
		}
	} else if err == nil {
		err = ErrConditions
	}
	_ = b.Delete(context.WithoutCancel(ctx), []string{key})
	if err != nil {
		return fmt.Errorf("probe the store: %w", err)
	}
	return nil
}
