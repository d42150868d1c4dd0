package remote

import (
	"context"
	"errors"
	"fmt"
)

// Make makes the bucket in the store where it is missing. Who may not make
// buckets may well use one that is there.
func (b *Bucket) Make(ctx context.Context) error {
	err := b.request(ctx, func(ctx context.Context) error {
		_, _, err := b.o.Objects.List(ctx, b.o.Prefix, "", 1)
		return err
	})
	if answer, ok := errors.AsType[*Answer](err); !ok || answer.Code != "NoSuchBucket" {
		return err
	}
	err = b.request(ctx, b.o.Objects.MakeBucket)
	if answer, ok := errors.AsType[*Answer](err); ok && answer.Code == "BucketAlreadyOwnedByYou" {
		return nil // somebody was quicker
	}
	if err != nil {
		return fmt.Errorf("make the bucket: %w", err)
	}
	return nil
}
