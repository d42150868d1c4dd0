// Package local is a bucket in a folder of a local disk, on Linux and macOS:
// an object is a file at its key. It starts nothing.
//
// Files under ~tmp, a name that no key can have, are objects being written;
// what a killed process left there is removed when nobody else has the bucket open.
package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

const (
	tempFolder = "~tmp"
	folderMode = 0o750
	fileMode   = 0o440 // an object never changes
)

// Bucket is a bucket.Bucket.
type Bucket struct {
	dir    string
	root   *os.Root
	temp   *os.File // the temp folder, under a shared lock while the bucket is open; nil: open for reading only
	serial atomic.Uint64

	mu     sync.Mutex
	synced map[string]struct{} // folders whose own place on disk is known to be durable
}

var _ bucket.Bucket = (*Bucket)(nil)

// Open opens the bucket in a folder, which must exist, hold hard links, and be writable.
func Open(dir string) (*Bucket, error) {
	b, err := OpenForReading(dir)
	if err != nil {
		return nil, err
	}
	if err := b.claim(); err != nil {
		return nil, fmt.Errorf("bucket folder %s: %w", b.dir, errors.Join(err, b.Close()))
	}
	if err := b.probe(); err != nil {
		return nil, fmt.Errorf("bucket folder %s: %w", b.dir, errors.Join(err, b.Close()))
	}
	return b, nil
}

// OpenForReading opens the bucket in a folder that stays as it is, also on a
// disk that is full or cannot be written. Put and Delete fail.
func OpenForReading(dir string) (*Bucket, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("bucket folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("bucket folder: %w", err)
	}
	return &Bucket{dir: dir, root: root, synced: make(map[string]struct{})}, nil
}

// errReading is a change of a bucket that is open for reading only.
var errReading = fmt.Errorf("the bucket is open for reading only: %w", syscall.EROFS)

// Close gives up the folder. No call may be under way.
func (b *Bucket) Close() error {
	if b.temp == nil {
		return b.root.Close()
	}
	return errors.Join(b.temp.Close(), b.root.Close())
}

// claim locks the temp folder and, when nobody else has it, empties it.
func (b *Bucket) claim() error {
	if err := b.root.Mkdir(tempFolder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp, err := b.root.Open(tempFolder)
	if err != nil {
		return err
	}
	if err := b.lock(temp); err != nil {
		return errors.Join(err, temp.Close())
	}
	b.temp = temp
	return nil
}

func (b *Bucket) lock(temp *os.File) error {
	if flock(temp, unix.LOCK_EX|unix.LOCK_NB) == nil {
		stale, err := temp.Readdirnames(-1)
		if err != nil {
			return err
		}
		for _, name := range stale {
			if err := b.root.Remove(tempFolder + "/" + name); err != nil {
				return err
			}
		}
	}
	if err := flock(temp, unix.LOCK_SH); err != nil {
		return fmt.Errorf("lock %s: %w", tempFolder, err)
	}
	return nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// probe finds out at start whether the disk takes an object, and whether it
// refuses to overwrite one.
func (b *Bucket) probe() error {
	first, err := b.writeTemp(bucket.Body{[]byte("probe")})
	if err != nil {
		return err
	}
	second := b.tempName()
	if err = b.root.Link(first, second); err == nil {
		if err = b.root.Link(first, second); errors.Is(err, fs.ErrExist) {
			err = b.root.Remove(second)
		} else {
			err = fmt.Errorf("a link overwrites: %w", err)
		}
	}
	return errors.Join(err, b.root.Remove(first))
}

// missing says what an error means that says that a file is not there: the
// object is missing, or the whole bucket is.
func (b *Bucket) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	if gone := b.gone(); gone != nil {
		return gone
	}
	return bucket.ErrNotFound
}

// gone is an error if the bucket's folder was moved, removed or mounted over.
func (b *Bucket) gone() error {
	here, err := os.Stat(b.dir)
	if err != nil {
		return fmt.Errorf("the bucket's folder is gone: %w", err)
	}
	opened, err := b.root.Stat(".")
	if err != nil {
		return fmt.Errorf("the bucket's folder is gone: %w", err)
	}
	if !os.SameFile(here, opened) {
		return fmt.Errorf("the bucket's folder is gone: another is at %s", b.dir)
	}
	return nil
}
