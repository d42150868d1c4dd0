package buckettest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// testListOrder has the keys on which an order by folders, or without regard
// to the slash, goes wrong: '-' and '.' come before it, digits and letters after.
func testListOrder(t *testing.T, b bucket.Bucket) {
	want := []string{"a-b", "a-b-/x", "a.b/c", "a/b", "a/c/d", "a0", "a0b/c", "aB", "a_", "b/-", "b/0", "b/Z/z", "b/z"}
	if !slices.IsSorted(want) {
		t.Fatal("the test's own keys are out of order")
	}
	for i, key := range slices.Backward(want) {
		put(t, b, key, pattern(1, i))
	}
	got, err := b.List(t.Context(), "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var wantInfos []bucket.Info
	for i, key := range want {
		wantInfos = append(wantInfos, bucket.Info{Key: key, SizeBytes: int64(i)})
	}
	if !slices.Equal(got, wantInfos) {
		t.Errorf("List = %v, want %v", got, wantInfos)
	}
	var paged []bucket.Info
	for after := ""; ; after = paged[len(paged)-1].Key {
		page, err := b.List(t.Context(), "", after, 2)
		if err != nil || len(page) > 2 {
			t.Fatalf("List of a page = %v, %v", page, err)
		}
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
	}
	if !slices.Equal(paged, wantInfos) {
		t.Errorf("in pages: %v, want %v", paged, wantInfos)
	}
}

func testListAgainstModel(t *testing.T, b bucket.Bucket) {
	part := rapid.StringMatching(`[ab.-]?[a0]`)
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/")
	})
	var keys []string
	for _, key := range rapid.SliceOfNDistinct(name, 40, 60, rapid.ID).Example(1) {
		inFolder := func(k string) bool { return strings.HasPrefix(k, key+"/") || strings.HasPrefix(key, k+"/") }
		if !slices.ContainsFunc(keys, inFolder) {
			put(t, b, key, pattern(1, len(key)))
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	at := rapid.OneOf(rapid.Just(""), name, rapid.SampledFrom(keys), rapid.StringMatching(`[ab.-]?[a0]?/?[a0]?/?`))
	rapid.Check(t, func(rt *rapid.T) {
		prefix, after := at.Draw(rt, "prefix"), at.Draw(rt, "after")
		limit := rapid.IntRange(0, 8).Draw(rt, "limit")
		var want []string
		for _, key := range keys {
			if len(want) < limit && strings.HasPrefix(key, prefix) && cmp.Compare(key, after) > 0 {
				want = append(want, key)
			}
		}
		infos, err := b.List(t.Context(), prefix, after, limit)
		var got []string
		for _, i := range infos {
			got = append(got, i.Key)
			if i.SizeBytes != int64(len(i.Key)) {
				rt.Errorf("%s has %d bytes in the list", i.Key, i.SizeBytes)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			rt.Fatalf("List(%q, %q, %d) = %v, %v; want %v", prefix, after, limit, got, err, want)
		}
	})
}
