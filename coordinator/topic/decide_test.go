package topic

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// world is a fold that decisions are appended to.
type world struct {
	t   *testing.T
	s   *State
	seq coordinator.Seq
	ids byte
}

func newWorld(t *testing.T, names ...string) *world {
	w := &world{t: t, s: New()}
	for _, n := range names {
		if err := w.create(NewTopic{Name: n, Partitions: 2, Replication: -1}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// append folds what was decided, which must not be void.
func (w *world) append(d Decision) Change {
	w.t.Helper()
	if len(d.Body) == 0 {
		return Change{}
	}
	w.seq++
	c, err := w.s.Apply(ledger.Entry{Seq: w.seq, Kind: d.Kind, Body: d.Body})
	if err != nil || c.Void != "" {
		w.t.Fatalf("decided, and void: %s, %v", c.Void, err)
	}
	return c
}

func (w *world) create(n NewTopic) error {
	if n.ID == (siltstone.TopicID{}) {
		w.ids++
		n.ID = siltstone.TopicID{w.ids}
	}
	d, errs := Create(w.s.View(), []NewTopic{n})
	w.append(d)
	return errs[0]
}

func (w *world) alter(name string, ops ...ConfigOp) error {
	d, errs := AlterConfigs(w.s.View(), []Alteration{{Topic: name, Ops: ops}})
	w.append(d)
	return errs[0]
}

func (w *world) topic(name string) *Topic {
	w.t.Helper()
	got, ok := w.s.View().Topic(name)
	if !ok {
		w.t.Fatalf("no topic %s", name)
	}
	return got
}

func (w *world) want(err, target error, words string) {
	w.t.Helper()
	if !errors.Is(err, target) || !strings.Contains(err.Error(), words) {
		w.t.Errorf("error is %v, want %v with %q", err, target, words)
	}
}

func set(pairs ...string) []Setting {
	var all []Setting
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, Setting{pairs[i], &pairs[i+1]})
	}
	return all
}

func op(name string, o Op, value string) ConfigOp { return ConfigOp{name, o, &value} }

func TestCreate(t *testing.T) {
	w := newWorld(t)
	n := NewTopic{Name: "logs", ID: siltstone.TopicID{9}, Partitions: 3, Replication: 3, CreatedMS: 77,
		Configs: set("retention.ms", "1", "retention.ms", " 60000 ", "cleanup.policy", "compact")}
	d, errs := Create(w.s.View(), []NewTopic{n})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	c := w.append(d)
	want := &Topic{ID: siltstone.TopicID{9}, Number: 1, Name: "logs", Partitions: 3, CreatedMS: 77,
		Configs: map[string]string{"retention.ms": "60000", "cleanup.policy": "compact"}}
	got := w.topic("logs")
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "config" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if len(c.Created) != 1 || c.Created[0] != got {
		t.Errorf("created %+v", c.Created)
	}
	if cfg := got.Config(); !cfg.Compact || cfg.Delete || cfg.RetentionMS != 60000 {
		t.Errorf("in force: %+v", cfg)
	}
	if byID, ok := w.s.View().TopicByID(siltstone.TopicID{9}); !ok || byID != got {
		t.Error("not found by its id")
	}
	if err := w.create(NewTopic{Name: "more", Partitions: -1, Replication: -1}); err != nil || w.topic("more").Partitions != 1 || w.topic("more").Number != 2 {
		t.Errorf("%v, %+v", err, w.topic("more"))
	}
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t, "a.b", "plain")
	ok := func(name string) NewTopic { return NewTopic{Name: name, Partitions: 1, Replication: 1} }
	for _, name := range []string{"", ".", "..", strings.Repeat("x", 250), "naïve", "a b", "a/b", "a\x00"} {
		w.want(w.create(ok(name)), ErrInvalidName, "")
	}
	for _, name := range []string{strings.Repeat("x", 249), "...", "A-Z_0.9"} {
		if err := w.create(ok(name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata", "__consumer.offsets"} {
		w.want(w.create(ok(name)), ErrInvalidName, name+" is reserved")
	}
	for _, name := range []string{"__consumer_offsets2", "_consumer_offsets", "__Consumer_offsets"} {
		if err := w.create(ok(name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	w.want(w.create(ok("plain")), ErrExists, "plain")
	w.want(w.create(ok("a.b")), ErrExists, "a.b")
	w.want(w.create(ok("a_b")), ErrInvalidName, "the topic a.b")
	for _, n := range []int32{0, -2, -1 << 31} {
		w.want(w.create(NewTopic{Name: "p", Partitions: n, Replication: 1}), ErrInvalidPartitions, fmt.Sprint(n))
	}
	w.want(w.create(NewTopic{Name: "p", Partitions: MaxNewPartitions + 1, Replication: 1}), ErrTooMany, "")
	for _, n := range []int16{0, -2, 4} {
		w.want(w.create(NewTopic{Name: "p", Partitions: 1, Replication: n}), ErrInvalidReplication, fmt.Sprint(n))
	}
	conf := func(s ...Setting) error {
		return w.create(NewTopic{Name: "p", Partitions: 1, Replication: 1, Configs: s})
	}
	w.want(conf(Setting{"retention.ms", nil}), ErrInvalidConfig, "retention.ms: a null value")
	w.want(conf(set("retention.ms", "soon")...), ErrInvalidConfig, "retention.ms")
	w.want(conf(set("nosuch", "1")...), ErrInvalidConfig, "nosuch")
	w.want(conf(set("min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5")...), ErrInvalidConfig, "10 is above max.compaction.lag.ms, 5")
	w.want(conf(set("unclean.leader.election.enable", "false")...), ErrInvalidConfig, "siltstone.durability=object")
	if err := conf(set("unclean.leader.election.enable", "false", "siltstone.durability", "object")...); err != nil {
		t.Error(err)
	}
	w.want(w.create(NewTopic{Name: "q", ID: w.topic("p").ID, Partitions: 1, Replication: 1}), ErrInvalidRequest, "taken")
	_, errs := Create(w.s.View(), []NewTopic{{Name: "q", Partitions: 1, Replication: 1}})
	w.want(errs[0], ErrInvalidRequest, "topic id")
}

func TestCreateSeveral(t *testing.T) {
	w := newWorld(t, "old")
	id := byte(100)
	topic := func(name string, partitions int32) NewTopic {
		id++
		return NewTopic{Name: name, ID: siltstone.TopicID{id}, Partitions: partitions, Replication: -1}
	}
	d, errs := Create(w.s.View(), []NewTopic{
		topic("x.y", 1), topic("old", 1), topic("x_y", 1), topic("twin", 1), topic("twin", 1),
		topic("large", 9000), topic("larger", 1000), topic("small", 999),
	})
	w.append(d)
	want := []error{nil, ErrExists, ErrInvalidName, ErrInvalidRequest, ErrInvalidRequest, nil, ErrTooMany, nil}
	for i, target := range want {
		if !errors.Is(errs[i], target) {
			t.Errorf("topic %d: %v, want %v", i, errs[i], target)
		}
	}
	if v := w.s.View(); v.Len() != 4 {
		t.Errorf("%d topics", v.Len())
	}
	d, _ = Create(w.s.View(), []NewTopic{topic("old", 1)})
	if d.Body != nil {
		t.Error("nothing to append, and a body")
	}
}

func TestDecisionsFitAnEntry(t *testing.T) {
	w := newWorld(t)
	topics := make([]NewTopic, 3000)
	for i := range topics {
		topics[i] = NewTopic{Name: fmt.Sprintf("%0240d", i), ID: siltstone.TopicID{1, byte(i >> 8), byte(i)}, Partitions: 1, Replication: 1}
	}
	d, errs := Create(w.s.View(), topics)
	if len(d.Body) > ledger.MaxBodyBytes {
		t.Fatalf("a body of %d bytes", len(d.Body))
	}
	w.append(d)
	refused := 0
	for _, err := range errs {
		if err != nil {
			w.want(err, ErrTooMany, "fewer topics")
			refused++
		}
	}
	if refused == 0 || w.s.View().Len() != len(topics)-refused {
		t.Errorf("%d refused, %d made", refused, w.s.View().Len())
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t, "a", "b.c", "d")
	a, b := w.topic("a"), w.topic("b.c")
	before := w.s.View()
	d, errs := Delete(before, []siltstone.TopicID{a.ID, {77}, b.ID, a.ID})
	c := w.append(d)
	if errs[0] != nil || errs[2] != nil {
		t.Error(errs)
	}
	w.want(errs[1], ErrUnknown, "")
	w.want(errs[3], ErrInvalidRequest, "twice")
	if len(c.Deleted) != 2 || c.Deleted[0] != a || w.s.View().Len() != 1 {
		t.Errorf("deleted %+v", c.Deleted)
	}
	if _, ok := w.s.View().TopicByID(a.ID); ok {
		t.Error("a deleted topic is found by its id")
	}
	if _, ok := w.s.View().TopicByNumber(a.Number); ok {
		t.Error("a deleted topic is found by its number")
	}
	if got, ok := before.TopicByNumber(a.Number); !ok || got != a {
		t.Error("an old view has lost a number")
	}
	if err := w.create(NewTopic{Name: "b_c", Partitions: 1, Replication: 1}); err != nil || w.topic("b_c").Number != 4 {
		t.Errorf("a name is free again, with a new number: %v", err)
	}
	if got, ok := before.Topic("b.c"); !ok || got != b || before.Len() != 3 {
		t.Error("an old view has changed")
	}
}

func TestAddPartitions(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	before := w.topic("a")
	d, errs := AddPartitions(w.s.View(), []NewPartitions{{"a", 5}, {"b", 2}, {"b", 1}, {"nosuch", 9}, {"a", 6}, {"c", MaxNewPartitions}, {"b", 3}})
	c := w.append(d)
	for i, target := range []error{nil, ErrInvalidPartitions, ErrInvalidPartitions, ErrUnknown, ErrInvalidRequest, ErrTooMany, nil} {
		if !errors.Is(errs[i], target) {
			t.Errorf("topic %d: %v, want %v", i, errs[i], target)
		}
	}
	if w.topic("a").Partitions != 5 || w.topic("b").Partitions != 3 || w.topic("c").Partitions != 2 || before.Partitions != 2 {
		t.Error("wrong numbers of partitions")
	}
	if len(c.Changed) != 2 || c.Changed[0] != w.topic("a") || c.Changed[0].Number != before.Number || c.Changed[0].Config() == nil {
		t.Errorf("changed %+v", c.Changed)
	}
}

func TestAlterConfigs(t *testing.T) {
	w := newWorld(t, "a")
	must := func(ops ...ConfigOp) {
		t.Helper()
		if err := w.alter("a", ops...); err != nil {
			t.Error(err)
		}
	}
	want := func(configs map[string]string) {
		t.Helper()
		if d := cmp.Diff(configs, w.topic("a").Configs); d != "" {
			t.Error(d)
		}
	}
	must(op("retention.ms", Set, " 7 "), op("cleanup.policy", Append, "compact, compact"))
	want(map[string]string{"retention.ms": "7", "cleanup.policy": "delete,compact"})
	must(op("cleanup.policy", Subtract, "delete"), ConfigOp{"retention.ms", Unset, nil})
	want(map[string]string{"cleanup.policy": "compact"})
	if c := w.topic("a").Config(); !c.Compact || c.Delete || c.RetentionMS != 604800000 {
		t.Errorf("in force: %+v", c)
	}
	must(op("cleanup.policy", Subtract, "compact,delete"))
	want(map[string]string{"cleanup.policy": ""})

	w.want(w.alter("nosuch"), ErrUnknown, "nosuch")
	for _, c := range []struct {
		target error
		words  string
		ops    []ConfigOp
	}{
		{ErrInvalidConfig, "nosuch", []ConfigOp{op("retention.ms", Set, "8"), op("nosuch", Set, "1")}},
		{ErrInvalidConfig, "nosuch", []ConfigOp{{"nosuch", Unset, nil}}},
		{ErrInvalidConfig, "only a list", []ConfigOp{op("retention.ms", Append, "1")}},
		{ErrInvalidConfig, "none of", []ConfigOp{op("cleanup.policy", Append, "shred")}},
		{ErrInvalidConfig, "empty", []ConfigOp{op("cleanup.policy", Subtract, "a,,b")}},
		{ErrInvalidConfig, "above", []ConfigOp{op("min.compaction.lag.ms", Set, "9"), op("max.compaction.lag.ms", Set, "8")}},
		{ErrInvalidConfig, "object", []ConfigOp{op("unclean.leader.election.enable", Set, "false")}},
		{ErrInvalidRequest, "null", []ConfigOp{{"retention.ms", Set, nil}}},
		{ErrInvalidRequest, "null", []ConfigOp{{"cleanup.policy", Append, nil}}},
		{ErrInvalidRequest, "twice", []ConfigOp{op("retention.ms", Set, "8"), {"retention.ms", Unset, nil}}},
		{ErrInvalidRequest, "operation 4", []ConfigOp{op("cleanup.policy", 4, "delete")}},
	} {
		w.want(w.alter("a", c.ops...), c.target, c.words)
	}
	want(map[string]string{"cleanup.policy": ""}) // nothing of what was refused

	d, errs := AlterConfigs(w.s.View(), []Alteration{{Topic: "a"}})
	if errs[0] != nil || d.Body != nil {
		t.Errorf("nothing to change: %v, %v", d, errs)
	}
	_, errs = AlterConfigs(w.s.View(), []Alteration{{Topic: "a"}, {Topic: "a"}})
	w.want(errs[0], ErrInvalidRequest, "twice")
}

// TestReplaceConfigs: what is not named goes back to its default, and nothing
// does where anything is refused.
func TestReplaceConfigs(t *testing.T) {
	w := newWorld(t, "a", "b")
	for _, name := range []string{"a", "b"} {
		if err := w.alter(name, op("retention.ms", Set, "7"), op("min.compaction.lag.ms", Set, "10")); err != nil {
			t.Fatal(err)
		}
	}
	d, errs := AlterConfigs(w.s.View(), []Alteration{
		{"a", []ConfigOp{op("cleanup.policy", Set, "compact"), op("max.compaction.lag.ms", Set, "9")}, true},
		{"b", []ConfigOp{op("retention.ms", Set, "8"), op("nosuch", Set, "1")}, true},
	})
	w.append(d)
	w.want(errs[1], ErrInvalidConfig, "nosuch")
	if d := cmp.Diff(map[string]string{"cleanup.policy": "compact", "max.compaction.lag.ms": "9"}, w.topic("a").Configs); errs[0] != nil || d != "" {
		t.Errorf("%v\n%s", errs[0], d)
	}
	if d := cmp.Diff(map[string]string{"retention.ms": "7", "min.compaction.lag.ms": "10"}, w.topic("b").Configs); d != "" {
		t.Error(d)
	}
	d, errs = AlterConfigs(w.s.View(), []Alteration{{"a", nil, true}})
	if w.append(d); errs[0] != nil || len(w.topic("a").Configs) != 0 {
		t.Errorf("%v, %v", errs[0], w.topic("a").Configs)
	}
	for _, ops := range [][]ConfigOp{{op("num.partitions", Set, "4"), op("log.retention.ms", Set, "5")}, {op("num.partitions", Set, "6")}} {
		d, err := ReplaceCluster(w.s.View(), ops)
		if w.append(d); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[string]string{"num.partitions": "6"}, w.s.View().Settings()); d != "" {
		t.Error(d)
	}
	_, err := ReplaceCluster(w.s.View(), []ConfigOp{op("num.partitions", Set, "none")})
	w.want(err, ErrInvalidConfig, "num.partitions")
}

func TestAlterCluster(t *testing.T) {
	w := newWorld(t, "plain", "own")
	if err := w.alter("own", op("retention.ms", Set, "5")); err != nil {
		t.Fatal(err)
	}
	old := w.s.View()
	d, err := AlterCluster(old, []ConfigOp{op("log.retention.ms", Set, "9"), op("num.partitions", Set, "4"), op("compression.type", Set, "zstd")})
	if err != nil {
		t.Fatal(err)
	}
	if c := w.append(d); !c.Settings {
		t.Errorf("change is %+v", c)
	}
	plain, own := w.topic("plain").Config(), w.topic("own").Config()
	if plain.RetentionMS != 9 || own.RetentionMS != 5 || plain.AsProduced || own.Codec != batch.Zstd {
		t.Errorf("in force: %+v, %+v", plain, own)
	}
	if v := w.s.View(); v.Cluster().NumPartitions != 4 || old.Cluster().NumPartitions != 1 {
		t.Error("num.partitions")
	}
	if was, _ := old.Topic("plain"); was.Config().RetentionMS == 9 {
		t.Error("an old view has changed")
	}
	if err := w.create(NewTopic{Name: "late", Partitions: -1, Replication: 1}); err != nil || w.topic("late").Partitions != 4 || w.topic("late").Config().RetentionMS != 9 {
		t.Error("the cluster's defaults do not reach a new topic", err)
	}
	for _, c := range []struct {
		words string
		ops   []ConfigOp
	}{
		{"half of", []ConfigOp{op("siltstone.flush.late.ms", Set, "30001")}},
		{"half of", []ConfigOp{op("siltstone.unclean.grace.ms", Set, "19999")}},
		{"above group.max", []ConfigOp{op("group.min.session.timeout.ms", Set, "1800001")}},
		{"above group.max", []ConfigOp{op("group.max.session.timeout.ms", Set, "5999")}},
		{"less than 1", []ConfigOp{op("group.max.size", Set, "0")}},
		{"above", []ConfigOp{op("log.cleaner.min.compaction.lag.ms", Set, "9"), op("log.cleaner.max.compaction.lag.ms", Set, "8")}},
		{"between 1 and 3", []ConfigOp{op("siltstone.replicas", Set, "4")}},
		{"no such", []ConfigOp{op("retention.ms", Set, "1")}}, // a topic's name for it
		{"no such", []ConfigOp{op("log.retention.hours", Set, "1")}},
	} {
		_, err := AlterCluster(w.s.View(), c.ops)
		w.want(err, ErrInvalidConfig, c.words)
	}
	if d, err := AlterCluster(w.s.View(), []ConfigOp{op("num.partitions", Set, "4")}); err != nil || d.Body != nil {
		t.Errorf("nothing to change: %v, %v", d, err)
	}
}

func TestDescribe(t *testing.T) {
	w := newWorld(t, "a")
	d, err := AlterCluster(w.s.View(), []ConfigOp{op("log.retention.ms", Set, "9"), op("message.max.bytes", Set, "2000")})
	if err != nil {
		t.Fatal(err)
	}
	w.append(d)
	if err := w.alter("a", op("retention.ms", Set, "5")); err != nil {
		t.Fatal(err)
	}
	entries := map[string]ConfigEntry{}
	last := ""
	for _, e := range Describe(w.s.View(), w.topic("a")) {
		if e.Name <= last || e.Type == 0 || e.Doc == "" || e.Sensitive {
			t.Errorf("entry %+v after %s", e, last)
		}
		entries[e.Name], last = e, e.Name
		if e.Synonyms[0].Value != e.Value || e.Synonyms[0].Source != e.Source {
			t.Errorf("%s: the first synonym is not in force: %+v", e.Name, e)
		}
	}
	if len(entries) != len(topicSettings) {
		t.Errorf("%d entries of %d", len(entries), len(topicSettings))
	}
	want := []Synonym{{"retention.ms", "5", SourceTopic}, {"log.retention.ms", "9", SourceCluster}, {"log.retention.ms", "604800000", SourceDefault}}
	if d := cmp.Diff(want, entries["retention.ms"].Synonyms); d != "" {
		t.Error(d)
	}
	if e := entries["max.message.bytes"]; e.Value != "2000" || e.Source != SourceCluster || e.ReadOnly || e.Type != TypeInt {
		t.Errorf("%+v", e)
	}
	if e := entries["remote.storage.enable"]; e.Value != "false" || e.Source != SourceDefault || !e.ReadOnly || e.Type != TypeBool {
		t.Errorf("%+v", e)
	}
	found := 0
	for _, e := range DescribeCluster(w.s.View()) {
		switch e.Name {
		case "message.max.bytes":
			found++
			if e.Value != "2000" || e.Source != SourceCluster || len(e.Synonyms) != 2 {
				t.Errorf("%+v", e)
			}
		case "siltstone.replicas":
			found++
			if e.Value != "2" || e.Source != SourceDefault {
				t.Errorf("%+v", e)
			}
		}
	}
	if found != 2 {
		t.Error("settings of the cluster are missing")
	}
}

func TestConfigInForce(t *testing.T) {
	got := resolve(nil, nil)
	want := &Config{
		MaxMessageBytes: 1048588,
		AsProduced:      true, GzipLevel: -1, LZ4Level: 9, ZstdLevel: 3,
		TimestampBeforeMaxMS: 1<<63 - 1, TimestampAfterMaxMS: 3600000,
		MinISR: 1, Delete: true, RetentionMS: 604800000, RetentionBytes: -1,
		DeleteRetentionMS: 86400000, MaxCompactionLagMS: 1<<63 - 1, MinDirtyRatio: 0.5,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = resolve(map[string]string{
		"max.message.bytes": "1", "max.decompressed.message.bytes": "2", "compression.type": "lz4",
		"compression.gzip.level": "3", "compression.lz4.level": "4", "compression.zstd.level": "5",
		"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": "6", "message.timestamp.after.max.ms": "7",
		"min.insync.replicas": "8", "siltstone.durability": "object", "siltstone.validation": "header",
		"cleanup.policy": "compact", "retention.ms": "9", "retention.bytes": "10", "delete.retention.ms": "11",
		"min.compaction.lag.ms": "12", "max.compaction.lag.ms": "13", "min.cleanable.dirty.ratio": "0.25",
	}, nil)
	want = &Config{
		MaxMessageBytes: 1, MaxRecordBytes: 2, Codec: batch.LZ4, GzipLevel: 3, LZ4Level: 4, ZstdLevel: 5,
		AppendTime: true, TimestampBeforeMaxMS: 6, TimestampAfterMaxMS: 7,
		MinISR: 8, Durability: Object, Validation: HeaderOnly,
		Compact: true, RetentionMS: 9, RetentionBytes: 10, DeleteRetentionMS: 11,
		MinCompactionLagMS: 12, MaxCompactionLagMS: 13, MinDirtyRatio: 0.25,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, codec := range map[string]batch.Codec{"uncompressed": batch.None, "gzip": batch.Gzip, "snappy": batch.Snappy, "zstd": batch.Zstd} {
		if c := resolve(map[string]string{"compression.type": name}, nil); c.AsProduced || c.Codec != codec {
			t.Errorf("%s: %+v", name, c)
		}
	}
	// What no release could have decided counts as not set.
	if c := resolve(map[string]string{"max.message.bytes": "many", "nosuch": "1"}, map[string]string{"message.max.bytes": "-4"}); c.MaxMessageBytes != 1048588 {
		t.Errorf("%+v", c)
	}
	gotCluster := resolveCluster(nil)
	wantCluster := &Cluster{
		Replicas: 2, LeaseMS: 6000, UncleanGraceMS: 60000, FlushLateMS: 10000, ReplicaLagMS: 500, NumPartitions: 1, AutoCreateTopics: true,
		ProducerIDExpirationMS: 86400000, GroupInitialDelayMS: 3000, GroupMinSessionMS: 6000, GroupMaxSessionMS: 1800000, GroupMaxMembers: 1<<31 - 1,
		OffsetMetadataMaxBytes: 4096, OffsetsRetentionMS: 7 * 86400000, OffsetsRetentionCheckMS: 600000,
	}
	if d := cmp.Diff(wantCluster, gotCluster); d != "" {
		t.Error(d)
	}
	gotCluster = resolveCluster(map[string]string{
		"siltstone.replicas": "3", "siltstone.lease.ms": "5000", "siltstone.unclean.grace.ms": "6",
		"siltstone.flush.late.ms": "3", "replica.lag.time.max.ms": "7", "num.partitions": "8", "auto.create.topics.enable": "false",
		"producer.id.expiration.ms": "9", "group.initial.rebalance.delay.ms": "10", "group.min.session.timeout.ms": "11",
		"group.max.session.timeout.ms": "12", "group.max.size": "13", "offset.metadata.max.bytes": "14",
		"offsets.retention.minutes": "15", "offsets.retention.check.interval.ms": "16",
	})
	wantCluster = &Cluster{
		Replicas: 3, LeaseMS: 5000, UncleanGraceMS: 6, FlushLateMS: 3, ReplicaLagMS: 7, NumPartitions: 8,
		ProducerIDExpirationMS: 9, GroupInitialDelayMS: 10, GroupMinSessionMS: 11, GroupMaxSessionMS: 12, GroupMaxMembers: 13,
		OffsetMetadataMaxBytes: 14, OffsetsRetentionMS: 15 * 60000, OffsetsRetentionCheckMS: 16,
	}
	if d := cmp.Diff(wantCluster, gotCluster); d != "" {
		t.Error(d)
	}
}
