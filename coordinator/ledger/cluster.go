package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// A coordinator and a bucket belong together: the register and the object
// coordinator.ClusterKey hold the same text, "siltstone 1 <cluster id>\n",
// where 1 is the version of the layout of both. The object is written first,
// and before anything else in the bucket.
const clusterVersion = 1

// ClusterID reads the id that coordinator and bucket carry, and is zero where
// neither has one. Where they do not belong together it is
// siltstone.ErrForeign; a later layout is siltstone.ErrNewerFormat.
func (c *Client) ClusterID(ctx context.Context) (siltstone.ClusterID, error) {
	ids, err := c.clusterIDs(ctx)
	if err == nil && ids.bucket != ids.coordinator {
		err = ids.foreign()
	}
	return ids.bucket, err
}

// EnsureClusterID is ClusterID for whoever may start a cluster: where neither
// coordinator nor bucket has an id, both get the fresh one, or that of
// somebody who does the same at this moment. A start that was interrupted is
// carried on. A bucket that holds something else is siltstone.ErrForeign.
func (c *Client) EnsureClusterID(ctx context.Context, fresh siltstone.ClusterID) (siltstone.ClusterID, error) {
	none := siltstone.ClusterID{}
	ids, err := c.clusterIDs(ctx)
	if err != nil {
		return none, err
	}
	if ids == (clusterIDs{}) {
		if ids.bucket, err = c.claimBucket(ctx, fresh); err != nil {
			return none, err
		}
	}
	if ids.coordinator == none && ids.bucket != none {
		if ids.coordinator, err = c.claimCoordinator(ctx, ids.bucket); err != nil {
			return none, err
		}
	}
	if ids.bucket != ids.coordinator {
		return none, ids.foreign()
	}
	return ids.bucket, nil
}

type clusterIDs struct{ bucket, coordinator siltstone.ClusterID }

func (ids clusterIDs) foreign() error {
	none := siltstone.ClusterID{}
	switch {
	case ids.coordinator == none:
		return fmt.Errorf("the bucket is of cluster %s, the coordinator is empty: one of them %w", ids.bucket, siltstone.ErrForeign)
	case ids.bucket == none:
		return fmt.Errorf("the coordinator is of cluster %s, the bucket of none: one of them %w", ids.coordinator, siltstone.ErrForeign)
	}
	return fmt.Errorf("the coordinator is of cluster %s, the bucket of %s: one of them %w", ids.coordinator, ids.bucket, siltstone.ErrForeign)
}

// clusterIDs reads the coordinator first, as it is the last that is written:
// there is no moment when only the coordinator has an id.
func (c *Client) clusterIDs(ctx context.Context) (ids clusterIDs, err error) {
	if ids.coordinator, err = c.registeredID(ctx); err != nil {
		return ids, err
	}
	ids.bucket, err = c.storedID(ctx)
	return ids, err
}

// storedID is the bucket's, zero if there is none.
func (c *Client) storedID(ctx context.Context) (siltstone.ClusterID, error) {
	object, err := c.o.Bucket.Get(ctx, coordinator.ClusterKey, 0, -1)
	if errors.Is(err, bucket.ErrNotFound) {
		return siltstone.ClusterID{}, nil
	}
	if err != nil {
		return siltstone.ClusterID{}, fmt.Errorf("read the bucket's cluster id: %w", err)
	}
	return parseClusterID("bucket", object)
}

// registeredID is the coordinator's, zero if there is none.
func (c *Client) registeredID(ctx context.Context) (siltstone.ClusterID, error) {
	var v coordinator.Value
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		v, err = c.o.Coordinator.Get(ctx, coordinator.ClusterKey)
		return err
	})
	if err != nil {
		return siltstone.ClusterID{}, fmt.Errorf("read the coordinator's cluster id: %w", err)
	}
	if len(v.Data) == 0 {
		return siltstone.ClusterID{}, nil
	}
	return parseClusterID("coordinator", v.Data)
}

// claimBucket writes an id into an empty bucket, or finds another's there.
func (c *Client) claimBucket(ctx context.Context, fresh siltstone.ClusterID) (siltstone.ClusterID, error) {
	found, err := c.o.Bucket.List(ctx, "", "", 1)
	if err != nil {
		return siltstone.ClusterID{}, fmt.Errorf("look whether the bucket is empty: %w", err)
	}
	if len(found) == 0 {
		err = c.o.Bucket.Put(ctx, coordinator.ClusterKey, bucket.Body{encodeClusterID(fresh)})
		if err != nil && !errors.Is(err, bucket.ErrExists) {
			return siltstone.ClusterID{}, fmt.Errorf("write the bucket's cluster id: %w", err)
		}
	}
	// Whatever else is in the bucket of a cluster came after its id.
	id, err := c.storedID(ctx)
	if err == nil && id == (siltstone.ClusterID{}) && len(found) > 0 {
		err = fmt.Errorf("the bucket has no cluster id, but an object %q: it %w", found[0].Key, siltstone.ErrForeign)
	}
	return id, err
}

// claimCoordinator writes the bucket's id into an empty coordinator. That it
// is empty is a start that was interrupted, or under way, only if the bucket
// holds nothing but the id; otherwise the coordinator was lost.
func (c *Client) claimCoordinator(ctx context.Context, id siltstone.ClusterID) (siltstone.ClusterID, error) {
	found, err := c.o.Bucket.List(ctx, "", "", 2)
	if err != nil {
		return siltstone.ClusterID{}, fmt.Errorf("look whether the bucket is empty: %w", err)
	}
	nonce := c.nonce()
	for pause := c.backoff(); len(found) == 1; {
		err = c.try(ctx, func(ctx context.Context) error {
			_, err := c.o.Coordinator.Put(ctx, coordinator.ClusterKey, encodeClusterID(id), "", nonce)
			return err
		})
		if conflict := (*coordinator.VersionConflict)(nil); err == nil || errors.As(err, &conflict) {
			break
		}
		if !errors.Is(err, coordinator.ErrUnknown) || !pause(ctx) {
			return siltstone.ClusterID{}, fmt.Errorf("write the coordinator's cluster id: %w", err)
		}
	}
	return c.registeredID(ctx)
}

func encodeClusterID(id siltstone.ClusterID) []byte {
	return fmt.Appendf(nil, "siltstone %d %s\n", clusterVersion, id)
}

func parseClusterID(where string, text []byte) (siltstone.ClusterID, error) {
	foreign := func() (siltstone.ClusterID, error) {
		return siltstone.ClusterID{}, fmt.Errorf("the %s's cluster id is %.40q: it %w", where, text, siltstone.ErrForeign)
	}
	word, rest, _ := bytes.Cut(text, []byte(" "))
	number, rest, ok := bytes.Cut(rest, []byte(" "))
	version, err := strconv.ParseUint(string(number), 10, 32)
	if !ok || string(word) != "siltstone" || err != nil {
		return foreign()
	}
	if version > clusterVersion {
		return siltstone.ClusterID{}, fmt.Errorf("the %s has layout %d, this release knows %d: %w", where, version, clusterVersion, siltstone.ErrNewerFormat)
	}
	id, err := siltstone.ParseClusterID(string(bytes.TrimSuffix(rest, []byte("\n"))))
	if err != nil || version != clusterVersion || id == (siltstone.ClusterID{}) {
		return foreign()
	}
	return id, nil
}
