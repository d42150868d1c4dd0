package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/buckettest"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

func openIn(t *testing.T, dir string) *Bucket {
	t.Helper()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return b
}

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t *testing.T) bucket.Bucket { return openIn(t, t.TempDir()) })
}

func TestSuiteThroughFaulty(t *testing.T) {
	buckettest.Run(t, func(t *testing.T) bucket.Bucket {
		return faulty.Wrap(openIn(t, t.TempDir()), func(faulty.Op, string) faulty.Fate { return faulty.Fate{} })
	})
}

func temps(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(dir, tempFolder))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestNoTemporaryFileStays(t *testing.T) {
	dir := t.TempDir()
	b := openIn(t, dir)
	for _, key := range []string{"a", "a", "b/c", "a/below", "b"} {
		_ = b.Put(t.Context(), key, bucket.Body{[]byte("x")})
	}
	if left := temps(t, dir); len(left) != 0 {
		t.Errorf("%d temporary files stay", len(left))
	}
}

func TestStaleTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	first := openIn(t, dir)
	killed := filepath.Join(dir, tempFolder, "99999-1")
	if err := os.WriteFile(killed, []byte("half an obj"), fileMode); err != nil {
		t.Fatal(err)
	}
	second := openIn(t, dir)
	if len(temps(t, dir)) != 1 {
		t.Fatal("a second opener removed what the first may be writing")
	}
	for _, b := range []*Bucket{first, second} {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left := temps(t, dir); len(left) != 1 {
		t.Fatalf("%d temporary files, want 1", len(left))
	}
	openIn(t, dir)
	if left := temps(t, dir); len(left) != 0 {
		t.Errorf("%d stale temporary files stay", len(left))
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "missing"), file, "/sys"} {
		b, err := Open(dir)
		if err == nil {
			t.Fatalf("Open(%s) = %v, want an error", dir, b)
		}
		if !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%s): %q is not one line that names the folder", dir, err)
		}
	}
}

