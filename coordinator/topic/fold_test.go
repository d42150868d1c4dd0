package topic

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

var _ ledger.Fold[Change] = (*State)(nil)

func entry(b Body) ledger.Entry { return ledger.Entry{Seq: 1, Kind: b.Kind(), Body: b.Encode()} }

func TestVoid(t *testing.T) {
	s := New()
	a, b, c := siltstone.TopicID{1}, siltstone.TopicID{2}, siltstone.TopicID{3}
	if c, err := s.Apply(entry(&CreateTopics{[]Created{{ID: a, Name: "a.a", Partitions: 2}, {ID: b, Name: "b", Partitions: 1}}})); err != nil || c.Void != "" {
		t.Fatal(err, c.Void)
	}
	if c, err := s.Apply(entry(&TakenIDs{0, 1000})); err != nil || c.Void != "" {
		t.Fatal(err, c.Void)
	}
	before, view := foldtest.Rows(s), s.View()
	create := func(topics ...Created) Body { return &CreateTopics{topics} }
	fine := Created{ID: c, Name: "c", Partitions: 1}
	for why, body := range map[string]Body{
		"is there":               create(fine, Created{ID: siltstone.TopicID{4}, Name: "a_a", Partitions: 1}),
		"collides":               create(fine, Created{ID: siltstone.TopicID{4}, Name: "c", Partitions: 1}),
		"id":                     create(fine, Created{ID: a, Name: "d", Partitions: 1}),
		"taken":                  create(fine, Created{ID: c, Name: "d", Partitions: 1}),
		" is taken":              create(fine, Created{Name: "d", Partitions: 1}),
		"without a partition":    create(fine, Created{ID: siltstone.TopicID{4}, Name: "d"}),
		"invalid topic name":     create(fine, Created{ID: siltstone.TopicID{4}, Name: "d d", Partitions: 1}),
		"unknown":                &DeleteTopics{[]siltstone.TopicID{a, c}},
		"named twice":            &DeleteTopics{[]siltstone.TopicID{a, a}},
		"are no more":            &AddedPartitions{[]Grown{{b, 2}, {a, 2}}},
		"unknown, or named":      &AddedPartitions{[]Grown{{a, 3}, {c, 3}}},
		"the next is 1000":       &TakenIDs{0, 1000},
		"the next is 100":        &TakenIDs{1001, 1000},
		"0 producer ids":         &TakenIDs{1000, 0},
		"from 1000 on":           &TakenIDs{1000, math.MaxInt64 - 999},
		"unknown, or named twic": &SetConfigs{[]Configured{{a, map[string]string{"x": "y"}}, {c, nil}}},
	} {
		c, err := s.Apply(entry(body))
		if err != nil || !strings.Contains(c.Void, why) {
			t.Errorf("%T %+v: void for %q, %v; want %q", body, body, c.Void, err, why)
		}
		if c.Created != nil || c.Deleted != nil || c.Changed != nil || c.Settings || !bytes.Equal(before, foldtest.Rows(s)) || s.View() != view {
			t.Errorf("%T %+v is void, and changed something", body, body)
		}
	}
	for _, kind := range []byte{0, KindProducerIDs + 1, 16, 255} {
		if _, err := s.Apply(ledger.Entry{Kind: kind}); !errors.Is(err, siltstone.ErrNewerFormat) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	if c, err := s.Apply(ledger.Entry{Kind: KindDelete, Body: []byte{1}}); err != nil || c.Void == "" {
		t.Errorf("a broken body: %+v, %v", c, err)
	}
}

func TestViews(t *testing.T) {
	w := newWorld(t, "b", "a", "c.c")
	v := w.s.View()
	if w.s.View() != v {
		t.Error("two views of the same state")
	}
	names := func(v *View) string {
		var all []string
		for _, t := range v.All() {
			all = append(all, t.Name)
		}
		return strings.Join(all, " ")
	}
	if got := names(v); got != "a b c.c" {
		t.Errorf("all are %s", got)
	}
	if _, ok := v.Topic("c_c"); ok {
		t.Error("found by another name")
	}
	if err := w.create(NewTopic{Name: "ab", Partitions: 1, Replication: 1}); err != nil {
		t.Fatal(err)
	}
	if got := names(w.s.View()); got != "a ab b c.c" || names(v) != "a b c.c" || v.Len() != 3 {
		t.Errorf("all are %s, were %s", got, names(v))
	}
	if _, ok := v.Topic("ab"); ok {
		t.Error("an old view knows a new topic")
	}
}

// drawDecision draws what somebody decides in a small world.
func drawDecision(t *rapid.T, v *View, ids *byte) Decision {
	name := rapid.SampledFrom([]string{"a", "b", "c.d", "c_d", "e", "bad name"})
	known := func() siltstone.TopicID {
		if all := v.All(); len(all) > 0 {
			return rapid.SampledFrom(all).Draw(t, "known").ID
		}
		return siltstone.TopicID{}
	}
	value := rapid.SampledFrom([]string{"1", "5", "compact", "delete", "zstd", "object"})
	setting := rapid.SampledFrom([]string{"retention.ms", "cleanup.policy", "compression.type", "siltstone.durability", "num.partitions", "log.retention.ms"})
	operation := func() ConfigOp {
		s := value.Draw(t, "value")
		return ConfigOp{setting.Draw(t, "setting"), Op(rapid.IntRange(0, 3).Draw(t, "op")), &s}
	}
	switch rapid.IntRange(0, 6).Draw(t, "decision") {
	case 0, 1:
		*ids++
		n := NewTopic{Name: name.Draw(t, "name"), ID: siltstone.TopicID{*ids}, Partitions: rapid.Int32Range(-1, 4).Draw(t, "partitions"), Replication: 1}
		s := value.Draw(t, "value")
		n.Configs = []Setting{{setting.Draw(t, "setting"), &s}}[:rapid.IntRange(0, 1).Draw(t, "configs")]
		d, _ := Create(v, []NewTopic{n})
		return d
	case 2:
		d, _ := Delete(v, []siltstone.TopicID{known()})
		return d
	case 3:
		d, _ := AddPartitions(v, []NewPartitions{{name.Draw(t, "name"), rapid.Int32Range(0, 9).Draw(t, "total")}})
		return d
	case 4:
		d, _, _ := TakeProducerIDs(v)
		return d
	case 5:
		d, _ := AlterConfigs(v, []Alteration{{name.Draw(t, "name"), []ConfigOp{operation()}, rapid.Bool().Draw(t, "replace")}})
		return d
	default:
		d, _ := AlterCluster(v, []ConfigOp{operation()})
		return d
	}
}

// drawLedger draws decisions, each made on the state that those before it gave.
func drawLedger(t *rapid.T) []ledger.Entry {
	s, ids := New(), byte(0)
	var entries []ledger.Entry
	for range rapid.IntRange(1, 50).Draw(t, "steps") {
		d := drawDecision(t, s.View(), &ids)
		if len(d.Body) == 0 {
			continue
		}
		e := ledger.Entry{Seq: coordinator.Seq(len(entries) + 1), Kind: d.Kind, Body: d.Body}
		c, err := s.Apply(e)
		if err != nil || c.Void != "" {
			t.Fatalf("decided on the newest state, and void: %s, %v", c.Void, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// fold folds, and checks after each entry what holds of every state; and in
// the end that the views taken on the way are what they were.
func fold(t *rapid.T, s *State, entries []ledger.Entry) {
	taken := map[*View][]*Topic{}
	for _, e := range entries {
		ids := s.nextID
		if _, err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
		v := s.View()
		taken[v] = v.All()
		if v.nextID != s.nextID || s.nextID < ids {
			t.Fatalf("the next producer id was %d, is %d, and %d to readers", ids, s.nextID, v.nextID)
		}
		keys, numbers := map[string]bool{}, map[uint32]bool{}
		for _, topic := range v.All() {
			byName, _ := v.Topic(topic.Name)
			byID, _ := v.TopicByID(topic.ID)
			byNumber, _ := v.TopicByNumber(topic.Number)
			if byName != topic || byID != topic || byNumber != topic || keys[nameKey(topic.Name)] || numbers[topic.Number] || topic.Number >= s.next {
				t.Fatalf("topic %+v is found as %+v, %+v and %+v", topic, byName, byID, byNumber)
			}
			keys[nameKey(topic.Name)], numbers[topic.Number] = true, true
			if want := resolve(topic.Configs, v.Settings()); *topic.Config() != *want {
				t.Fatalf("in force: %+v, want %+v", topic.Config(), want)
			}
		}
		if len(keys) != v.Len() {
			t.Fatalf("%d topics, and it says %d", len(keys), v.Len())
		}
	}
	for v, all := range taken {
		if !slices.Equal(all, v.topics()) || !slices.Equal(v.sortedByID(), sortedByID(v.ids)) {
			t.Fatalf("an old view had %v, and has %v and %v", all, v.topics(), sortedByID(v.ids))
		}
	}
}

func sortedByID(ids [buckets]map[siltstone.TopicID]*Topic) []*Topic {
	var all []*Topic
	for _, m := range ids {
		all = slices.AppendSeq(all, maps.Values(m))
	}
	slices.SortFunc(all, func(a, b *Topic) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}

func TestCheckpointAndTailAreTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { foldtest.CheckpointAndTail(t, drawLedger(t), New, fold) })
}

func TestAnyOrderIsFolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fold(t, New(), rapid.Permutation(drawLedger(t)).Draw(t, "order"))
	})
}

// goldenBodies has an entry of each kind, with each part of its format.
var goldenBodies = []Body{
	&CreateTopics{[]Created{
		{siltstone.TopicID{1, 2, 3}, "logs", 300, 1_800_000_000_000, map[string]string{"retention.ms": "60000", "cleanup.policy": "compact"}},
		{siltstone.TopicID{9}, "b.c-d_E", 1, 0, nil},
		{siltstone.TopicID{7}, "gone", 1, 0, nil},
	}},
	&DeleteTopics{[]siltstone.TopicID{{7}}},
	&AddedPartitions{[]Grown{{siltstone.TopicID{1, 2, 3}, 301}, {siltstone.TopicID{9}, 2}}},
	&SetConfigs{[]Configured{{siltstone.TopicID{9}, map[string]string{"siltstone.durability": "object"}}}},
	&SetCluster{map[string]string{"num.partitions": "6", "log.retention.ms": "5"}},
	&TakenIDs{0, 1000},
	&TakenIDs{1000, 500},
}

func goldenState() *State {
	s := New()
	for _, b := range goldenBodies {
		if c, err := s.Apply(entry(b)); err != nil || c.Void != "" {
			panic(fmt.Sprintf("%T: %v, %s", b, err, c.Void))
		}
	}
	return s
}

func TestGoldenEntries(t *testing.T) { foldtest.GoldenEntries(t, goldenBodies, Decode) }

func TestGoldenCheckpoint(t *testing.T) { foldtest.GoldenCheckpoint(t, goldenState(), New()) }

func FuzzDecode(f *testing.F) {
	foldtest.FuzzDecode(f, goldenBodies, Decode, func(kind byte, body []byte) error {
		s := goldenState()
		_, err := s.Apply(ledger.Entry{Kind: kind, Body: body})
		describeAll(s)
		return err
	})
}

func FuzzRestore(f *testing.F) {
	empty := func() *State {
		s := New()
		s.next = 100
		return s
	}
	foldtest.FuzzRestore(f, goldenState(), empty, describeAll)
}

func describeAll(s *State) {
	for _, topic := range s.View().All() {
		Describe(s.View(), topic)
	}
}

func FuzzValues(f *testing.F) {
	for name, d := range topicSettings {
		f.Add(name, d.initial)
	}
	f.Fuzz(func(t *testing.T, name, raw string) {
		got, err := topicSettings.parse(name, raw)
		if err != nil {
			return
		}
		if again, err := topicSettings.parse(name, got); err != nil || again != got {
			t.Fatalf("%s=%q is stored as %q, and that as %q, %v", name, raw, got, again, err)
		}
		resolve(map[string]string{name: got}, nil)
	})
}

// BenchmarkCreate makes topics one at a time, a view taken after each, among 10,000.
func BenchmarkCreate(b *testing.B) {
	s := New()
	n := 0
	add := func() {
		n++
		id := siltstone.TopicID{byte(n), byte(n >> 8), byte(n >> 16)}
		d, errs := Create(s.View(), []NewTopic{{Name: fmt.Sprintf("topic-%d", n), ID: id, Partitions: 1, Replication: 1}})
		if errs[0] != nil {
			b.Fatal(errs[0])
		}
		if c, err := s.Apply(ledger.Entry{Kind: d.Kind, Body: d.Body}); err != nil || c.Void != "" {
			b.Fatal(err, c.Void)
		}
	}
	for range 10_000 {
		add()
	}
	b.ReportAllocs()
	for b.Loop() {
		add()
	}
}

// BenchmarkFind finds topics among 10,000.
func BenchmarkFind(b *testing.B) {
	x := draft{}
	ids := make([]siltstone.TopicID, 10_000)
	for i := range ids {
		ids[i] = siltstone.TopicID{byte(i * 7), byte(i >> 8), byte(i), 15: byte(i * 31)}
		x.put(&Topic{ID: ids[i], Name: fmt.Sprintf("topic-%d", i)})
	}
	v := x.view(nil, nil)
	i := 0
	for b.Loop() {
		if _, ok := v.TopicByID(ids[i%len(ids)]); !ok {
			b.Fatal(i)
		}
		i++
	}
}

func TestBucketsAreEven(t *testing.T) {
	var count [buckets]int
	for i := range 10_000 {
		count[nameBucket(fmt.Sprintf("topic-%d", i))]++
	}
	if most := slices.Max(count[:]); most > 120 {
		t.Errorf("one bucket has %d of 10,000 names", most)
	}
}
