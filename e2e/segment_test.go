package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// objectFiles are the segments in a data folder.
func objectFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "objects", "?", "*", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no segments below %s: %v", dir, err)
	}
	return files
}

// TestSegmentCommands: what is in a segment, and that it is whole; one that is
// not is found by its own commands and by check.
func TestSegmentCommands(t *testing.T) {
	folderless(t)
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	const records = 100 // enough that they are smaller compressed
	s.cli(t, lines(records, "record %d"), "produce", "t", "--compression", "gzip")
	s.stop(t)
	files := objectFiles(t, s.dir)
	stdout, stderr, code := run(t, "", append([]string{"segment", "verify"}, files...)...)
	if code != 0 || strings.Count(stdout, ": ok\n") != len(files) {
		t.Errorf("verify: code %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = run(t, "", append([]string{"segment", "dump", "--json"}, files...)...)
	var dumped []struct {
		Key  string
		Runs []struct {
			Partition int
			Offsets   int
			Batches   []struct{ Codec string }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &dumped); err != nil || code != 0 {
		t.Fatalf("dump: code %d, %v: %s%s", code, err, stdout, stderr)
	}
	offsets := 0
	for i, d := range dumped {
		if !strings.HasSuffix(files[i], d.Key) {
			t.Errorf("%s says that its key is %s", files[i], d.Key)
		}
		for _, r := range d.Runs {
			offsets += r.Offsets
			if len(r.Batches) == 0 || r.Batches[0].Codec != "gzip" {
				t.Errorf("%+v", r)
			}
		}
	}
	if offsets != records {
		t.Errorf("%d offsets in all, want %d: %s", offsets, records, stdout)
	}
	if stdout, _, code = run(t, "", "segment", "dump", files[0]); code != 0 || !strings.Contains(stdout, "gzip") {
		t.Errorf("dump: code %d: %s", code, stdout)
	}

	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.Remove(files[0]); err != nil { // it is read-only
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = run(t, "", "segment", "verify", files[0])
	oneClearLine(t, "verify", stderr, code, "damaged")
	if !strings.Contains(stdout, files[0]) {
		t.Errorf("verify does not name the file: %s", stdout)
	}
	if stdout, _, code = run(t, "", "check", "--data", s.dir); code == 0 {
		t.Errorf("check of a damaged folder is clean: %s", stdout)
	}
}
