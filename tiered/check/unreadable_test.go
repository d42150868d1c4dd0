package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/tiered/segment"
)

// TestUnreadable: damage of an object costs what it must, and no more. The
// second of three objects has two batches, of offsets 6 to 8 and 9 to 11.
func TestUnreadable(t *testing.T) {
	flip := func(at func(o *segment.Object) int64) func(c *cluster) {
		return func(c *cluster) {
			key, b := c.object(1)
			o, err := segment.Parse(b)
			if err != nil {
				c.t.Fatal(err)
			}
			b[at(o)] ^= 1
			c.overwrite(key, b)
		}
	}
	batch := func(n int, at int64) func(o *segment.Object) int64 {
		return func(o *segment.Object) int64 { return o.Index.Runs[0].Rows[n].Position + at }
	}
	all := []Unreadable{{"t", 0, 6, 11}}
	for name, tt := range map[string]struct {
		damage func(c *cluster)
		want   []Unreadable
	}{
		"missing":              {func(c *cluster) { key, _ := c.object(1); _ = c.bucket.Delete(c.t.Context(), []string{key}) }, all},
		"empty":                {func(c *cluster) { key, _ := c.object(1); c.overwrite(key, nil) }, all},
		"cut":                  {func(c *cluster) { key, b := c.object(1); c.overwrite(key, b[:len(b)-70]) }, all},
		"cut in front":         {func(c *cluster) { key, b := c.object(1); c.overwrite(key, b[1:]) }, all},
		"another in its place": {func(c *cluster) { key, _ := c.object(1); _, b := c.object(0); c.overwrite(key, b) }, all},
		"header":               {flip(func(*segment.Object) int64 { return 15 }), []Unreadable{}},
		"stamped offset":       {flip(batch(1, 7)), []Unreadable{}},
		"first batch":          {flip(batch(0, 30)), []Unreadable{{"t", 0, 6, 8}}},
		"second batch":         {flip(batch(1, 30)), []Unreadable{{"t", 0, 9, 11}}},
		"index":                {flip(func(o *segment.Object) int64 { return o.Trailer.IndexPosition + 3 }), all},
		"trailer":              {flip(func(o *segment.Object) int64 { return o.Trailer.ObjectBytes - 1 }), all},
		"two objects": {func(c *cluster) {
			flip(batch(1, 30))(c)
			key, _ := c.object(2)
			_ = c.bucket.Delete(c.t.Context(), []string{key})
		}, []Unreadable{{"t", 0, 9, 17}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			key, _ := c.object(1)
			tt.damage(c)
			r := c.check()
			if !slices.Equal(r.Unreadable, tt.want) {
				t.Errorf("unreadable: %v, want %v", r.Unreadable, tt.want)
			}
			if !slices.ContainsFunc(r.Problems, func(p Problem) bool { return strings.Contains(p.Where, key) }) {
				t.Errorf("no problem names %s: %v", key, r.Problems)
			}
		})
	}
}

// A ledger without the checkpoint that its trimmed entries are in is one
// problem, and not one for each entry that makes no sense without.
func TestLostCheckpointOfTrimmedLedger(t *testing.T) {
	c := newCluster(t)
	if err := c.coord.Trim(t.Context(), c.shard.Name(), 4); err != nil {
		t.Fatal(err)
	}
	keys, err := c.bucket.List(t.Context(), checkpoints, "", 10)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	if err := c.bucket.Delete(t.Context(), []string{keys[0].Key}); err != nil {
		t.Fatal(err)
	}
	var where []string
	for _, p := range c.check().Problems {
		where = append(where, p.Where)
	}
	if want := []string{"checkpoint " + keys[0].Key, "ledger " + c.shard.Name()}; !slices.Equal(where, want) {
		t.Errorf("problems at %q, want %q", where, want)
	}
}
