package agent

import (
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone"
)

func TestSizes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 3)
		part := func(n int32) siltstone.TopicPartition { return siltstone.TopicPartition{Topic: id, Partition: n} }
		one, two := aBatch(t, 3, 1, "abc"), aBatch(t, 2, 1, "defghi")
		size := func(b []byte) int64 { return int64(len(b)) }
		wants := func(a *running, n int32, stored, buffered int64) {
			t.Helper()
			got, err := a.Sizes(t.Context(), []siltstone.TopicPartition{part(n), part(9)})
			if want := []siltstone.PartitionSize{{Partition: part(n), Stored: stored, Buffered: buffered}}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
		wants(a, 0, 0, 0)
		if _, err := a.produce(part(0), 1, one); err != nil {
			t.Fatal(err)
		}
		if _, err := a.produce(part(0), 1, one); err != nil {
			t.Fatal(err)
		}
		wants(a, 0, 0, 2*size(one))
		if _, err := a.produce(part(0), -1, two); err != nil {
			t.Fatal(err)
		}
		wants(a, 0, 2*size(one)+size(two), 0) // one object, one range
		if _, err := a.produce(part(0), -1, two); err != nil {
			t.Fatal(err)
		}
		if _, err := a.produce(part(1), -1, one); err != nil {
			t.Fatal(err)
		}
		wants(a, 0, 2*size(one)+2*size(two), 0)
		// A range goes with its last record.
		if _, err := a.trim(part(0), 7); err != nil {
			t.Fatal(err)
		}
		wants(a, 0, 2*size(one)+2*size(two), 0)
		if _, err := a.trim(part(0), 8); err != nil {
			t.Fatal(err)
		}
		wants(a, 0, size(two), 0)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		a = r.start()
		wants(a, 0, size(two), 0)
		wants(a, 2, 0, 0)
		all, err := a.Sizes(t.Context(), nil)
		if err != nil || len(all) != 3 {
			t.Errorf("%+v, %v", all, err)
		}
		if none, err := a.Sizes(t.Context(), []siltstone.TopicPartition{}); err != nil || len(none) != 0 {
			t.Errorf("%+v, %v", none, err)
		}
		a.drop("t", id)
		if left, err := a.Sizes(t.Context(), nil); err != nil || len(left) != 0 {
			t.Errorf("after the topic is deleted: %+v, %v", left, err)
		}
	})
}
