// Package buckettest is the suite that every adapter of bucket.Bucket passes.
package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Run runs the suite; open returns a new, empty bucket each time.
func Run(t *testing.T, open func(t *testing.T) bucket.Bucket) {
	for _, c := range []struct {
		name string
		test func(*testing.T, bucket.Bucket)
	}{
		{"PutThenGet", testPutThenGet},
		{"PutNeverOverwrites", testPutNeverOverwrites},
		{"OnePutOfManyWins", testOnePutOfManyWins},
		{"BytesAreNotShared", testBytesAreNotShared},
		{"Ranges", testRanges},
		{"RangesOfAnEmptyObject", testEmptyObject},
		{"Missing", testMissing},
		{"Keys", testKeys},
		{"Delete", testDelete},
		{"DeleteMany", testDeleteMany},
		{"Context", testContext},
		{"ListOrder", testListOrder},
		{"ListAgainstModel", testListAgainstModel},
		{"AllAtOnce", testAllAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// pattern is n bytes that differ from their neighbours and from other seeds'.
func pattern(seed byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ seed
	}
	return b
}

func put(t *testing.T, b bucket.Bucket, key string, parts ...[]byte) {
	t.Helper()
	if err := b.Put(t.Context(), key, parts); err != nil {
		t.Fatalf("Put(%s): %v", key, err)
	}
}

func wantObject(t *testing.T, b bucket.Bucket, key string, want []byte) {
	t.Helper()
	got, err := b.Get(t.Context(), key, 0, -1)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("Get(%s) = %d bytes, %v; want the %d that were put", key, len(got), err, len(want))
	}
	if n, err := b.Size(t.Context(), key); err != nil || n != int64(len(want)) {
		t.Fatalf("Size(%s) = %d, %v; want %d", key, n, err, len(want))
	}
}

func wantMissing(t *testing.T, b bucket.Bucket, key string) {
	t.Helper()
	if got, err := b.Get(t.Context(), key, 0, -1); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("Get(%s) = %d bytes, %v; want ErrNotFound", key, len(got), err)
	}
	if n, err := b.Size(t.Context(), key); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("Size(%s) = %d, %v; want ErrNotFound", key, n, err)
	}
}

func testPutThenGet(t *testing.T, b bucket.Bucket) {
	put(t, b, "none")
	wantObject(t, b, "none", nil)
	put(t, b, "empty-parts", nil, []byte{}, nil)
	wantObject(t, b, "empty-parts", nil)
	put(t, b, "one", pattern(1, 100))
	wantObject(t, b, "one", pattern(1, 100))

	// More parts than one system call takes, with empty ones and large ones among them.
	var body bucket.Body
	var want []byte
	for i := range 3000 {
		n := i % 7
		if i%1000 == 0 {
			n = 1 << 20
		}
		body = append(body, pattern(byte(i), n))
		want = append(want, pattern(byte(i), n)...)
	}
	put(t, b, "a/b-c/d_e/many.parts", body...)
	wantObject(t, b, "a/b-c/d_e/many.parts", want)
	if body.Len() != int64(len(want)) {
		t.Errorf("Body.Len() = %d, want %d", body.Len(), len(want))
	}
}

func testPutNeverOverwrites(t *testing.T, b bucket.Bucket) {
	put(t, b, "x/y", pattern(1, 50))
	for _, again := range [][]byte{pattern(1, 50), pattern(2, 60), nil} {
		if err := b.Put(t.Context(), "x/y", bucket.Body{again}); !errors.Is(err, bucket.ErrExists) {
			t.Errorf("Put over an object: %v, want ErrExists", err)
		}
		wantObject(t, b, "x/y", pattern(1, 50))
	}
}

func testOnePutOfManyWins(t *testing.T, b bucket.Bucket) {
	const writers = 8
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			errs[i] = b.Put(t.Context(), "race/key", bucket.Body{pattern(byte(i), 10_000), pattern(byte(i), i)})
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Errorf("writers %d and %d both made the object", winner, i)
		case !errors.Is(err, bucket.ErrExists):
			t.Errorf("writer %d: %v, want ErrExists", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("no writer made the object")
	}
	wantObject(t, b, "race/key", append(pattern(byte(winner), 10_000), pattern(byte(winner), winner)...))
}

