package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// nulls are null, empty and present: the mixes of keys and values.
var nulls = [][]byte{nil, {}, []byte("x")}

// nullHeaders are three values under one name, and a name that is empty.
var nullHeaders = []batch.RecordHeader{
	{Key: []byte("h"), Value: nil}, {Key: []byte("h"), Value: []byte{}}, {Key: []byte{}, Value: []byte("y")}, {Key: []byte("h"), Value: []byte("x")},
}

// mixes are records with all mixes of the keys with nulls for values.
func mixes(keys ...[]byte) (all []batch.Record) {
	for _, k := range keys {
		for _, v := range nulls {
			r := value("")
			r.Key, r.Value, r.Headers = k, v, nullHeaders
			all = append(all, r)
		}
	}
	return all
}

// plainRecords are records as a reader must see them from an offset on.
func plainRecords(from int64, records []batch.Record) (all []plain) {
	for i, r := range records {
		p := plain{from + int64(i), r.Key, r.Value, nil}
		for _, h := range r.Headers {
			p.Headers = append(p.Headers, kgo.RecordHeader{Key: string(h.Key), Value: h.Value})
		}
		all = append(all, p)
	}
	return all
}

// inEachCodec are the partitions of a topic that has one for each codec.
func inEachCodec(records []batch.Record) (partitions [][]plain) {
	for range allCodecs {
		partitions = append(partitions, plainRecords(0, records))
	}
	return partitions
}

