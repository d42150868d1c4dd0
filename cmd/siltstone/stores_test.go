package main

import (
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
