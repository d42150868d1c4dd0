package sim

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator"
	coordinatormemory "github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bucketmemory "github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

// A store is what outlives every node: the bucket and the coordinator, and
// all entries that ever were in a ledger, trimmed or not.
type store struct {
	bucket      *bucketmemory.Bucket
	coordinator coordinator.Coordinator
	archive     map[string][]coordinator.Entry
	landed      func(ledger string, e coordinator.Entry) // is told of each entry
	vigil       vigil
	wrong       []string // that it saw
}

func newStore() *store {
	return &store{
		bucket: bucketmemory.New(), coordinator: coordinatormemory.New(),
		archive: map[string][]coordinator.Entry{}, landed: func(string, coordinator.Entry) {}, vigil: newVigil(),
	}
}

// append fills a slot, and keeps what went in for the checker; what lands in a
// trimmed slot is in no ledger.
func (s *store) append(ledger string, e coordinator.Entry) error {
	ctx := context.Background()
	err := s.coordinator.Append(ctx, ledger, e)
	if floor, _ := s.coordinator.Floor(ctx, ledger); err == nil && e.Seq > floor {
		e.Data = slices.Clone(e.Data)
		if wrong := s.vigil.judge(ledger, e, s.archive[ledger]); wrong != "" {
			s.wrong = append(s.wrong, wrong)
		}
		s.archive[ledger] = append(s.archive[ledger], e)
		s.landed(ledger, e)
	}
	return err
}

