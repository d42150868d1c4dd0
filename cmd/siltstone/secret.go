package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// secretKey is the register that has what a cluster's agents know each other by:
// who may read the table is of the cluster.
const secretKey = "secret"

const secretBytes = 32

// secret is the cluster's. The first who asks draws it.
func (s *remoteStores) secret(ctx context.Context) ([]byte, error) {
	v, err := s.coordinator.Get(ctx, secretKey)
	if err != nil {
		return nil, err
	}
	if len(v.Data) == 0 {
		drawn := make([]byte, secretBytes)
		_, _ = rand.Read(drawn) // it does not fail
		_, err := s.coordinator.Put(ctx, secretKey, drawn, v.Version, coordinator.Nonce(newClusterID()))
		conflict, taken := errors.AsType[*coordinator.VersionConflict](err)
		switch {
		case taken:
			v = conflict.Current
		case err != nil:
			return nil, err
		default:
			v.Data = drawn
		}
	}
	if len(v.Data) != secretBytes {
		return nil, fmt.Errorf("register %s: %d bytes: %w", secretKey, len(v.Data), siltstone.ErrCorrupt)
	}
	return v.Data, nil
}
