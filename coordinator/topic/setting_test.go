package topic

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
)

// TestEveryKafkaConfig compares the table with what Kafka 4.4.0's LogConfig
// and ServerTopicConfigSynonyms define: name, type, default, first synonym.
func TestEveryKafkaConfig(t *testing.T) {
	b, err := os.ReadFile("testdata/kafka-4.4-topic-configs.tsv")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]Type{"BOOLEAN": TypeBool, "STRING": TypeString, "INT": TypeInt, "LONG": TypeLong, "DOUBLE": TypeDouble, "LIST": TypeList}
	var names []string
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		names = append(names, f[0])
		d := topicSettings[f[0]]
		switch {
		case d == nil:
			t.Errorf("%s is missing", f[0])
			continue
		case d.kind != types[f[1]]:
			t.Errorf("%s is of type %d, Kafka's %s", d.name, d.kind, f[1])
		case d.initial != f[2] && d.name != "unclean.leader.election.enable":
			t.Errorf("%s is %q by default, in Kafka %q", d.name, d.initial, f[2])
		case d.cluster != f[3] && d.class != Refused && d.name != "unclean.leader.election.enable":
			t.Errorf("%s has the cluster's %q, in Kafka %q", d.name, d.cluster, f[3])
		}
		if got, err := d.parse(d.initial); err != nil || got != d.initial {
			t.Errorf("%s: its default comes back as %q, %v", d.name, got, err)
		}
		if d.doc == "" {
			t.Errorf("%s has no doc", d.name)
		}
	}
	if len(names) < 34 {
		t.Errorf("the list has only %d names", len(names))
	}
	for name := range topicSettings {
		if !slices.Contains(names, name) && !strings.HasPrefix(name, "siltstone.") {
			t.Errorf("Kafka has no %s", name)
		}
	}
}

func TestClusterSettings(t *testing.T) {
	for name, d := range clusterSettings {
		if got, err := d.parse(d.initial); err != nil || got != d.initial || d.doc == "" {
			t.Errorf("%s: its default comes back as %q, %v", name, got, err)
		}
	}
	if err := checkCluster(nil); err != nil {
		t.Errorf("the defaults disagree: %v", err)
	}
	if err := checkTopic(nil, nil); err != nil {
		t.Errorf("the defaults disagree: %v", err)
	}
}

// TestValues has what Kafka 4.4.0 takes and refuses, found by asking its LogConfig.
func TestValues(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"cleanup.policy", "", ""},
		{"cleanup.policy", " delete , compact ", "delete,compact"},
		{"cleanup.policy", "compact, compact", "compact"},
		{"preallocate", "TRUE", "true"},
		{"retention.ms", " 5 ", "5"},
		{"retention.ms", "+5", "5"},
		{"retention.ms", "-1", "-1"},
		{"retention.bytes", "-5", "-5"},
		{"min.cleanable.dirty.ratio", "1e-1", "0.1"},
		{"min.cleanable.dirty.ratio", ".5", "0.5"},
		{"compression.type", " gzip ", "gzip"},
		{"compression.gzip.level", "-1", "-1"},
		{"compression.zstd.level", "0", "0"},
		{"segment.bytes", "1048576", "1048576"},
		{"siltstone.durability", "object", "object"},
		{"remote.storage.enable", "False", "false"},
		{"leader.replication.throttled.replicas", "", ""},
	} {
		if got, err := topicSettings.parse(c.name, c.raw); err != nil || got != c.want {
			t.Errorf("%s=%q: %q, %v; want %q", c.name, c.raw, got, err, c.want)
		}
	}
	for _, c := range []struct{ name, raw, why string }{
		{"cleanup.policy", "Compact", "none of compact, delete"},
		{"cleanup.policy", "delete,", "empty"},
		{"cleanup.policy", ",", "empty"},
		{"cleanup.policy", "none", "none of"},
		{"preallocate", "yes", "true or false"},
		{"retention.ms", "5L", "integer of 64 bits"},
		{"retention.ms", "-2", "less than -1"},
		{"retention.ms", "9223372036854775808", "integer of 64 bits"},
		{"retention.ms", "", "integer"},
		{"max.message.bytes", "2147483648", "integer of 32 bits"},
		{"max.message.bytes", "-1", "between 0 and 104857600"},
		{"max.message.bytes", "104857601", "between 0 and 104857600"},
		{"max.decompressed.message.bytes", "0", "between"},
		{"min.cleanable.dirty.ratio", "1.01", "between 0 and 1"},
		{"min.cleanable.dirty.ratio", "-0.01", "between 0 and 1"},
		{"min.cleanable.dirty.ratio", "NaN", "not a number"},
		{"min.cleanable.dirty.ratio", "half", "not a number"},
		{"compression.type", "GZIP", "none of"},
		{"compression.type", "none", "none of"},
		{"compression.gzip.level", "0", "between 1 and 9"},
		{"compression.gzip.level", "10", "between 1 and 9"},
		{"compression.lz4.level", "0", "between 1 and 17"},
		{"compression.zstd.level", "-131073", "between"},
		{"message.timestamp.type", "createtime", "none of"},
		{"message.timestamp.before.max.ms", "-1", "less than 0"},
		{"segment.bytes", "14", "less than 1048576"},
		{"segment.ms", "0", "less than 1"},
		{"max.compaction.lag.ms", "0", "less than 1"},
		{"min.insync.replicas", "0", "less than 1"},
		{"local.retention.ms", "-3", "less than -2"},
		{"siltstone.durability", "none", "none of replicated, object"},
		{"remote.storage.enable", "true", "only \"false\" is taken"},
		{"remote.copy.lag.ms", "5", "only \"0\" is taken"},
		{"leader.replication.throttled.replicas", "*", "only \"\" is taken"},
		{"errors.deadletterqueue.group.enable", "true", "share groups"},
		{"message.format.version", "2.0", "no such setting"}, // gone since Kafka 4.0
		{"message.downconversion.enable", "true", "no such setting"},
		{"internal.segment.bytes", "100", "no such setting"},
		{"", "", "no such setting"},
	} {
		_, err := topicSettings.parse(c.name, c.raw)
		wrong, ok := errors.AsType[*ConfigError](err)
		if !ok || !errors.Is(err, ErrInvalidConfig) || wrong.Name != c.name || !strings.Contains(wrong.Reason, c.why) {
			t.Errorf("%s=%q: %v; want a ConfigError with %q", c.name, c.raw, err, c.why)
		}
	}
}

