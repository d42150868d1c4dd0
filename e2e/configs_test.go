package e2e

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// obeyed is a topic of its own, with some settings, and what holds for it.
type obeyed struct {
	w     *wire
	topic kmsg.MetadataResponseTopic
}

// wants produces a batch and wants an outcome.
func (o *obeyed) wants(t *testing.T, b []byte, want string) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	p := o.w.produce(13, o.topic, 0, b)
	if got := errorName(p.ErrorCode); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	return p
}

// stored is what is kept of the topic.
func (o *obeyed) stored(t *testing.T) ([]batch.Header, [][]byte) {
	t.Helper()
	return batchesIn(t, o.w.fetchTopics(13, o.topic)[0])
}

// at is a record of some time from now.
func at(d time.Duration) batch.Record {
	return batch.Record{Timestamp: time.Now().Add(d).UnixMilli(), Value: []byte("v")}
}

// level wants a batch to become smaller at a higher level.
func level(codec, low, high string) func(*testing.T, *server, func(*testing.T, ...string) *obeyed) {
	return func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		text := batchOf(t, batch.None, value(string(varied(t, 500<<10)[:500<<10])))
		var sizes []int
		for _, l := range []string{low, high} {
			o := topic(t, "compression.type="+codec, "compression."+codec+".level="+l)
			o.wants(t, text, "")
			headers, stored := o.stored(t)
			if len(headers) != 1 || headers[0].Attributes.Codec().String() != codec {
				t.Fatalf("level %s: %+v", l, headers)
			}
			sizes = append(sizes, len(stored[0]))
		}
		if sizes[1] >= sizes[0] {
			t.Errorf("level %s makes %d bytes, level %s %d", low, sizes[0], high, sizes[1])
		}
	}
}