// TestFullDisk needs a small file system of its own, and so the right to mount:
// it runs in a namespace in which this process has it.
func TestFullDisk(t *testing.T) {
	if os.Getenv("LOCAL_MAY_MOUNT") == "" {
		flags := "-m"
		if os.Geteuid() != 0 {
			flags = "-rm"
		}
		cmd := exec.CommandContext(t.Context(), "unshare", flags, os.Args[0], "-test.run=^TestFullDisk$")
		cmd.Env = append(os.Environ(), "LOCAL_MAY_MOUNT=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	b := openIn(t, dir)
	if err := b.Put(t.Context(), "fits", bucket.Body{make([]byte, 1000)}); err != nil {
		t.Fatal(err)
	}
	err := b.Put(t.Context(), "large", bucket.Body{make([]byte, 1<<20)})
	if !errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Put on a full disk: %q, want one line: no space left", err)
	}
	if left := temps(t, dir); len(left) != 0 {
		t.Errorf("%d temporary files fill the disk", len(left))
	}
	if err := b.Put(t.Context(), "fits-too", bucket.Body{make([]byte, 1000)}); err != nil {
		t.Errorf("Put of a small object: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "late", bucket.Body{{1}}); !errors.Is(err, unix.EROFS) {
		t.Errorf("Put on a read-only disk: %v", err)
	}
	if _, err := Open(dir); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open on a read-only disk: %v", err)
	}
	r, err := OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // a reader
	if got, err := r.Get(t.Context(), "fits", 0, -1); err != nil || len(got) != 1000 {
		t.Errorf("Get on a read-only disk: %d bytes, %v", len(got), err)
	}
}

// Who reads makes nothing, not even the folder for temporary files.
func TestForReading(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("x"), fileMode); err != nil {
		t.Fatal(err)
	}
	b, err := OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(t.Context(), "mine", 0, -1); err != nil || string(got) != "x" {
		t.Errorf("Get = %q, %v", got, err)
	}
	if got, err := b.List(t.Context(), "", "", 10); err != nil || len(got) != 1 {
		t.Errorf("List = %v, %v", got, err)
	}
	if err := b.Put(t.Context(), "new", nil); err == nil {
		t.Error("Put succeeds")
	}
	if err := b.Delete(t.Context(), []string{"mine"}); err == nil {
		t.Error("Delete succeeds")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if _, err := OpenForReading(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

// A folder that is gone must never look like objects that are.
func TestFolderGone(t *testing.T) {
	for _, c := range []struct {
		name string
		away func(t *testing.T, dir string)
	}{
		{"removed", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}},
		{"replaced", func(t *testing.T, dir string) {
			if err := errors.Join(os.Rename(dir, dir+"-away"), os.Mkdir(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "bucket")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			b := openIn(t, dir)
			c.away(t, dir)
			_, getErr := b.Get(t.Context(), "k", 0, -1)
			_, sizeErr := b.Size(t.Context(), "k")
			_, listErr := b.List(t.Context(), "", "", 1)
			for op, err := range map[string]error{"Get": getErr, "Size": sizeErr, "List": listErr, "Delete": b.Delete(t.Context(), []string{"k"})} {
				if err == nil || errors.Is(err, bucket.ErrNotFound) || !strings.Contains(err.Error(), dir) {
					t.Errorf("%s: %v, want an error that the folder is gone", op, err)
				}
			}
			if c.name == "removed" {
				if err := b.Put(t.Context(), "k", bucket.Body{{1}}); err == nil || !strings.Contains(err.Error(), "gone") {
					t.Errorf("Put: %v, want an error that the folder is gone", err)
				}
			}
		})
	}
}

func TestForeignFilesAreNotListed(t *testing.T) {
	dir := t.TempDir()
	b := openIn(t, dir)
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "lost+found"), 0),
		os.WriteFile(filepath.Join(dir, "a file"), nil, 0o600),
		os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")),
		b.Put(t.Context(), "mine", nil),
	); err != nil {
		t.Fatal(err)
	}
	if got, err := b.List(t.Context(), "", "", 10); err != nil || len(got) != 1 || got[0].Key != "mine" {
		t.Errorf("List = %v, %v; want only mine", got, err)
	}
	if _, err := b.Get(t.Context(), "passwd", 0, -1); err == nil {
		t.Error("Get follows a link out of the folder")
	}
}

// A write may end anywhere.
func TestSkip(t *testing.T) {
	all := "abcdefghi"
	for n := range len(all) + 1 {
		rest := skip([][]byte{[]byte("a"), []byte("bcd"), []byte("ef"), []byte("ghi")}, n)
		if got := string(slices.Concat(rest...)); got != all[n:] {
			t.Errorf("after %d bytes %q remains, want %q", n, got, all[n:])
		}
	}
}

func TestEmptyFoldersGo(t *testing.T) {
	dir := t.TempDir()
	b := openIn(t, dir)
	if err := errors.Join(b.Put(t.Context(), "a/b/c/1", nil), b.Put(t.Context(), "a/2", nil), b.Delete(t.Context(), []string{"a/b/c/1"})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a/b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder stays: %v", err)
	}
	if b.isSynced("a/b/c") {
		t.Error("a folder that is gone is still taken for durable")
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
		t.Errorf("a folder with an object: %v", err)
	}
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{16 << 10, 1 << 20, 8 << 20} {
		for _, writers := range []int{1, 4} {
			b.Run(fmt.Sprintf("%dKiB/%dAtOnce", size>>10, writers), func(b *testing.B) {
				l, err := Open(b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close() //nolint:errcheck // a benchmark
				var body bucket.Body
				for range size >> 14 {
					body = append(body, make([]byte, 16<<10))
				}
				b.SetBytes(int64(size))
				var wg sync.WaitGroup
				next := make(chan int)
				for range writers {
					wg.Go(func() {
						for i := range next {
							if err := l.Put(context.Background(), fmt.Sprintf("f/%d", i), body); err != nil {
								b.Error(err)
							}
						}
					})
				}
				for i := range b.N {
					next <- i
				}
				close(next)
				wg.Wait()
			})
		}
	}
}
