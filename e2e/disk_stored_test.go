package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered"
	"github.com/siltstone-io/siltstone/tiered/bucket/local"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// stored is a data folder with one of each kind of file, and what is in it:
// topic t, three partitions of it with some records each, in several objects,
// each of which holds records of all partitions; a group's offset; a
// checkpoint of each ledger, and entries after it.
type stored struct {
	dir    string
	values [storedPartitions][]string // by offset
}

const (
	storedPartitions = 3
	storedRounds     = 4 // one object each
	storedBatches    = 2 // of each partition in each object
	storedOffset     = 5 // that the group "g" has committed
)

func newStored(t *testing.T) *stored {
	t.Helper()
	f := &stored{dir: filepath.Join(t.TempDir(), "data")}
	s := start(t, f.dir)
	s.cli(t, "", "topic", "create", "t", "-p", fmt.Sprint(storedPartitions))
	for range storedRounds - 1 {
		f.write(t, s)
	}
	if err := s.commitOffset(t, "g", "t", storedOffset, ""); err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	f.checkpoint(t)
	s = start(t, f.dir)
	f.write(t, s)
	s.stop(t)
	return f
}

// write makes one object: what acks=1 acknowledges is only buffered.
func (f *stored) write(t *testing.T, s *server) {
	t.Helper()
	for n := range storedBatches {
		acks := kgo.LeaderAck()
		if n == storedBatches-1 {
			acks = kgo.AllISRAcks()
		}
		f.writeBatches(t, s, acks)
	}
}

// writeBatches produces a batch of each partition, in one request.
func (f *stored) writeBatches(t *testing.T, s *server, acks kgo.Acks) {
	t.Helper()
	q := kmsg.NewPtrProduceRequest()
	q.TimeoutMillis = int32(patience.Milliseconds())
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = "t"
	for p := range int32(storedPartitions) {
		var records []batch.Record
		for range 2 {
			v := fmt.Sprintf("%d/%d/%s", p, len(f.values[p]), strings.Repeat("v", 300))
			f.values[p] = append(f.values[p], v)
			records = append(records, value(v))
		}
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p, batchOf(t, batch.None, records...)
		rt.Partitions = append(rt.Partitions, rp)
	}
	q.Topics = append(q.Topics, rt)
	resp, err := s.byName(t, kgo.RequiredAcks(acks)).Request(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range resp.(*kmsg.ProduceResponse).Topics[0].Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			t.Fatal(err)
		}
	}
}

