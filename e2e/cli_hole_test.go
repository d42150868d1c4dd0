package e2e

import (
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/dynamo"
	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/local"
	"github.com/siltstone-io/siltstone/tiered/bucket/open"
)

// openStores opens what a server on a folder keeps its cluster in.
func openStores(t *testing.T, dir string) (coord coordinator.Coordinator, objects interface {
	bucket.Bucket
	io.Closer
}) {
	t.Helper()
	var err1, err2 error
	if cluster := clusterIn(t, dir); cluster != nil {
		at, err := dynamo.Parse(cluster.remoteStores[3])
		if err != nil {
			t.Fatal(err)
		}
		coord, err1 = dynamo.New(t.Context(), dynamo.Options{Location: at})
		objects, err2 = open.URL(t.Context(), cluster.remoteStores[1], open.Options{Rand: rand.Uint64})
	} else {
		coord, err1 = embedded.Open(filepath.Join(dir, "cluster.db"))
		objects, err2 = local.Open(filepath.Join(dir, "objects"))
	}
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return coord, objects
}

// leapOffsets is an unclean takeover of every shard in a folder that nobody
// uses: offsets go on further up, and between there is a hole.
func leapOffsets(t *testing.T, dir string) {
	t.Helper()
	coord, objects := openStores(t, dir)
	c := ledger.NewClient(ledger.Options{Coordinator: coord, Bucket: objects, Rand: rand.Uint64})
	for n := range shard.Count {
		got, err := ledger.LoadFold(t.Context(), c, shard.Ledger(n), shard.New)
		if err != nil {
			t.Fatal(err)
		}
		const other = siltstone.Incarnation(1)
		lead := shard.Lead{Epoch: got.Fold.Epoch() + 1, Leader: other, ISR: []siltstone.Incarnation{other}, Unclean: true}
		l := ledger.New(shard.Ledger(n), got.Fold)
		l.Replace(got.Fold, got.At)
		p, err := l.Propose(lead.Kind(), lead.Encode(), time.Now().UnixMilli(), coordinator.Nonce{1})
		if err == nil {
			_, err = c.Append(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(objects.Close(), coord.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestConsumeOverHole: where a log ends in a hole, there is no telling whether
// records are late: consume says that it waits. What comes later is read on.
func TestConsumeOverHole(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, "before\n", "produce", "t")
	s.stop(t)
	leapOffsets(t, dir)
	s = start(t, dir)
	c := launch(t, "consume", "t", "--exit", "--kafka", s.kafka)
	c.complains(t, "siltstone: waiting for records")
	c.signal(t, syscall.SIGINT)
	code := c.code(t)
	if stdout, stderr := c.said(); code != 0 || stdout != "before\n" {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	s.cli(t, "after\n", "produce", "t")
	if out := s.cli(t, "", "consume", "t", "--exit", "--format", `%o %v\n`); out != "0 before\n1048577 after\n" {
		t.Errorf("over the hole: %q", out)
	}
}
