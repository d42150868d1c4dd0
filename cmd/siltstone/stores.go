package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/tiered/bucket/local"
)

// stores are what a data folder holds.
type stores struct {
	coordinator *embedded.Coordinator
	bucket      *local.Bucket
}

// openStores opens a data folder, for this process alone, and makes it where
// it is missing.
func openStores(dir string) (*stores, error) {
	if err := openFolder(dir, true); err != nil {
		return nil, explainFolder(dir, err)
	}
	if err := notHalf(dir); err != nil {
		return nil, explainFolder(dir, err)
	}
	if err := os.Mkdir(filepath.Join(dir, objectsName), 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, explainFolder(dir, err)
	}
	return openBoth(dir, embedded.Open, local.Open)
}

// notHalf refuses a folder that has lost one of its stores, before a new and
// empty one is made in its place. The folder of objects is made first.
func notHalf(dir string) error {
	missing := func(name string) bool { return !isThere(dir, name) }
	switch records := filepath.Join(objectsName, coordinator.ClusterKey); {
	case missing(databaseName) && !missing(records):
		return fmt.Errorf("%s is missing, and %s has the records of a cluster: put it back", databaseName, objectsName)
	case !missing(databaseName) && missing(objectsName):
		return fmt.Errorf("the folder %s is missing, and %s knows of a cluster: put it back", objectsName, databaseName)
	}
	return nil
}

// openStoresForReading opens a data folder that nobody writes to, and changes
// nothing in it.
func openStoresForReading(ctx context.Context, dir string) (*stores, error) {
	if err := openFolder(dir, false); err != nil {
		return nil, explainFolder(dir, err)
	}
	if err := notHalf(dir); err != nil {
		return nil, explainFolder(dir, err)
	}
	if noObjects(ctx, dir) && noRegisters(ctx, dir) {
		return nil, explainFolder(dir, errEmpty)
	}
	return openBoth(dir, embedded.OpenForReading, local.OpenForReading)
}

// errEmpty is a folder with a stamp, and at most stores of nothing: a first
// start was cut off before there was a cluster.
var errEmpty = errors.New("it is empty, and there is nothing to check: siltstone dev begins a cluster in it")

func noObjects(ctx context.Context, dir string) bool {
	b, err := local.OpenForReading(filepath.Join(dir, objectsName))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	found, err := b.List(ctx, "", "", 1)
	return errors.Join(err, b.Close()) == nil && len(found) == 0
}

func noRegisters(ctx context.Context, dir string) bool {
	c, err := embedded.OpenForReading(filepath.Join(dir, databaseName))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	found, err := c.List(ctx, "")
	return errors.Join(err, c.Close()) == nil && len(found) == 0
}

// unlessLocked is an error that came before a folder was opened, unless another
// process uses that: then its ports are taken too, and the folder is what to say.
func unlessLocked(ctx context.Context, dir string, err error) error {
	s, locked := openStoresForReading(ctx, dir)
	switch {
	case errors.Is(locked, coordinator.ErrLocked):
		return locked
	case locked == nil:
		return errors.Join(err, s.Close())
	}
	return err
}

func openBoth(dir string, database func(string) (*embedded.Coordinator, error), objects func(string) (*local.Bucket, error)) (*stores, error) {
	c, err := database(filepath.Join(dir, databaseName))
	if err != nil {
		return nil, explainFolder(dir, err)
	}
	b, err := objects(filepath.Join(dir, objectsName))
	if err != nil {
		return nil, explainFolder(dir, errors.Join(err, c.Close()))
	}
	return &stores{coordinator: c, bucket: b}, nil
}

// Close gives the folder up.
func (s *stores) Close() error { return errors.Join(s.bucket.Close(), s.coordinator.Close()) }
