package coordinatortest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

func mustPut(t *testing.T, c coordinator.Register, key, data string, ifVersion coordinator.Version, nonce byte) coordinator.Value {
	t.Helper()
	v, err := c.Put(t.Context(), key, []byte(data), ifVersion, coordinator.Nonce{nonce})
	if err != nil || v == "" || v == ifVersion {
		t.Fatalf("put %s at %q: version %q, %v", key, ifVersion, v, err)
	}
	return coordinator.Value{Data: []byte(data), Version: v, Nonce: coordinator.Nonce{nonce}}
}

func get(t *testing.T, c coordinator.Register, key string) coordinator.Value {
	t.Helper()
	v, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	if len(v.Data) == 0 {
		v.Data = nil
	}
	return v
}

func wantValue(t *testing.T, c coordinator.Register, key string, want coordinator.Value) {
	t.Helper()
	got := get(t, c, key)
	if reflect.DeepEqual(got, want) { // it is quicker than a diff
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", key, diff)
	}
}

func wantVersionConflict(t *testing.T, err error, want coordinator.Value) {
	t.Helper()
	var conflict *coordinator.VersionConflict
	if !errors.As(err, &conflict) {
		t.Fatalf("%v; want a conflict", err)
	}
	if len(conflict.Current.Data) == 0 {
		conflict.Current.Data = nil
	}
	if diff := cmp.Diff(want, conflict.Current); diff != "" {
		t.Fatalf("current value (-want +got):\n%s", diff)
	}
}

func registers(t *testing.T, open Store) {
	c := opened(t, open)
	put := func(key string, ifVersion coordinator.Version) error {
		_, err := c.Put(t.Context(), key, []byte("z"), ifVersion, coordinator.Nonce{99})
		return err
	}
	wantValue(t, c, "r", coordinator.Value{})
	wantVersionConflict(t, put("r", "7"), coordinator.Value{})
	first := mustPut(t, c, "r", "one", "", 1)
	wantValue(t, c, "r", first)
	wantVersionConflict(t, put("r", ""), first)
	second := mustPut(t, c, "r", "two", first.Version, 2)
	wantValue(t, c, "r", second)
	wantVersionConflict(t, put("r", first.Version), second)
	wantVersionConflict(t, c.Delete(t.Context(), "r", first.Version, coordinator.Nonce{3}), second)
	wantValue(t, c, "s", coordinator.Value{})
	other := mustPut(t, c, "s", "", "", 4)
	if got := get(t, c, "s"); got.Version != other.Version || got.Deleted || len(got.Data) != 0 {
		t.Fatalf("a register without data: %+v", got)
	}
	wantValue(t, c, "r", second)
}

func badPuts(t *testing.T, open Store) {
	c := opened(t, open)
	longest := strings.Repeat("k", coordinator.MaxNameBytes)
	largest := strings.Repeat("v", coordinator.MaxEntryBytes)
	wantValue(t, c, longest, mustPut(t, c, longest, largest, "", 1))
	for _, bad := range []struct {
		key, data string
		want      error
	}{
		{"", "x", coordinator.ErrName},
		{longest + "k", "x", coordinator.ErrTooLarge},
		{"r", largest + "v", coordinator.ErrTooLarge},
	} {
		if _, err := c.Put(t.Context(), bad.key, []byte(bad.data), "", coordinator.Nonce{}); !errors.Is(err, bad.want) {
			t.Errorf("put of %d bytes to %.5q: %v, want %v", len(bad.data), bad.key, err, bad.want)
		}
	}
	wantValue(t, c, "r", coordinator.Value{})
	if _, err := c.Get(t.Context(), ""); !errors.Is(err, coordinator.ErrName) {
		t.Errorf("get without a key: %v", err)
	}
	if err := c.Delete(t.Context(), "", "", coordinator.Nonce{}); !errors.Is(err, coordinator.ErrName) {
		t.Errorf("delete without a key: %v", err)
	}
}

func tombstones(t *testing.T, open Store) {
	c := opened(t, open)
	v := mustPut(t, c, "r", "one", "", 1)
	if err := c.Delete(t.Context(), "r", v.Version, coordinator.Nonce{2}); err != nil {
		t.Fatal(err)
	}
	dead := get(t, c, "r")
	if !dead.Deleted || dead.Data != nil || dead.Version == "" || dead.Version == v.Version || dead.Nonce != (coordinator.Nonce{2}) {
		t.Fatalf("tombstone %+v", dead)
	}
	_, err := c.Put(t.Context(), "r", nil, "", coordinator.Nonce{3})
	wantVersionConflict(t, err, dead)
	_, err = c.Put(t.Context(), "r", nil, v.Version, coordinator.Nonce{3})
	wantVersionConflict(t, err, dead)
	wantValue(t, c, "r", mustPut(t, c, "r", "two", dead.Version, 4))
}

func versionsUnique(t *testing.T, open Store) {
	c := opened(t, open)
	seen := map[coordinator.Version]bool{"": true}
	at := map[string]coordinator.Version{}
	for i := range 20 {
		for _, key := range []string{"r", "s"} {
			if i%3 == 2 {
				if err := c.Delete(t.Context(), key, at[key], coordinator.Nonce{byte(i)}); err != nil {
					t.Fatal(err)
				}
			} else {
				mustPut(t, c, key, "the same", at[key], byte(i))
			}
			at[key] = get(t, c, key).Version
			if seen[at[key]] {
				t.Fatalf("%s has version %q again", key, at[key])
			}
			seen[at[key]] = true
		}
	}
}

