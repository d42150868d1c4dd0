package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

var update = flag.Bool("update", false, "write the golden files anew")

// newBatch makes a batch with the header's fields and any bytes for records.
func newBatch(h batch.Header, records []byte) []byte {
	b := make([]byte, batch.HeaderBytes+len(records))
	binary.BigEndian.PutUint64(b[0:], uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], uint32(h.Epoch))
	b[16] = 2
	binary.BigEndian.PutUint16(b[21:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[23:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[27:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[35:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[43:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[51:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[53:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[57:], uint32(h.Records))
	copy(b[61:], records)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// Attributes of control batches.
const transactional, control = batch.Attributes(1 << 4), batch.Attributes(1 << 5)

// newMarker makes a control batch as a transaction coordinator's decision makes it.
func newMarker(base siltstone.Offset, kind int16, epoch int32) []byte {
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(kind))
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(epoch))
	record := []byte{0, 0, 0} // attributes and deltas
	record = append(binary.AppendVarint(record, int64(len(key))), key...)
	record = append(binary.AppendVarint(record, int64(len(value))), value...)
	record = append(record, 0) // no headers
	record = append(binary.AppendVarint(nil, int64(len(record))), record...)
	return newBatch(batch.Header{
		BaseOffset: base, Epoch: 9, Attributes: transactional | control, MaxTimestamp: 1_796_162_400_007,
		ProducerID: 4000, ProducerEpoch: 3, BaseSequence: -1, Records: 1,
	}, record)
}

func plain(base siltstone.Offset, n int32, epoch siltstone.Epoch, ts int64, records string) []byte {
	return newBatch(batch.Header{
		BaseOffset: base, Epoch: epoch, LastOffsetDelta: n - 1, BaseTimestamp: ts, MaxTimestamp: ts,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Records: n,
	}, []byte(records))
}

func partition(topic byte, n int32) siltstone.TopicPartition {
	return siltstone.TopicPartition{Topic: siltstone.TopicID(bytes.Repeat([]byte{topic}, 16)), Partition: n}
}

var sampleHeader = Header{
	Cluster:   siltstone.ClusterID([]byte("cluster-of-tests")),
	ID:        ObjectID{Hour: HourOf(1_796_162_400_000), Incarnation: 0xfeedface12345678, Number: 77},
	CreatedMS: 1_796_162_400_123,
}

// sample is an object with all that the format has: several shards and
// partitions, sequences, a transaction with its marker, holes between batches
// and at the end, a run that compaction emptied.
func sample(t testing.TB) ([]byte, *Index) {
	t.Helper()
	w := NewWriter(sampleHeader)
	idempotent := newBatch(batch.Header{
		BaseOffset: 105, Epoch: 8, Attributes: batch.Attributes(batch.Zstd), LastOffsetDelta: 2, MaxTimestamp: 1_796_162_399_000,
		ProducerID: 1 << 40, ProducerEpoch: 12, BaseSequence: 1<<31 - 3, Records: 3,
	}, []byte("zstd"))
	inTransaction := newBatch(batch.Header{
		BaseOffset: 500, Epoch: 9, Attributes: transactional, LastOffsetDelta: 0, MaxTimestamp: -1,
		ProducerID: 4000, ProducerEpoch: 3, BaseSequence: 0, Records: 1,
	}, []byte("payment"))
	for _, err := range []error{
		w.Run(2, partition('a', 0), 100),
		w.Batch(plain(100, 5, 7, 1_796_162_400_000, "five records")),
		w.Batch(idempotent),
		w.Run(2, partition('a', 1), 0),
		w.Batch(plain(0, 1, 0, 0, "")),
		w.Run(2, partition('b', 0), 10),
		w.CoverTo(20),
		w.Run(13, partition('a', 7), 400),
		w.Batch(inTransaction),
		w.Batch(newMarker(501+siltstone.UncleanJump, 1, 66)),
		w.CoverTo(510 + siltstone.UncleanJump),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	parts, x, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(parts...), x
}

var sameIndex = cmpopts.IgnoreUnexported(Index{})

func TestWriteThenParse(t *testing.T) {
	b, x := sample(t)
	o, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := sampleHeader
	want.Shards = []uint16{2, 13}
	if diff := cmp.Diff(want, o.Header); diff != "" {
		t.Errorf("header: %s", diff)
	}
	if diff := cmp.Diff(x, o.Index, sameIndex); diff != "" {
		t.Errorf("the writer's index is not the parsed one: %s", diff)
	}
	if err := Verify(b); err != nil {
		t.Errorf("Verify: %v", err)
	}
	run, ok := o.Index.Find(partition('a', 7))
	if !ok || run.Shard != 13 || run.Offsets != 110+siltstone.UncleanJump || len(run.Rows) != 2 {
		t.Fatalf("Find: %+v, %v", run, ok)
	}
	wantRows := []Row{
		{OffsetDelta: 100, Offsets: 1, LengthBytes: 68, Position: run.Position, MaxTimestamp: -1, Epoch: 9,
			ProducerID: 4000, ProducerEpoch: 3, Attributes: transactional, Marker: -1, CoordinatorEpoch: -1},
		{OffsetDelta: 101 + siltstone.UncleanJump, Offsets: 1, LengthBytes: 78, Position: run.Position + 68, MaxTimestamp: 1_796_162_400_007, Epoch: 9,
			ProducerID: 4000, ProducerEpoch: 3, BaseSequence: -1, Attributes: transactional | control, Marker: 1, CoordinatorEpoch: 66},
	}
	if diff := cmp.Diff(wantRows, run.Rows); diff != "" {
		t.Errorf("rows: %s", diff)
	}
	if run.MaxTimestamp() != 1_796_162_400_007 || run.LastEpoch() != 9 {
		t.Errorf("MaxTimestamp, LastEpoch = %d, %d", run.MaxTimestamp(), run.LastEpoch())
	}
	if _, ok := o.Index.Find(partition('c', 0)); ok {
		t.Error("Find gives a run of a partition that the object has not")
	}
	empty, _ := o.Index.Find(partition('b', 0))
	if empty.Offsets != 10 || len(empty.Rows) != 0 || empty.LengthBytes != 0 || empty.MaxTimestamp() != -1 || empty.LastEpoch() != -1 {
		t.Errorf("a run without batches: %+v", empty)
	}
}

func TestAt(t *testing.T) {
	b, _ := sample(t)
	o, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	run, _ := o.Index.Find(partition('a', 0))
	for delta, want := range map[int64]int{0: 0, 4: 0, 5: 1, 7: 1, 8: 2, 1 << 40: 2} {
		if got := run.At(delta); got != want {
			t.Errorf("At(%d) = %d, want %d", delta, got, want)
		}
	}
}

// dump prints an object as a person would want to see it.
func dump(o *Object) string {
	var s strings.Builder
	fmt.Fprintf(&s, "header  %s %s created %d shards %v\n", o.Header.Cluster, o.Header.ID, o.Header.CreatedMS, o.Header.Shards)
	for _, r := range o.Index.Runs {
		fmt.Fprintf(&s, "run     shard %d %s offsets %d at %d bytes %d crc %08x\n", r.Shard, r.Partition, r.Offsets, r.Position, r.LengthBytes, r.CRC)
		for _, row := range r.Rows {
			fmt.Fprintf(&s, "  row   %+v\n", row)
		}
	}
	fmt.Fprintf(&s, "trailer %+v\n", o.Trailer)
	return s.String()
}

func TestGolden(t *testing.T) {
	b, _ := sample(t)
	o, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"testdata/v1.golden": b, "testdata/v1.txt": []byte(dump(o))} {
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the format is another now; written:\n%s", name, got)
		}
	}
}

// Every byte of an object is under a CRC.
func TestEveryFlippedByteIsFound(t *testing.T) {
	b, _ := sample(t)
	for i := range b {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(b)
			bad[i] ^= bit
			if _, err := Parse(bad); !errors.Is(err, siltstone.ErrCorrupt) {
				t.Errorf("byte %d of %d flipped by %#x: %v, want ErrCorrupt", i, len(b), bit, err)
			}
		}
	}
	for n := range b {
		for _, cut := range [][]byte{b[:n], b[n+1:]} {
			if _, err := Parse(cut); !errors.Is(err, siltstone.ErrCorrupt) {
				t.Errorf("%d bytes of %d: %v, want ErrCorrupt", len(cut), len(b), err)
			}
		}
	}
}

func TestOtherFiles(t *testing.T) {
	for _, b := range []string{"", "x", headerMagic[1:], "a text that is longer than a trailer, and neither begins nor ends like a segment\n"} {
		if _, err := Parse([]byte(b)); !errors.Is(err, siltstone.ErrCorrupt) || !strings.Contains(err.Error(), "no segment") {
			t.Errorf("%q: %v", b, err)
		}
	}
}

func TestErrorsNameThePart(t *testing.T) {
	b, x := sample(t)
	for part, at := range map[string]int{
		"header": 30, "run of": int(x.Runs[0].Position), "index": len(b) - TrailerBytes - 5, "trailer": len(b) - 10,
	} {
		bad := bytes.Clone(b)
		bad[at] ^= 4
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("damage at %d: %v; want it to name the %s", at, err, part)
		}
	}
}

func TestNewerFormat(t *testing.T) {
	b, _ := sample(t)
	header, trailer := bytes.Clone(b[:66]), bytes.Clone(b[len(b)-TrailerBytes:])
	header[atHeaderVersion+1], trailer[atTrailerVersion+1] = 2, 2
	seal(header)
	seal(trailer)
	if _, err := ParseHeader(header); !errors.Is(err, siltstone.ErrNewerFormat) {
		t.Errorf("header: %v, want ErrNewerFormat", err)
	}
	if _, err := ParseTrailer(trailer); !errors.Is(err, siltstone.ErrNewerFormat) {
		t.Errorf("trailer: %v, want ErrNewerFormat", err)
	}
}

// reindexed is an object with other runs in its index, and every CRC right.
func reindexed(b []byte, runs []Run) []byte {
	t, _ := ParseTrailer(b)
	index := encodeIndex(runs)
	t.IndexBytes, t.IndexCRC = int64(len(index)), crc32.Checksum(index, castagnoli)
	t.ObjectBytes = t.IndexPosition + t.IndexBytes + TrailerBytes
	return slices.Concat(b[:t.IndexPosition], index, t.encode())
}

func TestVerifyComparesRowsWithBatches(t *testing.T) {
	whole, _ := sample(t)
	for name, change := range map[string]func(runs []Run){
		"epoch":             func(r []Run) { r[0].Rows[0].Epoch++ },
		"timestamp":         func(r []Run) { r[0].Rows[0].MaxTimestamp++ },
		"offsets":           func(r []Run) { r[0].Rows[1].Offsets-- },
		"delta":             func(r []Run) { r[0].Rows[1].OffsetDelta++; r[0].Offsets++ },
		"producer":          func(r []Run) { r[0].Rows[1].ProducerID++ },
		"producer epoch":    func(r []Run) { r[0].Rows[1].ProducerEpoch++ },
		"sequence":          func(r []Run) { r[0].Rows[1].BaseSequence++ },
		"no producer":       func(r []Run) { r[0].Rows[1].ProducerID = -1 },
		"attributes":        func(r []Run) { r[0].Rows[1].Attributes = 0 },
		"lengths":           func(r []Run) { r[0].Rows[0].LengthBytes++; r[0].Rows[1].LengthBytes-- },
		"marker":            func(r []Run) { r[3].Rows[1].Marker = 0 },
		"coordinator epoch": func(r []Run) { r[3].Rows[1].CoordinatorEpoch++ },
	} {
		o, err := Parse(whole)
		if err != nil {
			t.Fatal(err)
		}
		change(o.Index.Runs)
		bad := reindexed(whole, o.Index.Runs)
		if _, err := Parse(bad); err != nil {
			t.Errorf("%s: Parse: %v; the CRCs are right", name, err)
		}
		if err := Verify(bad); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: Verify: %v, want ErrCorrupt", name, err)
		}
	}
}

// A stamped copy is still the batch that the row describes; a changed record is not.
func TestRowCheck(t *testing.T) {
	b, x := sample(t)
	row := x.Runs[0].Rows[1]
	one := bytes.Clone(b[row.Position:][:row.LengthBytes])
	batch.Stamp(one, 999, row.Epoch)
	if err := row.Check(one); err != nil {
		t.Errorf("a batch with another base offset: %v", err)
	}
	one[len(one)-1] ^= 1
	if err := row.Check(one); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("a damaged batch: %v", err)
	}
	if err := row.Check(one[:30]); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("half a batch: %v", err)
	}
}