func checksum(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// nodeBucket is the bucket as one node reaches it.
type nodeBucket struct{ node *node }

var _ bucket.Bucket = nodeBucket{}

func (b nodeBucket) call(link, detail string, write bool, apply func(context.Context, *bucketmemory.Bucket) error) *call {
	w := b.node.world
	return &call{
		node: b.node, link: link, detail: detail, write: write, store: &w.weather.bucket,
		apply:   func() error { return apply(context.Background(), w.store.bucket) },
		unknown: func(err error) error { return fmt.Errorf("%s: %w", link, err) },
	}
}

func (b nodeBucket) Put(ctx context.Context, key string, body bucket.Body) error {
	whole := slices.Concat(body...)
	detail := fmt.Sprintf("%d bytes %08x", len(whole), checksum(whole))
	return b.call("put "+key, detail, true, func(ctx context.Context, m *bucketmemory.Bucket) error {
		return m.Put(ctx, key, bucket.Body{whole})
	}).do(ctx)
}

func (b nodeBucket) Get(ctx context.Context, key string, off, n int64) ([]byte, error) {
	var data []byte
	err := b.call("get "+key, fmt.Sprintf("%d+%d", off, n), false, func(ctx context.Context, m *bucketmemory.Bucket) (err error) {
		data, err = m.Get(ctx, key, off, n)
		return err
	}).do(ctx)
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (b nodeBucket) Size(ctx context.Context, key string) (int64, error) {
	var size int64
	err := b.call("size "+key, "", false, func(ctx context.Context, m *bucketmemory.Bucket) (err error) {
		size, err = m.Size(ctx, key)
		return err
	}).do(ctx)
	if err != nil {
		return 0, err
	}
	return size, nil
}

func (b nodeBucket) List(ctx context.Context, prefix, after string, limit int) ([]bucket.Info, error) {
	var list []bucket.Info
	err := b.call("list "+prefix, fmt.Sprintf("%s %d", after, limit), false, func(ctx context.Context, m *bucketmemory.Bucket) (err error) {
		list, err = m.List(ctx, prefix, after, limit)
		return err
	}).do(ctx)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (b nodeBucket) Delete(ctx context.Context, keys []string) error {
	keys = slices.Clone(keys)
	return b.call("delete", fmt.Sprint(keys), true, func(ctx context.Context, m *bucketmemory.Bucket) error {
		return m.Delete(ctx, keys)
	}).do(ctx)
}

// nodeCoordinator is the coordinator as one node reaches it.
type nodeCoordinator struct{ node *node }

var _ coordinator.Coordinator = nodeCoordinator{}

func (c nodeCoordinator) read(link, detail string, apply func(context.Context, coordinator.Coordinator) error) *call {
	w := c.node.world
	return &call{
		node: c.node, link: link, detail: detail, store: &w.weather.coordinator,
		apply:   func() error { return apply(context.Background(), w.store.coordinator) },
		unknown: func(err error) error { return fmt.Errorf("%s: %w", link, err) },
	}
}

func (c nodeCoordinator) write(link, detail string, apply func(context.Context, coordinator.Coordinator) error) *call {
	write := c.read(link, detail, apply)
	write.write = true
	write.unknown = func(err error) error { return fmt.Errorf("%s: %w: %w", link, coordinator.ErrUnknown, err) }
	return write
}

func (c nodeCoordinator) Append(ctx context.Context, ledger string, e coordinator.Entry) error {
	e.Data = slices.Clone(e.Data)
	c.node.world.store.vigil.sends(e)
	detail := fmt.Sprintf("at %d %x %08x", e.Seq, e.Nonce[:4], checksum(e.Data))
	return c.write("append "+ledger, detail, func(context.Context, coordinator.Coordinator) error {
		return c.node.world.store.append(ledger, e)
	}).do(ctx)
}

func (c nodeCoordinator) Read(ctx context.Context, ledger string, after coordinator.Seq, limit int) ([]coordinator.Entry, error) {
	var entries []coordinator.Entry
	err := c.read("read "+ledger, fmt.Sprintf("%d+%d", after, limit), func(ctx context.Context, m coordinator.Coordinator) (err error) {
		entries, err = m.Read(ctx, ledger, after, limit)
		return err
	}).do(ctx)
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func (c nodeCoordinator) Floor(ctx context.Context, ledger string) (coordinator.Seq, error) {
	var floor coordinator.Seq
	err := c.read("floor "+ledger, "", func(ctx context.Context, m coordinator.Coordinator) (err error) {
		floor, err = m.Floor(ctx, ledger)
		return err
	}).do(ctx)
	if err != nil {
		return 0, err
	}
	return floor, nil
}

func (c nodeCoordinator) Trim(ctx context.Context, ledger string, through coordinator.Seq) error {
	return c.write("trim "+ledger, fmt.Sprint(through), func(ctx context.Context, m coordinator.Coordinator) error {
		return m.Trim(ctx, ledger, through)
	}).do(ctx)
}

func (c nodeCoordinator) Get(ctx context.Context, key string) (coordinator.Value, error) {
	var value coordinator.Value
	err := c.read("register "+key, "", func(ctx context.Context, m coordinator.Coordinator) (err error) {
		value, err = m.Get(ctx, key)
		return err
	}).do(ctx)
	if err != nil {
		return coordinator.Value{}, err
	}
	return value, nil
}

func (c nodeCoordinator) Put(ctx context.Context, key string, data []byte, ifVersion coordinator.Version, nonce coordinator.Nonce) (coordinator.Version, error) {
	var version coordinator.Version
	data = slices.Clone(data)
	detail := fmt.Sprintf("if %q %x %08x", ifVersion, nonce[:4], checksum(data))
	err := c.write("set "+key, detail, func(ctx context.Context, m coordinator.Coordinator) (err error) {
		if version, err = m.Put(ctx, key, data, ifVersion, nonce); err == nil {
			c.node.world.store.vigil.beat(c.node, key)
		}
		return err
	}).do(ctx)
	if err != nil {
		return "", err
	}
	return version, nil
}

func (c nodeCoordinator) Delete(ctx context.Context, key string, ifVersion coordinator.Version, nonce coordinator.Nonce) error {
	return c.write("unset "+key, fmt.Sprintf("if %q %x", ifVersion, nonce[:4]), func(ctx context.Context, m coordinator.Coordinator) error {
		return m.Delete(ctx, key, ifVersion, nonce)
	}).do(ctx)
}

func (c nodeCoordinator) List(ctx context.Context, prefix string) ([]coordinator.Listed, error) {
	var listed []coordinator.Listed
	err := c.read("list "+prefix, "", func(ctx context.Context, m coordinator.Coordinator) (err error) {
		listed, err = m.List(ctx, prefix)
		return err
	}).do(ctx)
	if err != nil {
		return nil, err
	}
	return listed, nil
}

// Close gives up the node's hold on the coordinator, of which it has none.
func (c nodeCoordinator) Close() error { return nil }
