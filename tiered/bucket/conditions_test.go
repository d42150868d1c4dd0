package bucket_test

import (
	"context"
	"errors"
	"testing"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

// overwriting is a store that ignores conditions, and may say the opposite.
type overwriting struct {
	*memory.Bucket
	says error
}

func (o overwriting) Put(ctx context.Context, key string, body bucket.Body) error {
	err := o.Bucket.Put(ctx, key, body)
	if !errors.Is(err, bucket.ErrExists) {
		return err
	}
	if err := o.Delete(ctx, []string{key}); err != nil {
		return err
	}
	if err := o.Bucket.Put(ctx, key, body); err != nil {
		return err
	}
	return o.says
}

func TestCheckConditions(t *testing.T) {
	trouble := errors.New("trouble")
	once := func(op faulty.Op, nth int, f faulty.Fate) func(faulty.Op, string) faulty.Fate {
		seen := 0
		return func(o faulty.Op, _ string) faulty.Fate {
			if o == op {
				if seen++; seen == nth {
					return f
				}
			}
			return faulty.Fate{}
		}
	}
	lost := faulty.Fate{Err: bucket.ErrExists, Applied: true} // a retry's answer after an answer that was lost
	for _, c := range []struct {
		name string
		b    func(*memory.Bucket) bucket.Bucket
		want error
		left int // objects
	}{
		{"honest", func(m *memory.Bucket) bucket.Bucket { return m }, nil, 0},
		{"overwrites", func(m *memory.Bucket) bucket.Bucket { return overwriting{m, nil} }, bucket.ErrConditions, 0},
		{"overwrites and denies it", func(m *memory.Bucket) bucket.Bucket { return overwriting{m, bucket.ErrExists} }, bucket.ErrConditions, 0},
		{"first answer lost", func(m *memory.Bucket) bucket.Bucket { return faulty.Wrap(m, once(faulty.Put, 1, lost)) }, nil, 0},
		{"no first put", func(m *memory.Bucket) bucket.Bucket {
			return faulty.Wrap(m, once(faulty.Put, 1, faulty.Fate{Err: trouble}))
		}, trouble, 0},
		{"no second put", func(m *memory.Bucket) bucket.Bucket {
			return faulty.Wrap(m, once(faulty.Put, 2, faulty.Fate{Err: trouble}))
		}, trouble, 0},
		{"no reads", func(m *memory.Bucket) bucket.Bucket {
			return faulty.Wrap(m, once(faulty.Get, 1, faulty.Fate{Err: bucket.ErrRefused}))
		}, bucket.ErrRefused, 0},
		{"no deletes", func(m *memory.Bucket) bucket.Bucket {
			return faulty.Wrap(m, once(faulty.Delete, 1, faulty.Fate{Err: bucket.ErrRefused}))
		}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory.New()
			if err := bucket.CheckConditions(t.Context(), c.b(m), 7); !errors.Is(err, c.want) {
				t.Errorf("CheckConditions: %v, want %v", err, c.want)
			}
			if left, err := m.List(t.Context(), "", "", 10); err != nil || len(left) != c.left {
				t.Errorf("in the bucket are %v, %v; want %d", left, err, c.left)
			}
		})
	}
}