func TestParsersRefuse(t *testing.T) {
	whole, _ := sample(t)
	for name, change := range map[string]func(runs []Run) []Run{
		"runs out of order":      func(r []Run) []Run { r[0], r[1] = r[1], r[0]; return r },
		"two runs of one":        func(r []Run) []Run { r[2].Partition = r[3].Partition; return r },
		"a shard not in header":  func(r []Run) []Run { r[3].Shard = 14; return r },
		"a shard missing":        func(r []Run) []Run { r[3].Shard = 2; return r[1:] },
		"a row without offsets":  func(r []Run) []Run { r[3].Rows[1].Offsets = 0; return r },
		"more rows than offsets": func(r []Run) []Run { r[3].Offsets = 1; return r },
		"a tiny batch":           func(r []Run) []Run { r[0].Rows[0].LengthBytes = 60; return r },
		"bytes missing":          func(r []Run) []Run { r[0].Rows[0].LengthBytes--; return r },
		"a hole that wraps":      func(r []Run) []Run { r[3].Rows[0].OffsetDelta = maxSpan; return r },
		"negative partition":     func(r []Run) []Run { r[0].Partition.Partition = -1; return r },
	} {
		o, err := Parse(whole)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(reindexed(whole, change(o.Index.Runs))); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

func TestHeaderRefuses(t *testing.T) {
	for name, shards := range map[string][]uint16{"out of order": {3, 2}, "twice": {2, 2}} {
		h := sampleHeader
		h.Shards = shards
		if _, err := ParseHeader(h.encode()); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("shards %s: %v, want ErrCorrupt", name, err)
		}
	}
}

// A count from outside asks for no memory that its bytes do not justify.
func TestCountsAreChecked(t *testing.T) {
	const count = 90                       // in the 100 bytes that follow
	run := append(make([]byte, 1+16+1), 1) // shard, topic, partition; offsets
	for name, b := range map[string][]byte{
		"runs": binary.AppendUvarint(nil, count),
		"rows": append(append([]byte{1}, run...), binary.AppendUvarint(nil, count)...),
	} {
		b = append(b, make([]byte, 100)...)
		trailer := Trailer{IndexBytes: int64(len(b)), IndexCRC: crc32.Checksum(b, castagnoli), DataPosition: minHeaderBytes, IndexPosition: minHeaderBytes}
		if _, err := ParseIndex(b, trailer); !errors.Is(err, siltstone.ErrCorrupt) || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%d %s: %v, want that there are at most some", count, name, err)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	ok := plain(10, 2, 1, 0, "x")
	for name, write := range map[string]func(w *Writer) error{
		"batch without run": func(w *Writer) error { return w.Batch(ok) },
		"cover without run": func(w *Writer) error { return w.CoverTo(1) },
		"same run twice": func(w *Writer) error {
			return errors.Join(w.Run(1, partition('a', 1), 0), w.Run(1, partition('a', 1), 0))
		},
		"partition backward": func(w *Writer) error {
			return errors.Join(w.Run(1, partition('a', 1), 0), w.Run(1, partition('a', 0), 0))
		},
		"shard backward": func(w *Writer) error {
			return errors.Join(w.Run(2, partition('a', 1), 0), w.Run(1, partition('b', 1), 0))
		},
		"no partition":      func(w *Writer) error { return w.Run(1, partition('a', -1), 0) },
		"offset below base": func(w *Writer) error { return errors.Join(w.Run(1, partition('a', 1), 11), w.Batch(ok)) },
		"offset twice": func(w *Writer) error {
			return errors.Join(w.Run(1, partition('a', 1), 10), w.Batch(ok), w.Batch(plain(11, 1, 1, 0, "")))
		},
		"cover less": func(w *Writer) error { return errors.Join(w.Run(1, partition('a', 1), 10), w.Batch(ok), w.CoverTo(11)) },
		"two batches in one": func(w *Writer) error {
			return errors.Join(w.Run(1, partition('a', 1), 10), w.Batch(slices.Concat(ok, ok)))
		},
		"half a batch": func(w *Writer) error { return errors.Join(w.Run(1, partition('a', 1), 10), w.Batch(ok[:61])) },
		"negative last delta": func(w *Writer) error {
			return errors.Join(w.Run(1, partition('a', 1), 10), w.Batch(plain(10, 0, 1, 0, "")))
		},
		"no control record": func(w *Writer) error {
			return errors.Join(w.Run(1, partition('a', 1), 0), w.Batch(newBatch(batch.Header{Attributes: control}, nil)))
		},
		"one partition in two shards": func(w *Writer) error {
			_ = errors.Join(w.Run(1, partition('a', 1), 0), w.Run(2, partition('a', 1), 0))
			_, _, err := w.Finish()
			return err
		},
	} {
		if err := write(NewWriter(sampleHeader)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBatchesAreNotCopied(t *testing.T) {
	w := NewWriter(sampleHeader)
	b := plain(0, 1, 1, 0, "here")
	if err := errors.Join(w.Run(0, partition('a', 0), 0), w.Batch(b)); err != nil {
		t.Fatal(err)
	}
	parts, _, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(parts, func(p []byte) bool { return len(p) == len(b) && &p[0] == &b[0] }) {
		t.Error("the batch was copied")
	}
}

// Whatever runs are written are parsed, also from a tail that holds no more than the footer.
func TestAnyObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWriter(Header{ID: ObjectID{Number: rapid.Uint64().Draw(t, "number")}, CreatedMS: rapid.Int64().Draw(t, "created")})
		for shard := range rapid.IntRange(0, 3).Draw(t, "shards") {
			for p := range rapid.IntRange(0, 3).Draw(t, "partitions") {
				base := siltstone.Offset(rapid.Int64Range(0, 1<<50).Draw(t, "base"))
				if err := w.Run(uint16(shard), partition(byte(shard), int32(p)), base); err != nil {
					t.Fatal(err)
				}
				for range rapid.IntRange(0, 4).Draw(t, "batches") {
					base += siltstone.Offset(rapid.Int64Range(0, 1<<40).Draw(t, "hole"))
					h := batch.Header{
						BaseOffset: base, LastOffsetDelta: rapid.Int32Range(0, 1<<31-2).Draw(t, "last"),
						Epoch: siltstone.Epoch(rapid.Int32().Draw(t, "epoch")), MaxTimestamp: rapid.Int64().Draw(t, "ts"),
						Attributes: batch.Attributes(rapid.Int16().Draw(t, "attributes")) &^ control,
						ProducerID: rapid.Int64().Draw(t, "producer"), ProducerEpoch: rapid.Int16().Draw(t, "pepoch"), BaseSequence: rapid.Int32().Draw(t, "sequence"),
					}
					if err := w.Batch(newBatch(h, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "records"))); err != nil {
						t.Fatal(err)
					}
					base += siltstone.Offset(h.LastOffsetDelta) + 1
				}
			}
		}
		parts, x, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		b := slices.Concat(parts...)
		if err := Verify(b); err != nil {
			t.Fatal(err)
		}
		trailer, err := ParseTrailer(b[len(b)-TrailerBytes:])
		if err != nil {
			t.Fatal(err)
		}
		footer := b[trailer.IndexPosition:]
		if _, ok := trailer.CutIndex(footer[1:]); ok {
			t.Fatal("CutIndex finds an index that is cut")
		}
		index, ok := trailer.CutIndex(footer)
		if !ok {
			t.Fatal("CutIndex does not find the index")
		}
		got, err := ParseIndex(index, trailer)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x.Runs, got.Runs, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