// A value that is stored in another form than parse gives it (no writer of ours
// does so) counts as not set, and never reaches a reader that cannot read it.
func TestStoredForm(t *testing.T) {
	stored := map[string]string{"retention.ms": " 0000", "max.message.bytes": "1 ", "cleanup.policy": "compact, delete"}
	got, want := resolve(stored, stored), resolve(nil, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWaitsForJobs(t *testing.T) {
	for name, want := range map[string]bool{
		"retention.ms": true, "cleanup.policy": true, "min.cleanable.dirty.ratio": true,
		"compression.type": false, "segment.ms": false, "remote.storage.enable": false, "nosuch": false,
	} {
		if got := WaitsForJobs(name); got != want {
			t.Errorf("%s waits for the jobs: %v", name, got)
		}
	}
}

const (
	compatibility = "../../docs/compatibility.md"
	begin         = "<!-- topic-configs:begin -->\n"
	end           = "<!-- topic-configs:end -->\n"
)

// TestCompatibilityPage holds the page's table against the settings.
func TestCompatibilityPage(t *testing.T) {
	page, err := os.ReadFile(compatibility)
	if err != nil && !*foldtest.Update {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(page), begin)
	was, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no %s … %s", compatibility, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	want := tables()
	if *foldtest.Update {
		if err := os.WriteFile(compatibility, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("the topic configs of %s are not those of the code; run go test -update here", compatibility)
	}
}

// tables is the part of the page between the markers.
func tables() string {
	var b strings.Builder
	b.WriteString(`Every topic config of Kafka 4.4 is in one of these tables; none is ignored without a word, and a name that is in none is INVALID_CONFIG, which includes those that Kafka 4.0 removed. Values are checked as Kafka checks them, unless the meaning says more. *Cluster's* is the setting, shown as a broker config, that gives topics their default.

`)
	for _, c := range []struct {
		class Class
		title string
	}{
		{Obeyed, "Obeyed"},
		{Pending, "In force with the jobs: checked, stored and described already"},
		{Local, "Taken, with the meaning that is stated: Kafka's local files and threads"},
		{Refused, "Refused, but for their default"},
	} {
		fmt.Fprintf(&b, "### %s\n\n| topic config | default | cluster's | meaning |\n|---|---|---|---|\n", c.title)
		for _, d := range topicSettings.sorted() {
			if d.class == c.class {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.name, code(d.initial), code(d.cluster), d.doc)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("### Settings of the cluster\n\nBesides the defaults above. They are the same for every agent, are kept in the cluster's ledger, and are altered as broker configs without a broker's id.\n\n| setting | default | meaning |\n|---|---|---|\n")
	for _, d := range clusterSettings.sorted() {
		if slices.ContainsFunc(ownCluster, func(o definition) bool { return o.name == d.name }) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.name, code(d.initial), d.doc)
		}
	}
	b.WriteString("\n")
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
