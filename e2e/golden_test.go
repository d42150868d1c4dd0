package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the golden data folder anew")

// golden is a data folder of format 1, as a release left it: topics of every
// codec, some settings, a topic that is gone.
const golden = "testdata/data-folder.v1.tar.gz"

const goldenRecords = 100 // of each topic; enough that they are smaller compressed

// TestGoldenFolder: a data folder of each format stays readable, and goes on.
func TestGoldenFolder(t *testing.T) {
	folderless(t)
	if *update {
		makeGolden(t)
	}
	dir := unpack(t, golden)
	r := check(t, dir)
	if r.Records != int64(goldenRecords*len(codecs)) {
		t.Errorf("check counts %d records", r.Records)
	}
	s := start(t, dir)
	for _, codec := range codecs {
		if out := s.cli(t, "", "consume", codec, "--exit"); out != lines(goldenRecords, codec+" %d") {
			t.Errorf("%s: %q", codec, out)
		}
		s.cli(t, "more\n", "produce", codec)
	}
	if out := s.cli(t, "", "topic", "list"); strings.Contains(out, "gone") {
		t.Errorf("a topic that was deleted is listed:\n%s", out)
	}
	if out := s.cli(t, "", "topic", "describe", "zstd"); !strings.Contains(out, "config retention.ms=1000") {
		t.Errorf("its settings:\n%s", out)
	}
	s.stop(t)
	if more := check(t, dir); more.Records != r.Records+int64(len(codecs)) {
		t.Errorf("after more was written check counts %d records", more.Records)
	}
}

func makeGolden(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir)
	for _, codec := range codecs {
		s.cli(t, "", "topic", "create", codec, "-c", "retention.ms=1000")
		s.cli(t, lines(goldenRecords, codec+" %d"), "produce", codec, "--compression", codec)
	}
	s.cli(t, "", "topic", "create", "gone")
	s.cli(t, "gone\n", "produce", "gone")
	s.cli(t, "", "topic", "delete", "gone")
	s.stop(t)
	path, err := filepath.Abs(golden)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	tar := exec.CommandContext(t.Context(), "tar", "--sort=name", "--owner=0", "--group=0", "--mtime=2026-01-01", "-czf", path, ".")
	tar.Dir = dir
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// unpack makes a folder of an archive.
func unpack(t *testing.T, archive string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		} else if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o750)
		} else {
			var b []byte
			if b, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, b, os.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