// obeyedConfigs has each topic config that docs/compatibility.md says is obeyed.
var obeyedConfigs = map[string]func(t *testing.T, s *server, topic func(*testing.T, ...string) *obeyed){
	"compression.type": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		for _, own := range []string{"uncompressed", "gzip", "snappy", "lz4", "zstd"} {
			o := topic(t, "compression.type="+own)
			for _, codec := range allCodecs {
				o.wants(t, batchOf(t, codec, value("v"), value("w")), "")
			}
			headers, _ := o.stored(t)
			if len(headers) != len(allCodecs) {
				t.Fatalf("%d batches", len(headers))
			}
			for _, h := range headers {
				if got := h.Attributes.Codec().String(); got != own && own+got != "uncompressednone" {
					t.Errorf("%s is stored in %s", own, got)
				}
			}
		}
	},
	"compression.gzip.level": level("gzip", "1", "9"),
	"compression.lz4.level":  level("lz4", "9", "17"), // 9 is the fast one, as in Java
	"compression.zstd.level": level("zstd", "1", "19"),
	"max.message.bytes": func(t *testing.T, s *server, topic func(*testing.T, ...string) *obeyed) {
		o := topic(t, "max.message.bytes=1000")
		large := batchOf(t, batch.None, value(strings.Repeat("x", 1000)))
		o.wants(t, large, "MESSAGE_TOO_LARGE")
		o.wants(t, batchOf(t, batch.Gzip, value(strings.Repeat("x", 1000))), "") // as it is stored
		s.setConfig(t, *o.topic.Topic, "max.message.bytes", "2000")
		o.wants(t, large, "")
	},
	"max.decompressed.message.bytes": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		o := topic(t, "max.decompressed.message.bytes=1000")
		o.wants(t, batchOf(t, batch.Zstd, value(strings.Repeat("x", 2000))), "INVALID_RECORD")
		o.wants(t, batchOf(t, batch.Zstd, value(strings.Repeat("x", 800)), value(strings.Repeat("x", 800))), "")
		o.wants(t, batchOf(t, batch.None, value(strings.Repeat("x", 2000))), "")
	},
	"message.timestamp.type": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		o := topic(t, "message.timestamp.type=LogAppendTime")
		p := o.wants(t, batchOf(t, batch.None, at(-24*time.Hour)), "")
		headers, _ := o.stored(t)
		if age := time.Since(time.UnixMilli(p.LogAppendTime)); age > time.Hour || len(headers) != 1 ||
			!headers[0].Attributes.LogAppendTime() || headers[0].MaxTimestamp != p.LogAppendTime {
			t.Errorf("appended %v ago: %+v", age, headers)
		}
		o = topic(t, "message.timestamp.type=CreateTime")
		if p := o.wants(t, batchOf(t, batch.None, at(-24*time.Hour)), ""); p.LogAppendTime != -1 {
			t.Errorf("CreateTime, and append time %d", p.LogAppendTime)
		}
	},
	"message.timestamp.before.max.ms": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		o := topic(t, "message.timestamp.before.max.ms=3600000")
		o.wants(t, batchOf(t, batch.None, at(-2*time.Hour)), "INVALID_TIMESTAMP")
		o.wants(t, batchOf(t, batch.None, at(-30*time.Minute)), "")
	},
	"message.timestamp.after.max.ms": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		topic(t).wants(t, batchOf(t, batch.None, at(2*time.Hour)), "INVALID_TIMESTAMP") // an hour by default
		o := topic(t, "message.timestamp.after.max.ms=10800000")
		o.wants(t, batchOf(t, batch.None, at(2*time.Hour)), "")
		o.wants(t, batchOf(t, batch.None, at(4*time.Hour)), "INVALID_TIMESTAMP")
	},
	"min.insync.replicas": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		topic(t, "min.insync.replicas=5").wants(t, batchOf(t, batch.None, value("v")), "") // by the flush
	},
	"siltstone.durability": func(t *testing.T, s *server, topic func(*testing.T, ...string) *obeyed) {
		o := topic(t, "siltstone.durability=object")
		before := countObjects(t, s.dir)
		o.wants(t, batchOf(t, batch.None, value("v")), "")
		if countObjects(t, s.dir) == before {
			t.Error("acknowledged, and there is no object more")
		}
	},
	"siltstone.validation": func(t *testing.T, _ *server, topic func(*testing.T, ...string) *obeyed) {
		wrong := batchOf(t, batch.None, value("v"))
		wrong[26], wrong[60] = 1, 2 // says that it has two records
		binary.BigEndian.PutUint32(wrong[17:], crc32.Checksum(wrong[21:], crc32.MakeTable(crc32.Castagnoli)))
		topic(t, "siltstone.validation=header").wants(t, wrong, "")
		topic(t, "siltstone.validation=records").wants(t, wrong, "INVALID_RECORD")
	},
	"unclean.leader.election.enable": func(t *testing.T, s *server, topic func(*testing.T, ...string) *obeyed) {
		_, stderr, code := run(t, "", "topic", "create", "risky", "-c", "unclean.leader.election.enable=false", "--kafka", s.kafka)
		oneClearLine(t, "not for a replicated topic", stderr, code, "siltstone.durability=object")
		topic(t, "unclean.leader.election.enable=false", "siltstone.durability=object")
	},
}

// TestObeyedConfigs: what the page says is obeyed is, from the command line to
// what is stored.
func TestObeyedConfigs(t *testing.T) {
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "### Obeyed\n")
	rows, _, _ := strings.Cut(rest, "###")
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "first")
	s.cli(t, "v\n", "produce", "first")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` ").FindAllStringSubmatch(rows, -1) {
		name := row[1]
		t.Run(name, func(t *testing.T) {
			made := 0
			holds := obeyedConfigs[name]
			if holds == nil {
				t.Fatal("the page says that it is obeyed, and nothing here shows it")
			}
			holds(t, s, func(t *testing.T, configs ...string) *obeyed {
				t.Helper()
				made++
				args := []string{"topic", "create", name + "-" + strings.Repeat("i", made)}
				for _, c := range configs {
					args = append(args, "-c", c)
				}
				s.cli(t, "", args...)
				w := s.dial(t)
				return &obeyed{w, w.topic(args[2])}
			})
		})
	}
}
