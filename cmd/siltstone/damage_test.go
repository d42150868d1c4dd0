package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/check"
)

var (
	flips    = flag.Int("flips", 40, "bits to flip, one at a time")
	flipSeed = flag.Uint64("flip-seed", 1, "the first `seed`")
)

// known is a data folder whose content is known.
type known struct {
	dir    string
	topics []siltstone.TopicID
	values map[siltstone.TopicPartition][]string // by offset
}

const (
	knownTopics     = 4
	knownPartitions = 2
	knownBatches    = 6 // of each partition
	knownGroups     = 6
)

// running is an agent on a data folder, and what ends it.
type running struct {
	*agent.Agent
	stores *stores
	stop   context.CancelFunc
	done   chan error
}

// run starts an agent, whose checkpoints are frequent, and waits until it is
// ready; an error is that of the start.
func (k *known) run(t *testing.T, drain time.Duration) (*running, error) {
	t.Helper()
	s, err := openStores(k.dir)
	if err != nil {
		return nil, err
	}
	c := ledger.NewClient(ledger.Options{Coordinator: s.coordinator, Bucket: s.bucket, Rand: rand.Uint64})
	id, err := c.EnsureClusterID(t.Context(), siltstone.ClusterID{7})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	engine, err := agent.New(agent.Options{
		Coordinator: s.coordinator, Alone: true, Bucket: s.bucket, Cluster: id, Incarnation: siltstone.Incarnation(rand.Uint64() | 1), Rand: rand.Uint64,
		Flush: agent.Flush{Eager: true}, Memory: agent.Memory{Tail: 1}, CheckpointEntries: 4, DrainTime: drain,
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Agent: engine, stores: s, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- engine.Run(ctx) }()
	select {
	case <-engine.Ready():
		return r, nil
	case err := <-r.done:
		cancel()
		return nil, errors.Join(err, s.Close())
	}
}

func (r *running) end() error {
	r.stop()
	return errors.Join(<-r.done, r.stores.Close())
}

// newKnown writes a data folder: topics, records of each partition in several
// objects, commits of groups, checkpoints.
func newKnown(t *testing.T) *known {
	t.Helper()
	k := &known{dir: filepath.Join(t.TempDir(), "data"), values: map[siltstone.TopicPartition][]string{}}
	r, err := k.run(t, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for n := range knownTopics {
		k.topics = append(k.topics, siltstone.TopicID{byte(n + 1)})
		var refused []error
		err := r.Change(t.Context(), func(v *topic.View) (d topic.Decision) {
			d, refused = topic.Create(v, []topic.NewTopic{{Name: fmt.Sprint("t", n), ID: k.topics[n], Partitions: knownPartitions, Replication: -1}})
			return d
		})
		if err := errors.Join(err, errors.Join(refused...)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range knownBatches {
		k.write(t, r)
		if err := r.Group(t.Context(), k.commits(int64(round))...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	// Without what the database has grown ahead.
	database := filepath.Join(k.dir, databaseName)
	b, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	used := (len(bytes.TrimRight(b, "\x00")) + 4095) / 4096 * 4096
	if err := os.Truncate(database, int64(used)); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, k.dir)
	return k
}

func (k *known) write(t *testing.T, r *running) {
	t.Helper()
	req := &siltstone.AppendRequest{Acks: -1, Deadline: time.Now().Add(time.Minute), Done: make(chan struct{})}
	for _, id := range k.topics {
		for p := range int32(knownPartitions) {
			tp := siltstone.TopicPartition{Topic: id, Partition: p}
			b := batch.NewBuilder(batch.None, 0)
			for range 2 {
				value := fmt.Sprintf("%s %d %s", tp, len(k.values[tp]), strings.Repeat("v", 100))
				k.values[tp] = append(k.values[tp], value)
				b.Append(batch.Record{Timestamp: 1_700_000_000_000, Value: []byte(value)})
			}
			raw, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			req.Parts = append(req.Parts, siltstone.AppendPart{Partition: tp, Batches: raw})
		}
	}
	if err := r.Append(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	<-req.Done
	for i := range req.Parts {
		if err := req.Parts[i].Err; err != nil {
			t.Fatal(err)
		}
	}
}

func (k *known) commits(offset int64) (all []group.Request) {
	for n := range knownGroups {
		all = append(all, &group.Commit{
			Call: group.Call{Group: fmt.Sprint("g", n)}, Generation: -1,
			Parts: []group.CommitPart{{Committed: group.Committed{TopicPartition: group.TopicPartition{Topic: 1}, Offset: offset, Epoch: -1, ExpireMS: -1}}},
		})
	}
	return all
}

// lostOffsets are those of a partition that cannot be read.
type lostOffsets map[siltstone.TopicPartition][]siltstone.Offset

// read reads all that the folder holds, around what is damaged. What it gets is
// what was written: anything else is fatal. An error is that of the start.
func (k *known) read(t *testing.T) (lost lostOffsets, err error) {
	t.Helper()
	r, err := k.run(t, -1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	if n := r.Topics().Len(); n != knownTopics {
		t.Fatalf("%d topics", n)
	}
	lost = lostOffsets{}
	for tp, values := range k.values {
		for at := range values {
			got, end, err := fetch(t, r, tp, siltstone.Offset(at))
			switch {
			case errors.Is(err, siltstone.ErrCorrupt):
				lost[tp] = append(lost[tp], siltstone.Offset(at))
			case err != nil:
				t.Fatalf("%s at %d: %v", tp, at, err)
			case got != values[at] || int(end) != len(values):
				t.Fatalf("%s at %d of %d: %.60q, want %.60q of %d", tp, at, end, got, values[at], len(values))
			}
		}
	}
	for n := range knownGroups {
		f := &group.Fetch{Call: group.Call{Group: fmt.Sprint("g", n)}, Generation: -1, All: true}
		if err := r.Group(t.Context(), f); err != nil {
			return nil, err
		}
		if f.Err != nil || len(f.Parts) != 1 || f.Parts[0].Offset != knownBatches-1 {
			t.Fatalf("group %d: %+v, %v; want offset %d", n, f.Parts, f.Err, knownBatches-1)
		}
	}
	return lost, nil
}

// fetch is the record at an offset, and where its partition ends.
func fetch(t *testing.T, r *running, tp siltstone.TopicPartition, at siltstone.Offset) (value string, end siltstone.Offset, err error) {
	t.Helper()
	res, err := r.Fetch(t.Context(), &siltstone.FetchRequest{
		Deadline: time.Now(), MinBytes: 1, MaxBytes: 1,
		Parts: []siltstone.FetchPart{{Partition: tp, Offset: at, MaxBytes: 1, Epoch: -1, LastEpoch: -1}},
	})
	if err != nil {
		return "", 0, err
	}
	if res.Release != nil {
		defer res.Release()
	}
	part := &res.Parts[0]
	if part.Err != nil {
		return "", 0, part.Err
	}
	for b, err := range batch.All(slices.Concat(part.Records...)) {
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := range batch.Records(b, 1<<20) {
			if err != nil {
				t.Fatal(err)
			}
			if rec.Offset == at {
				return string(rec.Value), part.HighWatermark, nil
			}
		}
	}
	return "", part.HighWatermark, nil
}

// TestFlippedBits flips one bit of one file of a data folder, again and again.
// Either check names it, and whoever reads gets what was written or a clear
// error; or it does no harm at all, and whoever reads gets all.
func TestFlippedBits(t *testing.T) {
	whole := newKnown(t)
	kinds := filesOf(t, whole.dir)
	harmless, borne, partly, refused := 0, 0, 0, 0
	for n := range uint64(*flips) {
		seed := *flipSeed + n
		r := rand.New(rand.NewPCG(seed, 0))
		of := kinds[r.IntN(len(kinds))]
		name := of[r.IntN(len(of))]
		k := *whole
		k.dir = filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(k.dir, os.DirFS(whole.dir)); err != nil {
			t.Fatal(err)
		}
		at := flipBit(t, filepath.Join(k.dir, name), r)
		what := fmt.Sprintf("seed %d: %s, bit %d", seed, name, at)

		var out bytes.Buffer
		named := checkFolder(t.Context(), k.dir, true, &out)
		lost, start := k.read(t)
		switch {
		case t.Failed():
			t.Fatal(what)
		case start != nil && (named == nil || strings.Contains(start.Error(), "\n")):
			t.Fatalf("%s: does not start: %v; check says %v", what, start, named)
		case start != nil:
			refused++
		case len(lost) > 0 && (named == nil || !sameLost(t, out.Bytes(), lost)):
			t.Fatalf("%s: %v is lost; check says %v\n%s", what, lost, named, out.String())
		case len(lost) > 0:
			partly++
		case named != nil:
			borne++
		default:
			harmless++
		}
		if err := os.RemoveAll(k.dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d bits: %d did no harm; of those that check names %d did none either, %d lost some records, %d a start", *flips, harmless, borne, partly, refused)
}

// filesOf are the files of a data folder, by kind.
func filesOf(t *testing.T, dir string) (kinds [][]string) {
	t.Helper()
	byKind := map[string][]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		kind := path
		if strings.HasPrefix(path, "objects/checkpoint/") {
			kind = "checkpoint"
		} else if strings.HasPrefix(path, "objects/") && path != "objects/cluster" {
			kind = "object"
		}
		byKind[kind] = append(byKind[kind], path)
		return nil
	})
	if err != nil || len(byKind) != 5 {
		t.Fatalf("files of %d kinds, %v", len(byKind), err)
	}
	for _, kind := range []string{"FORMAT", databaseName, "objects/cluster", "object", "checkpoint", databaseName, databaseName} {
		kinds = append(kinds, byKind[kind])
	}
	return kinds
}

// flipBit flips a bit of a file, in a part that is not all zeros.
func flipBit(t *testing.T, path string, r *rand.Rand) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const part = 64
	bit := r.IntN(8 * len(b))
	for from := bit / 8 / part * part; len(bytes.Trim(b[from:min(from+part, len(b))], "\x00")) == 0; from = bit / 8 / part * part {
		bit = r.IntN(8 * len(b))
	}
	b[bit/8] ^= 1 << (bit % 8)
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	return bit
}

// sameLost says whether a check's report tells of the same offsets.
func sameLost(t *testing.T, report []byte, lost lostOffsets) bool {
	t.Helper()
	var r check.Report
	if err := json.Unmarshal(report, &r); err != nil {
		t.Fatal(err)
	}
	told := map[string][]siltstone.Offset{}
	for _, u := range r.Unreadable {
		for at := u.First; at <= u.Last; at++ {
			told[fmt.Sprint(u.Topic, "-", u.Partition)] = append(told[fmt.Sprint(u.Topic, "-", u.Partition)], at)
		}
	}
	for tp, offsets := range lost {
		if name := fmt.Sprintf("t%d-%d", tp.Topic[0]-1, tp.Partition); !slices.Equal(told[name], offsets) {
			return false
		}
	}
	return len(told) == len(lost)
}