func testBytesAreNotShared(t *testing.T, b bucket.Bucket) {
	mine := pattern(1, 64)
	put(t, b, "k", mine)
	clear(mine)
	wantObject(t, b, "k", pattern(1, 64))
	got, err := b.Get(t.Context(), "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	clear(got)
	wantObject(t, b, "k", pattern(1, 64))
}

func testRanges(t *testing.T, b bucket.Bucket) {
	data := pattern(3, 10)
	put(t, b, "r", data)
	for _, c := range []struct {
		off, n   int64
		from, to int // of data; from < 0: ErrRange
	}{
		{0, -1, 0, 10}, {0, 10, 0, 10}, {0, 1, 0, 1}, {0, 1 << 60, 0, 10}, {0, 0, 0, 0},
		{3, 4, 3, 7}, {3, -1, 3, 10}, {3, 7, 3, 10}, {3, 8, 3, 10}, {9, 1, 9, 10}, {9, 0, 9, 9},
		{-1, -1, 9, 10}, {-4, 2, 6, 10}, {-10, 0, 0, 10}, {-11, -1, 0, 10}, {-1 << 62, 5, 0, 10},
		{10, 0, -1, 0}, {10, 1, -1, 0}, {10, -1, -1, 0}, {11, 1, -1, 0}, {1 << 60, 1 << 60, -1, 0},
	} {
		got, err := b.Get(t.Context(), "r", c.off, c.n)
		if c.from < 0 {
			if !errors.Is(err, bucket.ErrRange) || errors.Is(err, bucket.ErrNotFound) {
				t.Errorf("Get(%d, %d) = %d bytes, %v; want ErrRange", c.off, c.n, len(got), err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, data[c.from:c.to]) {
			t.Errorf("Get(%d, %d) = %x, %v; want bytes %d to %d", c.off, c.n, got, err, c.from, c.to)
		}
	}
}

func testEmptyObject(t *testing.T, b bucket.Bucket) {
	put(t, b, "empty", nil)
	for _, r := range [][2]int64{{0, -1}, {0, 5}, {-5, -1}} {
		if got, err := b.Get(t.Context(), "empty", r[0], r[1]); err != nil || len(got) != 0 {
			t.Errorf("Get(%d, %d) = %d bytes, %v; want none", r[0], r[1], len(got), err)
		}
	}
	if _, err := b.Get(t.Context(), "empty", 1, -1); !errors.Is(err, bucket.ErrRange) {
		t.Errorf("Get(1, -1): %v, want ErrRange", err)
	}
}

func testMissing(t *testing.T, b bucket.Bucket) {
	put(t, b, "folder/object", pattern(1, 1))
	for _, key := range []string{"nothing", "folder/nothing", "no/folder/here", "folder", "folder/object/below", "folder/objec", "folder/object0"} {
		wantMissing(t, b, key)
	}
}

func testKeys(t *testing.T, b bucket.Bucket) {
	for _, key := range []string{"a", "A-z_0.9", "...", "a..b/.c", strings.Repeat("x", bucket.MaxPartBytes), "cluster", "-"} {
		put(t, b, key, pattern(1, 3))
		wantObject(t, b, key, pattern(1, 3))
	}
	long := strings.Repeat(strings.Repeat("p", 127)+"/", bucket.MaxKeyBytes/128)
	put(t, b, long[:bucket.MaxKeyBytes-1], pattern(2, 2))
	wantObject(t, b, long[:bucket.MaxKeyBytes-1], pattern(2, 2))
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a/..", "a b", "a\x00", "ä", "a~", "~tmp/1-1", "a+b", "a:b", `a\b`, "a*", "\xff",
		strings.Repeat("x", bucket.MaxPartBytes+1), long + "ppp",
	} {
		if err := b.Put(t.Context(), key, bucket.Body{pattern(1, 3)}); !errors.Is(err, bucket.ErrKey) {
			t.Errorf("Put(%q): %v, want ErrKey", key, err)
		}
		if _, err := b.Get(t.Context(), key, 0, -1); !errors.Is(err, bucket.ErrKey) {
			t.Errorf("Get(%q): %v, want ErrKey", key, err)
		}
		if _, err := b.Size(t.Context(), key); !errors.Is(err, bucket.ErrKey) {
			t.Errorf("Size(%q): %v, want ErrKey", key, err)
		}
		if err := b.Delete(t.Context(), []string{key}); !errors.Is(err, bucket.ErrKey) {
			t.Errorf("Delete(%q): %v, want ErrKey", key, err)
		}
	}
}

func testDelete(t *testing.T, b bucket.Bucket) {
	if err := b.Delete(t.Context(), nil); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	put(t, b, "d/e/one", pattern(1, 10))
	put(t, b, "d/e/two", pattern(2, 10))
	if err := b.Delete(t.Context(), []string{"missing", "d/e/one", "d/e/missing", "d/e", "d/e/one/below"}); err != nil {
		t.Errorf("Delete: %v", err)
	}
	wantMissing(t, b, "d/e/one")
	wantObject(t, b, "d/e/two", pattern(2, 10))
	if err := b.Delete(t.Context(), []string{"d/e/two", "d/e/two"}); err != nil {
		t.Errorf("Delete: %v", err)
	}
	wantMissing(t, b, "d/e/two")
	put(t, b, "d/e/one", pattern(3, 20)) // a key that is free again
	wantObject(t, b, "d/e/one", pattern(3, 20))
}

func testDeleteMany(t *testing.T, b bucket.Bucket) {
	const some = 30
	keys := make([]string, 1100) // more than S3 takes in one call
	for i := range keys {
		keys[i] = fmt.Sprintf("many/%04d", i)
		if i%(len(keys)/some) == 0 {
			put(t, b, keys[i], pattern(1, 1))
		}
	}
	put(t, b, "other", pattern(1, 1))
	if err := b.Delete(t.Context(), keys); err != nil {
		t.Fatalf("Delete of %d: %v", len(keys), err)
	}
	if left, err := b.List(t.Context(), "", "", 100); err != nil || len(left) != 1 || left[0].Key != "other" {
		t.Errorf("after Delete there are %v, %v; want only the other", left, err)
	}
}

func testContext(t *testing.T, b bucket.Bucket) {
	put(t, b, "there", pattern(1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := b.Get(ctx, "there", 0, -1)
	_, sizeErr := b.Size(ctx, "there")
	_, listErr := b.List(ctx, "", "", 10)
	for op, err := range map[string]error{
		"Put": b.Put(ctx, "new", bucket.Body{pattern(1, 1)}), "Get": getErr, "Size": sizeErr, "List": listErr,
		"Delete": b.Delete(ctx, []string{"there"}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", op, err)
		}
	}
	wantMissing(t, b, "new")
	wantObject(t, b, "there", pattern(1, 1))
}

func testAllAtOnce(t *testing.T, b bucket.Bucket) {
	const workers, rounds = 6, 15
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				// Folders are shared, and emptied while others write to them.
				key := fmt.Sprintf("h%d/%d-%d", i%3, w, i)
				want := pattern(byte(w*rounds+i), 100+i)
				err := b.Put(t.Context(), key, bucket.Body{want})
				for again := 0; errors.Is(err, bucket.ErrRefused) && again < 5; again++ {
					// MinIO says 403 to a Put that meets the removal of its emptied folder.
					err = b.Put(t.Context(), key, bucket.Body{want})
				}
				if err != nil {
					t.Errorf("Put(%s): %v", key, err)
				}
				if got, err := b.Get(t.Context(), key, 0, -1); err != nil || !bytes.Equal(got, want) {
					t.Errorf("Get(%s) = %d bytes, %v", key, len(got), err)
				}
				if _, err := b.List(t.Context(), "h", "", 1000); err != nil {
					t.Errorf("List: %v", err)
				}
				if err := b.Delete(t.Context(), []string{key}); err != nil {
					t.Errorf("Delete(%s): %v", key, err)
				}
			}
		})
	}
	wg.Wait()
	if left, err := b.List(t.Context(), "", "", 10); err != nil || len(left) != 0 {
		t.Errorf("at the end there are %v, %v; want none", left, err)
	}
}
