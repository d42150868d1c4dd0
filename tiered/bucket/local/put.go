package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// A put, in this order: write a temporary file and sync it; link it at its
// key, which never overwrites; sync the folders above that this process does
// not know to be durable; sync the object's own folder; return. So whatever
// is at a key is whole, and is durable once a Put of the key has returned nil
// or ErrExists, also one whose predecessor died between link and sync.

// Put implements bucket.Bucket.
func (b *Bucket) Put(ctx context.Context, key string, body bucket.Body) error {
	if err := bucket.CheckKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if err := b.put(ctx, key, body); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

func (b *Bucket) put(ctx context.Context, key string, body bucket.Body) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.temp == nil {
		return errReading
	}
	temp, err := b.writeTemp(body)
	if err != nil {
		return b.explain(err)
	}
	linked := ctx.Err()
	if linked == nil {
		linked = b.link(temp, key)
	}
	if err := b.root.Remove(temp); err != nil {
		return errors.Join(linked, err)
	}
	if linked != nil && !errors.Is(linked, bucket.ErrExists) {
		return b.explain(linked)
	}
	if err := b.syncFolders(path.Dir(key)); err != nil {
		return err
	}
	return cmp.Or(b.gone(), linked) // it may lie in a folder that was moved away
}

// explain says that a folder of the bucket's own is gone, rather than what came of it.
func (b *Bucket) explain(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if gone := b.gone(); gone != nil {
		return gone
	}
	if _, missing := b.root.Stat(tempFolder); missing != nil {
		return fmt.Errorf("the bucket's folder %s is gone, make it again: %w", path.Join(b.dir, tempFolder), missing)
	}
	return err
}

// maxLinkTries bounds how often a Delete may remove the empty folder that a
// Put is about to link into.
const maxLinkTries = 16

func (b *Bucket) link(temp, key string) error {
	err := b.root.Link(temp, key)
	for range maxLinkTries {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err = b.root.MkdirAll(path.Dir(key), folderMode); err == nil {
			for folder := path.Dir(key); folder != "."; folder = path.Dir(folder) {
				b.forget(folder) // somebody may have removed it
			}
			err = b.root.Link(temp, key)
		}
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := b.root.Lstat(key); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is a folder of other objects", bucket.ErrKey)
	}
	return bucket.ErrExists
}

// syncFolders makes the folder and its place on disk durable. It runs after
// the link: from then on the folder is not empty, so what is known of it
// cannot be of one that a Delete has removed since.
func (b *Bucket) syncFolders(folder string) error {
	if !b.isSynced(folder) {
		for above := folder; above != "."; {
			above = path.Dir(above)
			if err := b.syncFolder(above); err != nil {
				return err
			}
		}
	}
	if err := b.syncFolder(folder); err != nil {
		return err
	}
	b.setSynced(folder)
	return nil
}

func (b *Bucket) syncFolder(folder string) error {
	f, err := b.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (b *Bucket) tempName() string {
	return tempFolder + "/" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(b.serial.Add(1), 10)
}

// writeTemp writes and syncs a new temporary file, and returns its name.
func (b *Bucket) writeTemp(body bucket.Body) (string, error) {
	f, err := b.createTemp()
	if err != nil {
		return "", err
	}
	if err = writeBody(f, body, body.Len()); err == nil {
		err = f.Sync()
	}
	name := tempFolder + "/" + path.Base(f.Name())
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, b.root.Remove(name))
	}
	return name, nil
}

func (b *Bucket) createTemp() (*os.File, error) {
	for {
		f, err := b.root.OpenFile(b.tempName(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) { // of a process with the same id in another container
			return nil, fmt.Errorf("in %s: %w", b.dir, err)
		}
	}
}

// maxVectors is how many parts one writev takes (IOV_MAX).
const maxVectors = 1024

// writeAll writes the parts where they lie, as many at once as the system takes.
func writeAll(f *os.File, body bucket.Body) error {
	parts := make([][]byte, 0, len(body))
	for _, p := range body {
		if len(p) > 0 {
			parts = append(parts, p)
		}
	}
	for len(parts) > 0 {
		n, err := unix.Writev(int(f.Fd()), parts[:min(len(parts), maxVectors)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "write", Path: f.Name(), Err: err}
		}
		parts = skip(parts, n)
	}
	return nil
}

// skip is what remains of the parts behind their first n bytes. It changes parts.
func skip(parts [][]byte, n int) [][]byte {
	for len(parts) > 0 && n >= len(parts[0]) {
		n -= len(parts[0])
		parts = parts[1:]
	}
	if n > 0 {
		parts[0] = parts[0][n:]
	}
	return parts
}

// maxSynced bounds what is remembered of folders; a forgotten one costs syncs again.
const maxSynced = 4096

func (b *Bucket) isSynced(folder string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.synced[folder]
	return ok
}

func (b *Bucket) setSynced(folder string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.synced) >= maxSynced {
		clear(b.synced)
	}
	b.synced[folder] = struct{}{}
}

func (b *Bucket) forget(folder string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.synced, folder)
}