// checkpoint stores a checkpoint of each ledger, as a server does every hour.
func (f *stored) checkpoint(t *testing.T) {
	t.Helper()
	coord, err1 := embedded.Open(filepath.Join(f.dir, "cluster.db"))
	objects, err2 := local.Open(filepath.Join(f.dir, "objects"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	reader, err := tiered.New(tiered.Options{Bucket: objects})
	if err != nil {
		t.Fatal(err)
	}
	c := ledger.NewClient(ledger.Options{Coordinator: coord, Bucket: objects, Rand: rand.Uint64})
	save(t, c, topic.Ledger, topic.New, nil)
	for n := range group.Count {
		save(t, c, group.Ledger(n), group.New, nil)
	}
	lost := func(_ segment.ObjectID, err error) error { return err }
	for n := range shard.Count {
		save(t, c, shard.Ledger(n), shard.New, func(got ledger.Loaded[*shard.State, shard.Change]) error {
			return reader.AddRows(t.Context(), got.Fold, got.Tail, lost)
		})
	}
	reader.Close()
	if err := errors.Join(objects.Close(), coord.Close()); err != nil {
		t.Fatal(err)
	}
}

func save[F ledger.Fold[C], C any](t *testing.T, c *ledger.Client, name string, empty func() F, complete func(ledger.Loaded[F, C]) error) {
	t.Helper()
	got, err := ledger.LoadFold(t.Context(), c, name, empty)
	if err == nil && complete != nil {
		err = complete(got)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(name, got.Fold)
	l.Replace(got.Fold, got.At)
	if err := c.SaveCheckpoint(t.Context(), l.Checkpoint()); err != nil {
		t.Fatal(err)
	}
}

// copy is the same in a folder of its own.
func (f *stored) copy(t *testing.T) *stored {
	t.Helper()
	to := *f
	to.dir = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to.dir, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	return &to
}

// find is the files of the folder whose names match: objects/checkpoint/*/*.
func (f *stored) find(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return found
}

// segments are the files that hold records, oldest first.
func (f *stored) segments(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(f.dir, "objects"), func(path string, e fs.DirEntry, err error) error {
		if b, readErr := os.ReadFile(path); readErr == nil && strings.HasPrefix(string(b), "SILTSEGM") {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) != storedRounds {
		t.Fatalf("%d segments, %v", len(found), err)
	}
	slices.SortFunc(found, func(a, b string) int { return created(t, a) - created(t, b) })
	return found
}

// created is when a segment was made, as its header says.
func created(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := segment.ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	return int(h.CreatedMS)
}

// change writes a file anew.
func change(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, how(b), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// checkFinds runs a check, which must name all of some words, and returns what
// it says cannot be read.
func (f *stored) checkFinds(t *testing.T, names ...string) (unreadable []offsets) {
	t.Helper()
	stdout, stderr, code := run(t, "", "check", "--data", f.dir, "--json")
	for _, name := range names {
		if !strings.Contains(stdout+stderr, name) {
			t.Errorf("check does not name %s:\n%s%s", name, stdout, stderr)
		}
	}
	if code != 1 || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "goroutine") {
		t.Errorf("check: code %d, want 1 and one line:\n%s", code, stderr)
	}
	var r struct{ Unreadable []offsets }
	if stdout != "" {
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Errorf("%v: %s", err, stdout)
		}
	}
	return r.Unreadable
}

// offsets are some of a partition, as check names them.
type offsets struct {
	Topic       string
	Partition   int32
	First, Last int64
}

// readsAround reads all partitions, each from every offset: either what was
// written there, or, in the offsets that are lost, a clear error.
func (f *stored) readsAround(t *testing.T, s *server, lost ...offsets) {
	t.Helper()
	b := s.byName(t)
	for p, values := range f.values {
		for at, want := range values {
			isLost := slices.ContainsFunc(lost, func(o offsets) bool {
				return o.Topic == "t" && int(o.Partition) == p && o.First <= int64(at) && int64(at) <= o.Last
			})
			got, err := fetchOne(t, b, int32(p), int64(at))
			switch {
			case isLost && (errors.Is(err, kerr.CorruptMessage) || errors.Is(err, kerr.KafkaStorageError)):
			case isLost:
				t.Errorf("partition %d, offset %d, which is lost: %.20q, %v", p, at, got, err)
			case err != nil || got != want:
				t.Errorf("partition %d, offset %d: %.20q, %v; want %.20q", p, at, got, err, want)
			}
		}
	}
	if got := s.committedOffset(t, "g", "t"); got != storedOffset {
		t.Errorf("the group is at %d", got)
	}
}

// fetchOne is the record at an offset.
func fetchOne(t *testing.T, b *kgo.Broker, partition int32, at int64) (string, error) {
	t.Helper()
	q := kmsg.NewPtrFetchRequest()
	q.MaxWaitMillis, q.MinBytes, q.MaxBytes = 0, 1, 1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = "t"
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = partition, at, 1, -1
	rt.Partitions = append(rt.Partitions, rp)
	q.Topics = append(q.Topics, rt)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := b.Request(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	part := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
		return "", err
	}
	for b, err := range batch.All(part.RecordBatches) {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range batch.Records(b, 1<<20) {
			if err != nil {
				t.Fatal(err)
			}
			if int64(r.Offset) == at {
				return string(r.Value), nil
			}
		}
	}
	return "", fmt.Errorf("offset %d is not in the answer, whose high watermark is %d", at, part.HighWatermark)
}
