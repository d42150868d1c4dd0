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
	if err := checkFolder(t.Context(), dir, false, &out); err != nil || !strings.HasSuffix(out.String(), "\n"+verdict(&check.Report{})+"\n") {
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

// TestCheckPrints: what there is, what is wrong with it, and a last line that
// says whether anything is.
func TestCheckPrints(t *testing.T) {
	r := check.Report{
		Cluster: "c", Ledgers: []check.Ledger{{Name: "topics", Last: 4}, {Name: "shard/00", Last: 3, Checkpoint: 2}},
		Topics: 1, Partitions: 3, Records: 7, Batches: 2, Objects: 1, Bytes: 2048, Groups: 2, Offsets: 1,
	}
	const counts = "cluster c in data\n2 ledgers: 7 entries, 1 checkpoint\n1 topic: 3 partitions\n7 records: 2 batches in 1 object (2.0 KiB)\n2 groups: 1 committed offset\n"
	orphans := make([]check.Object, printedOrphans+2)
	for i := range orphans {
		orphans[i] = check.Object{Key: fmt.Sprint("o", i), SizeBytes: 1}
	}
	damaged := r
	damaged.Problems = []check.Problem{{Where: "object o", What: "corrupt"}}
	lost := damaged
	lost.Unreadable = []check.Unreadable{{Topic: "t", Partition: 1, First: 3, Last: 5}}
	littered := r
	littered.Orphans = orphans[:1]
	crowded := r
	crowded.Orphans = orphans
	for _, tt := range []struct {
		name   string
		report check.Report
		want   string // after the counts
	}{
		{"clean", r, "clean: all that belongs here is here, and whole\n"},
		{"damaged", damaged, "PROBLEM object o: corrupt\ndamaged: 1 problem\n"},
		{"lost", lost, "PROBLEM object o: corrupt\nUNREADABLE offsets 3 to 5 of topic t, partition 1\ndamaged: 1 problem, and 3 offsets cannot be read\n"},
		{"an orphan", littered, "1 object that nothing refers to, which is no error:\n  o0 (1 B)\n" + verdict(&r) + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			printReport(&out, "data", &tt.report)
			if diff := cmp.Diff(counts+tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
	var out strings.Builder
	if printReport(&out, "data", &crowded); !strings.Contains(out.String(), "\n  o9 (1 B)\n  and 2 more: --json has all\nclean: ") {
		t.Errorf("many orphans: %s", out.String())
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
