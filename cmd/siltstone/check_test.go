package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/check"
)

// newFolder makes a data folder of a cluster that has its id, and no more.
func newFolder(t *testing.T, dir string) {
	t.Helper()
	s, err := openStores(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := ledger.NewClient(ledger.Options{Coordinator: s.coordinator, Bucket: s.bucket, Rand: rand.Uint64})
	_, err = c.EnsureClusterID(t.Context(), siltstone.ClusterID{1})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

func mustBeClean(t *testing.T, dir string) {
	t.Helper()
	var out strings.Builder
	if err := checkFolder(t.Context(), dir, false, &out); err != nil || !strings.HasSuffix(out.String(), "\nclean\n") {
		t.Errorf("check: %v\n%s", err, out.String())
	}
}

func TestCheckChangesNothing(t *testing.T) {
	dir := t.TempDir()
	newFolder(t, dir)
	left := filepath.Join(dir, objectsName, "~tmp", "1-1") // as a killed agent leaves it
	if err := os.WriteFile(left, []byte("half"), 0o400); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	mustBeClean(t, dir)
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestCheckPrintsCounts(t *testing.T) {
	var out strings.Builder
	if err := printReport(&out, "data", &check.Report{Topics: 1, Partitions: 3, Records: 7, Batches: 2, Objects: 1, Groups: 2, Offsets: 1}); err != nil {
		t.Fatal(err)
	}
	if want := "\n1 topic, 3 partitions; 7 records in 2 batches in 1 object (0 B); 2 groups, 1 committed offset\nclean\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want it to end %q", out.String(), want)
	}
}

// files says what is in a folder, byte for byte, and when it was changed.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var b []byte
		if !e.IsDir() {
			b, err = os.ReadFile(path)
		}
		found[path] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
