package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Get implements bucket.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if err := bucket.CheckKey(key); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	data, err := b.get(ctx, key, newSpan(off, n))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return data, nil
}

func (b *Bucket) get(ctx context.Context, key string, s span) (data []byte, err error) {
	err = b.request(ctx, func(ctx context.Context) error {
		c, err := b.o.Objects.Get(ctx, b.o.Prefix+key, s.header())
		if err != nil {
			return err
		}
		defer c.Body.Close()
		data, err = s.read(c)
		return err
	})
	if errors.Is(err, bucket.ErrRange) && s.off <= 0 {
		return []byte{}, nil // of an empty object: HTTP has no empty ranges
	}
	return data, err
}

// span is the part of an object that is read: off < 0 is its last -off bytes,
// n < 0 is to the end.
type span struct{ off, n int64 }

func newSpan(off, n int64) span {
	switch {
	case off < 0:
		return span{max(off, -math.MaxInt64), -1}
	case n < 0 || n > math.MaxInt64-off:
		return span{off, -1}
	}
	return span{off, n}
}

// header is what asks for it. To ask for nothing is to ask for a byte, which
// tells whether the object is there, and reaches so far.
func (s span) header() string {
	switch {
	case s.off < 0:
		return fmt.Sprintf("bytes=%d", s.off)
	case s.n >= 0:
		return fmt.Sprintf("bytes=%d-%d", s.off, s.off+max(s.n, 1)-1)
	case s.off > 0:
		return fmt.Sprintf("bytes=%d-", s.off)
	}
	return ""
}

// firstBytes bounds what is allocated for a length that the store says, and
// nobody asked for.
const firstBytes = 64 << 20

// read takes what the store sends, if it is what was asked for.
func (s span) read(c Content) ([]byte, error) {
	if s.off < 0 && c.Length == 0 && strings.HasSuffix(c.Range, "/0") {
		return []byte{}, nil // MinIO's "bytes 0--1/0", of an empty object
	}
	if s.header() != "" {
		from, length, total, err := parseContentRange(c.Range)
		if err != nil {
			return nil, err
		}
		wantFrom, wantTo, err := bucket.Span(total, s.off, s.n)
		if s.n == 0 {
			wantTo++
		}
		if err != nil || from != wantFrom || from+length != wantTo || c.Length >= 0 && c.Length != length {
			return nil, fmt.Errorf("%w: asked for %s, got %s and %d bytes", ErrGarbled, s.header(), c.Range, c.Length)
		}
		c.Length = length
	}
	var data bytes.Buffer
	if c.Length >= 0 {
		data.Grow(int(min(c.Length, firstBytes)) + bytes.MinRead) // so that the end is found without growing
	}
	body := io.Reader(c.Body)
	if c.Length >= 0 {
		body = io.LimitReader(body, c.Length+1)
	}
	if _, err := data.ReadFrom(body); err != nil {
		return nil, err
	}
	if c.Length >= 0 && int64(data.Len()) != c.Length {
		return nil, fmt.Errorf("%w: %d bytes, said to be %d", ErrGarbled, data.Len(), c.Length)
	}
	if s.n == 0 {
		return []byte{}, nil
	}
	return data.Bytes(), nil
}

// parseContentRange reads "bytes 3-6/10".
func parseContentRange(text string) (from, length, total int64, err error) {
	rest, ok := strings.CutPrefix(text, "bytes ")
	first, rest, ok2 := strings.Cut(rest, "-")
	last, size, ok3 := strings.Cut(rest, "/")
	from, err1 := strconv.ParseInt(first, 10, 63)
	to, err2 := strconv.ParseInt(last, 10, 62)
	total, err3 := strconv.ParseInt(size, 10, 63)
	if !ok || !ok2 || !ok3 || errors.Join(err1, err2, err3) != nil || from < 0 || from > to || to >= total {
		return 0, 0, 0, fmt.Errorf("%w: Content-Range %q", ErrGarbled, text)
	}
	return from, to + 1 - from, total, nil
}

// Size implements bucket.Bucket.
func (b *Bucket) Size(ctx context.Context, key string) (size int64, err error) {
	if err := bucket.CheckKey(key); err != nil {
		return 0, fmt.Errorf("size: %w", err)
	}
	err = b.request(ctx, func(ctx context.Context) error {
		size, err = b.o.Objects.Head(ctx, b.o.Prefix+key)
		return err
	})
	if answer := (*Answer)(nil); errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500 {
		// An answer to HEAD has no body that says what is missing, or why it is refused. GET says it.
		if _, of := b.get(ctx, key, newSpan(0, 0)); of != nil {
			err = of
		}
	}
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", key, err)
	}
	return size, nil
}

// List implements bucket.Bucket. What cannot be a key is not ours, and is left out.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]bucket.Info, error) {
	found, err := b.list(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", prefix, err)
	}
	return found, nil
}

func (b *Bucket) list(ctx context.Context, prefix, after string, limit int) (found []bucket.Info, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	asked, cursor := listable(prefix, after)
	for more := mayHave(prefix, after); more && len(found) < limit; {
		var page []bucket.Info
		if page, more, err = b.page(ctx, asked, cursor, min(max(limit-len(found), leastPage), PageKeys)); err != nil {
			return nil, err
		}
		for _, info := range page {
			if key := info.Key; key > after && strings.HasPrefix(key, prefix) && bucket.CheckKey(key) == nil {
				found = append(found, info)
			}
		}
		if len(page) > 0 {
			cursor = page[len(page)-1].Key
		} else if more {
			return nil, fmt.Errorf("%w: an empty page, and more to come", ErrGarbled)
		}
	}
	return found[:min(len(found), max(limit, 0))], nil
}

// leastPage: asked for one key with a prefix that is a key itself, MinIO looks
// for that alone, and says that there is no other.
const leastPage = 2

// mayHave says whether keys can have the prefix, and come after the other.
func mayHave(prefix, after string) bool {
	if after > prefix && !strings.HasPrefix(after, prefix) {
		return false // all with the prefix come before
	}
	return prefix == "" || bucket.CheckKey(prefix) == nil || bucket.CheckKey(prefix+"x") == nil
}

// listable is a prefix and a place to begin at that every store takes, and
// that leave nothing out. MinIO refuses names like "." in both, though keys
// like ".a" begin so, and lists nothing after a place without the prefix.
func listable(prefix, after string) (asked, cursor string) {
	if asked = prefix; bucket.CheckKey(strings.TrimSuffix(prefix, "/")) != nil {
		asked = prefix[:strings.LastIndexByte(prefix, '/')+1]
	}
	if bucket.CheckKey(after) == nil && strings.HasPrefix(after, asked) {
		cursor = after
	}
	return asked, cursor
}

// page is one request; its keys are in order, without the bucket's prefix.
func (b *Bucket) page(ctx context.Context, prefix, cursor string, limit int) (page []bucket.Info, more bool, err error) {
	from := ""
	if cursor != "" {
		from = b.o.Prefix + cursor
	}
	err = b.request(ctx, func(ctx context.Context) (err error) {
		page, more, err = b.o.Objects.List(ctx, b.o.Prefix+prefix, from, limit)
		return err
	})
	for i := range page {
		key, ours := strings.CutPrefix(page[i].Key, b.o.Prefix)
		if !ours || !strings.HasPrefix(key, prefix) || key <= cursor && cursor != "" {
			return nil, false, fmt.Errorf("%w: asked for %s… after %q, got %q", ErrGarbled, b.o.Prefix+prefix, from, page[i].Key)
		}
		page[i].Key, cursor = key, key
	}
	return page, more, err
}