func list(t *testing.T, open Store) {
	c := opened(t, open)
	wantKeys := func(prefix string, want ...string) {
		t.Helper()
		got, err := c.List(t.Context(), prefix)
		var keys []string
		for _, l := range got {
			keys = append(keys, l.Key)
			if now := get(t, c, l.Key); string(l.Data) != "new "+l.Key || l.Version != now.Version || l.Nonce != now.Nonce || l.Deleted {
				t.Fatalf("listed is %+v, there is %+v", l, now)
			}
		}
		if err != nil || !slices.Equal(keys, want) {
			t.Fatalf("registers of %q: %q, %v; want %q", prefix, keys, err, want)
		}
	}
	wantKeys("")
	for _, key := range []string{"b", "a/2", "a/10", "a", "a/1", "ab", "a\xff", "a\xff\xff"} {
		mustPut(t, c, key, key, "", 1)
		mustPut(t, c, key, "new "+key, get(t, c, key).Version, 2)
	}
	mustAppend(t, c, "a/ledger", entry(1, 0)) // no register
	if err := c.Delete(t.Context(), "a/10", get(t, c, "a/10").Version, coordinator.Nonce{2}); err != nil {
		t.Fatal(err)
	}
	wantKeys("a/", "a/1", "a/2")
	wantKeys("", "a", "a/1", "a/2", "ab", "a\xff", "a\xff\xff", "b")
	wantKeys("a\xff", "a\xff", "a\xff\xff")
	wantKeys("c")
}

func registerDataCopied(t *testing.T, open Store) {
	c := opened(t, open)
	data := []byte("data")
	version, err := c.Put(t.Context(), "r", data, "", coordinator.Nonce{1})
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	want := coordinator.Value{Data: []byte("data"), Version: version, Nonce: coordinator.Nonce{1}}
	clear(get(t, c, "r").Data)
	wantValue(t, c, "r", want)
	_, err = c.Put(t.Context(), "r", nil, "", coordinator.Nonce{1})
	var conflict *coordinator.VersionConflict
	if !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	clear(conflict.Current.Data)
	wantValue(t, c, "r", want)
}

func manyCounters(t *testing.T, open Store) {
	c := opened(t, open)
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			var v coordinator.Value
			for n := 0; n < each; {
				count, _ := strconv.Atoi(string(v.Data))
				_, err := c.Put(t.Context(), "r", strconv.AppendInt(nil, int64(count+1), 10), v.Version, coordinator.Nonce{byte(w), byte(n)})
				if err == nil {
					n++
				} else if conflict := (*coordinator.VersionConflict)(nil); !errors.As(err, &conflict) {
					t.Errorf("put: %v", err)
					return
				}
				if v, err = c.Get(t.Context(), "r"); err != nil {
					t.Errorf("get: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := string(get(t, c, "r").Data); got != strconv.Itoa(writers*each) {
		t.Fatalf("%s after %d increments", got, writers*each)
	}
}

// all is every call, made on slots and keys that are empty.
func all(ctx context.Context, c coordinator.Coordinator) map[string]error {
	errs := map[string]error{}
	errs["append"] = c.Append(ctx, "a", entry(1, 0))
	_, errs["read"] = c.Read(ctx, "a", 0, 1)
	_, errs["floor"] = c.Floor(ctx, "a")
	errs["trim"] = c.Trim(ctx, "a", 1)
	_, errs["get"] = c.Get(ctx, "r")
	_, errs["put"] = c.Put(ctx, "r", nil, "", coordinator.Nonce{})
	errs["delete"] = c.Delete(ctx, "r", "", coordinator.Nonce{})
	_, errs["list"] = c.List(ctx, "")
	return errs
}

func endedContext(t *testing.T, open Store) {
	c := opened(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for call, err := range all(ctx, c) {
		if !errors.Is(err, context.Canceled) || errors.Is(err, coordinator.ErrUnknown) {
			t.Errorf("%s: %v", call, err)
		}
	}
	wantRead(t, c, "a", 0, 1)
	wantFloor(t, c, "a", 0)
	wantValue(t, c, "r", coordinator.Value{})
}

func closed(t *testing.T, open Store) {
	c := open(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for call, err := range all(t.Context(), c) {
		if !errors.Is(err, siltstone.ErrUnavailable) || errors.Is(err, coordinator.ErrUnknown) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func kept(t *testing.T, open Store) {
	c := open(t)
	mustAppend(t, c, "a", entries(1, 5)...)
	mustTrim(t, c, "a", 2)
	r := mustPut(t, c, "r", "kept", "", 1)
	mustPut(t, c, "s", "deleted", "", 2)
	if err := c.Delete(t.Context(), "s", get(t, c, "s").Version, coordinator.Nonce{3}); err != nil {
		t.Fatal(err)
	}
	dead := get(t, c, "s")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = opened(t, open)
	wantFloor(t, c, "a", 2)
	wantRead(t, c, "a", 2, 10, entries(3, 5)...)
	wantValue(t, c, "r", r)
	wantValue(t, c, "s", dead)
	if v := mustPut(t, c, "r", "on", r.Version, 4).Version; v == dead.Version || v == r.Version {
		t.Fatalf("version %q again", v)
	}
}
