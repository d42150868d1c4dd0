package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Get implements bucket.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if err := check(ctx, key); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	data, err := b.read(key, off, n)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return data, nil
}

func (b *Bucket) read(key string, off, n int64) ([]byte, error) {
	f, err := b.root.Open(key)
	if err != nil {
		return nil, b.missing(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, bucket.ErrNotFound
	}
	from, to, err := bucket.Span(info.Size(), off, n)
	if err != nil {
		return nil, err
	}
	return readRange(f, info.Size(), from, to)
}

// Size implements bucket.Bucket.
func (b *Bucket) Size(ctx context.Context, key string) (int64, error) {
	if err := check(ctx, key); err != nil {
		return 0, fmt.Errorf("size: %w", err)
	}
	info, err := b.stat(key)
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", key, err)
	}
	return info.Size(), nil
}

// stat returns ErrNotFound for what is no object.
func (b *Bucket) stat(key string) (fs.FileInfo, error) {
	info, err := b.root.Lstat(key)
	if err != nil {
		return nil, b.missing(err)
	}
	if !info.Mode().IsRegular() {
		return nil, bucket.ErrNotFound
	}
	return info, nil
}

// Delete implements bucket.Bucket. It removes folders that it empties.
func (b *Bucket) Delete(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := check(ctx, key); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		if b.temp == nil {
			return fmt.Errorf("delete %s: %w", key, errReading)
		}
		if err := b.delete(key); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
	}
	return nil
}

func (b *Bucket) delete(key string) error {
	_, err := b.stat(key)
	if err == nil {
		if err = b.root.Remove(key); err != nil {
			err = b.missing(err)
		}
	}
	if errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	if err == nil {
		b.prune(path.Dir(key))
	}
	return err
}

// prune removes a folder and those above it, as long as they are empty. One
// that stays for another reason does no harm.
func (b *Bucket) prune(folder string) {
	for ; folder != "."; folder = path.Dir(folder) {
		b.forget(folder)
		if b.root.Remove(folder) != nil {
			return
		}
	}
}

// List implements bucket.Bucket.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]bucket.Info, error) {
	l := listing{b: b, prefix: prefix, after: after, limit: limit}
	err := l.walk(ctx, "")
	if err == nil && len(l.found) == 0 {
		err = b.gone()
	}
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", prefix, err)
	}
	return l.found, nil
}

type listing struct {
	b             *Bucket
	prefix, after string
	limit         int
	found         []bucket.Info
}

// walk goes through a folder, "" or a path that ends in a slash, in order of
// keys: a folder's place is that of its name with the slash behind it.
func (l *listing) walk(ctx context.Context, folder string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := l.b.names(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if len(l.found) >= l.limit {
			return nil
		}
		key := folder + name
		if strings.HasSuffix(key, "/") {
			err = l.enter(ctx, key)
		} else {
			err = l.take(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter walks a folder if keys in it may be asked for.
func (l *listing) enter(ctx context.Context, folder string) error {
	inPrefix := strings.HasPrefix(folder, l.prefix) || strings.HasPrefix(l.prefix, folder)
	afterAfter := folder > l.after || strings.HasPrefix(l.after, folder)
	if !inPrefix || !afterAfter {
		return nil
	}
	return l.walk(ctx, folder)
}

func (l *listing) take(key string) error {
	if key <= l.after || !strings.HasPrefix(key, l.prefix) {
		return nil
	}
	info, err := l.b.stat(key)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil // deleted a moment ago
	}
	if err != nil {
		return err
	}
	l.found = append(l.found, bucket.Info{Key: key, SizeBytes: info.Size()})
	return nil
}

// names lists what can be part of a key, folders with a slash behind.
func (b *Bucket) names(folder string) ([]string, error) {
	f, err := b.root.Open(path.Join(".", folder))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil // removed a moment ago, or the bucket's own, which List looks into
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if bucket.CheckKey(e.Name()) != nil {
			continue // ours for temporary files, or not ours
		}
		switch {
		case e.IsDir():
			names = append(names, e.Name()+"/")
		case e.Type().IsRegular():
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return bucket.CheckKey(key)
}
