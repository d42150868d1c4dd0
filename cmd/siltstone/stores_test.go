package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// TestHalfAFolder: a store that was lost is not made anew beside the other.
func TestHalfAFolder(t *testing.T) {
	for _, lost := range []string{databaseName, objectsName} {
		t.Run(lost, func(t *testing.T) {
			dir := t.TempDir()
			s, err := openStores(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.bucket.Put(t.Context(), coordinator.ClusterKey, bucket.Body{[]byte("id")}); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, lost), filepath.Join(t.TempDir(), "away")); err != nil {
				t.Fatal(err)
			}
			if s, err = openStores(dir); err == nil || !strings.Contains(err.Error(), lost+" is missing") {
				t.Fatalf("%v, %v; want an error that %s is missing", s, err, lost)
			}
			if _, err := os.Stat(filepath.Join(dir, lost)); err == nil {
				t.Errorf("%s was made anew", lost)
			}
		})
	}
}

// TestEmptyFolder: what a first start leaves that was cut off is no damage, and
// what has anything in it is not empty.
func TestEmptyFolder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, dir string) error
		empty bool
	}{
		{"a stamp", func(*testing.T, string) error { return nil }, true},
		{"a folder of objects", func(_ *testing.T, dir string) error { return os.Mkdir(filepath.Join(dir, objectsName), 0o750) }, true},
		{"no byte in the database", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, objectsName), 0o750), os.WriteFile(filepath.Join(dir, databaseName), nil, 0o600))
		}, true},
		{"stores of nothing", func(_ *testing.T, dir string) error {
			s, err := openStores(dir)
			if err != nil {
				return err
			}
			return s.Close()
		}, true},
		{"a cluster", func(t *testing.T, dir string) error { newFolder(t, dir); return nil }, false},
		{"an object, and no database", func(t *testing.T, dir string) error {
			s, err := openStores(dir)
			if err != nil {
				return err
			}
			err = s.bucket.Put(t.Context(), "0/1/2/3", bucket.Body{[]byte("record")})
			return errors.Join(err, s.Close(), os.Remove(filepath.Join(dir, databaseName)))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(writeStamp(dir), tt.make(t, dir)); err != nil {
				t.Fatal(err)
			}
			s, err := openStoresForReading(t.Context(), dir)
			if err == nil {
				err = s.Close()
			}
			if errors.Is(err, errEmpty) != tt.empty {
				t.Errorf("%v", err)
			}
		})
	}
}
