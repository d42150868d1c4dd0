package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/tiered/bucket/local"
)

// stores are what a data folder holds.
type stores struct {
	coordinator *embedded.Coordinator
	bucket      *local.Bucket
}

// openStores opens a data folder, for this process alone.
func openStores(dir string, mayCreate bool) (s *stores, err error) {
	defer func() {
		if err != nil {
			err = explainFolder(dir, err)
		}
	}()
	if err := openFolder(dir, mayCreate); err != nil {
		return nil, err
	}
	objects := filepath.Join(dir, objectsName)
	if err := os.Mkdir(objects, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	s = &stores{}
	if s.coordinator, err = embedded.Open(filepath.Join(dir, databaseName)); err != nil {
		return nil, err
	}
	if s.bucket, err = local.Open(objects); err != nil {
		return nil, errors.Join(err, s.coordinator.Close())
	}
	return s, nil
}

// Close gives the folder up.
func (s *stores) Close() error { return errors.Join(s.bucket.Close(), s.coordinator.Close()) }