// kcatLengths is how kcat shows records: offset, lengths of key and value (-1
// is null), headers.
func kcatLengths(records []plain) string {
	var out strings.Builder
	length := func(b []byte) int {
		if b == nil {
			return -1
		}
		return len(b)
	}
	for _, r := range records {
		fmt.Fprintf(&out, "%d %d %d ", r.Offset, length(r.Key), length(r.Value))
		for i, h := range r.Headers {
			if i > 0 {
				out.WriteByte(',')
			}
			if h.Value == nil {
				fmt.Fprintf(&out, "%s=NULL", h.Key)
			} else {
				fmt.Fprintf(&out, "%s=%s", h.Key, h.Value)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// wantRecords reads the partitions of a topic with franz-go and with kcat.
func (s *server) wantRecords(t *testing.T, topic string, partitions ...[]plain) {
	t.Helper()
	kcat := make([]strings.Builder, len(partitions))
	for line := range strings.Lines(s.kcat(t, nil, atOnce("-C", "-t", topic, "-o", "beginning", "-e", "-f", "%p %o %K %S %h\n")...)) {
		number, rest, _ := strings.Cut(line, " ")
		p, err := strconv.Atoi(number)
		if err != nil || p >= len(partitions) {
			t.Fatalf("kcat reads %q", line)
		}
		kcat[p].WriteString(rest)
	}
	for p, want := range partitions {
		var got []plain
		for _, r := range s.read(t, topic, int32(p), 0, len(want)) {
			got = append(got, plainOf(r))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s-%d, franz-go (-want +got):\n%s", topic, p, diff)
		}
		if kcat[p].String() != kcatLengths(want) {
			t.Errorf("%s-%d: kcat reads\n%swant\n%s", topic, p, kcat[p].String(), kcatLengths(want))
		}
	}
}

// TestReport04Nulls: null and empty stay what they are, in keys, values and
// headers, in every codec, whoever compresses and wherever they are read from.
// (platformatic/kafka#217, rust-rdkafka#454, librdkafka#1386)
func TestReport04Nulls(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "as-sent", "-p", fmt.Sprint(len(allCodecs)))
	topics := []string{"as-sent"}
	for _, codec := range allCodecs[1:] {
		s.cli(t, "", "topic", "create", codec.String(), "-p", fmt.Sprint(len(allCodecs)), "-c", "compression.type="+codec.String())
		topics = append(topics, codec.String())
	}
	w := s.dial(t)
	for _, name := range topics {
		for p, codec := range allCodecs {
			w.mustProduce(w.topic(name), int32(p), batchOf(t, codec, mixes(nulls...)...))
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		for _, name := range topics {
			s.wantRecords(t, name, inEachCodec(mixes(nulls...))...)
		}
	})
}

// compactions are the settings under which a topic is compacted.
var compactions = map[string][]string{
	"compact":  {"cleanup.policy=compact"},
	"both":     {"cleanup.policy=delete,compact"},
	"header":   {"cleanup.policy=compact", "siltstone.validation=header"},
	"append":   {"cleanup.policy=compact", "message.timestamp.type=LogAppendTime"},
	"squeezed": {"cleanup.policy=compact", "compression.type=snappy"},
}

// TestReport04Compacted: a compacted topic refuses a null key, and with it the
// whole batch; an empty key, and an empty or null value, it takes.
func TestReport04Compacted(t *testing.T) {
	s := start(t, t.TempDir())
	good, bad := mixes([]byte{}, []byte("x")), mixes(nil)
	for name, configs := range compactions {
		args := []string{"topic", "create", name, "-p", fmt.Sprint(len(allCodecs))}
		for _, c := range configs {
			args = append(args, "-c", c)
		}
		s.cli(t, "", args...)
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		for name := range compactions {
			topic := w.topic(name)
			for p, codec := range allCodecs {
				if end := w.listOffsets(1, topic, -1, -1)[p].Offset; end == 0 {
					w.mustProduce(topic, int32(p), batchOf(t, codec, good...))
				}
				for i, null := range bad {
					at := (i + p) % len(good) // among good ones, at any place
					among := batchOf(t, codec, append(append(good[:at:at], null), good[at:]...)...)
					alone := batchOf(t, codec, null)
					for version := int16(7); version <= 13; version++ {
						what := fmt.Sprintf("%s, %s, v%d", name, codec, version)
						wantRefusedRecord(t, what, version, w.produce(version, topic, int32(p), among), int32(at))
						wantRefusedRecord(t, what+", alone", version, w.produce(version, topic, int32(p), alone), 0)
					}
				}
			}
			s.wantRecords(t, name, inEachCodec(good)...)
		}
	})
}

func wantRefusedRecord(t *testing.T, what string, version int16, got kmsg.ProduceResponseTopicPartition, index int32) {
	t.Helper()
	if errorName(got.ErrorCode) != "INVALID_RECORD" || got.BaseOffset != -1 || got.LogAppendTime != -1 {
		t.Errorf("%s: %q, offset %d, time %d", what, errorName(got.ErrorCode), got.BaseOffset, got.LogAppendTime)
	}
	if version < 8 {
		return // does not say which
	}
	if len(got.ErrorRecords) != 1 || got.ErrorRecords[0].RelativeOffset != index || got.ErrorMessage == nil || !strings.Contains(*got.ErrorMessage, "key") {
		t.Errorf("%s: it names %+v, want record %d", what, got.ErrorRecords, index)
	}
}

// TestReport04CompactedNeighbours: what is refused concerns one partition of
// one request, and says so to every kind of client.
func TestReport04CompactedNeighbours(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "c", "-p", "2", "-c", "cleanup.policy=compact")
	w := s.dial(t)
	topic := w.topic("c")

	good, bad := value("v"), value("v")
	good.Key = []byte("k")
	q := produceTo(topic, 0, batchOf(t, batch.None, bad))
	other := kmsg.NewProduceRequestTopicPartition()
	other.Partition, other.Records = 1, batchOf(t, batch.None, good)
	q.Topics[0].Partitions = append(q.Topics[0].Partitions, other)
	parts := ask[*kmsg.ProduceResponse](w, 13, q).Topics[0].Partitions
	if errorName(parts[0].ErrorCode) != "INVALID_RECORD" || parts[1].ErrorCode != 0 || parts[1].BaseOffset != 0 {
		t.Errorf("one bad and one good partition: %+v", parts)
	}

	// Without an answer, the end of the connection is the answer.
	quiet := s.dial(t)
	q = produceTo(topic, 0, batchOf(t, batch.None, bad))
	q.Acks = 0
	q.SetVersion(9)
	quiet.send(q)
	quiet.wantClosed()

	for what, args := range map[string][]string{"no key": {"-z", "gzip"}, "empty is null": {"-Z", "-K:"}} {
		cmd := exec.CommandContext(t.Context(), "kcat", append([]string{"-b", s.kafka, "-P", "-t", "c", "-p", "0"}, args...)...)
		cmd.Stdin = strings.NewReader(":v\n")
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("Broker failed to validate record")) {
			t.Errorf("kcat, %s: %v %s", what, err, out)
		}
	}
	s.kcat(t, []byte(":v\n"), "-P", "-t", "c", "-p", "0", "-K:") // an empty key
	_, stderr, code := run(t, "v\n", "produce", "c", "-p", "0", "--kafka", s.kafka)
	oneClearLine(t, "siltstone produce", stderr, code, "INVALID_RECORD")

	for i, end := range w.listOffsets(1, topic, -1, -1) {
		if end.Offset != 1 {
			t.Errorf("partition %d ends at %d, want 1", i, end.Offset)
		}
	}
}

// TestReport04Switch: what a topic held before it was compacted stays readable,
// and the rule follows the setting, across a restart too.
func TestReport04Switch(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, "", "topic", "create", "u")
	var want []plain
	write := func(w *wire, refused bool) {
		t.Helper()
		for _, codec := range allCodecs {
			records := mixes(nulls...)
			got := w.produce(13, w.topic("t"), 0, batchOf(t, codec, records...))
			switch {
			case refused:
				wantRefusedRecord(t, "switched, "+codec.String(), 13, got, 0)
			case got.ErrorCode != 0:
				t.Errorf("%s: %s", codec, errorName(got.ErrorCode))
			default:
				want = append(want, plainRecords(got.BaseOffset, records)...)
			}
		}
	}
	write(s.dial(t), false)
	s.setConfig(t, "t", "cleanup.policy", "compact")
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		write(w, true)
		s.wantRecords(t, "t", want)
		if got := w.produce(13, w.topic("u"), 0, batchOf(t, 0, mixes(nil)...)); got.ErrorCode != 0 {
			t.Errorf("the topic beside it: %s", errorName(got.ErrorCode))
		}
		s.setConfig(t, "t", "cleanup.policy", "delete")
		write(w, false)
		s.setConfig(t, "t", "cleanup.policy", "compact,delete")
		write(w, true)
		s.wantRecords(t, "t", want)
	})
}
