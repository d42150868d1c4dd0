package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tool runs a tool of Apache Kafka as a shell would, with its defaults.
func (s *server) tool(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	return s.java(t, stdin, "org.apache.kafka.tools."+name, append([]string{"--bootstrap-server", s.kafka}, args...)...)
}

// refused runs a tool that must fail, and say why.
func (s *server) refused(t *testing.T, says, name string, args ...string) {
	t.Helper()
	o, err := java.run("", "org.apache.kafka.tools."+name, append([]string{"--bootstrap-server", s.kafka}, args...)...)
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	if o.code == 0 || !strings.Contains(o.stdout+o.stderr, says) {
		t.Errorf("%s %q: code %d, want one that says %q:\n%s%s", name, args, o.code, says, o.stdout, o.stderr)
	}
}

var spaces = regexp.MustCompile(`[ \t]+`)

// table is text without empty lines and with single spaces.
func table(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(spaces.ReplaceAllString(line, " ")); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func sameTable(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(table(want), table(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// contains checks that all of these are in a text.
func contains(t *testing.T, what, got string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %q:\n%s", what, want, got)
		}
	}
}

// TestJavaTools: the command-line tools of Apache Kafka, with their defaults.
// TestJavaGroupTools has those of consumer groups.
func TestJavaTools(t *testing.T) {
	s := start(t, t.TempDir())
	t.Run("topics", s.topicTool)
	t.Run("console", s.consoleTools)
	t.Run("offsets", s.offsetTools)
	t.Run("configs", s.configTool)
	t.Run("performance", s.performanceTools)
	t.Run("brokers", s.brokerTools)
	t.Run("alone", s.aloneTools)
}

func (s *server) topicTool(t *testing.T) {
	const tool = "TopicCommand"
	sameTable(t, "create", s.tool(t, "", tool, "--create", "--topic", "topics", "--partitions", "3", "--config", "retention.ms=100000"), "Created topic topics.")
	s.refused(t, "TopicExistsException", tool, "--create", "--topic", "topics")
	s.tool(t, "", tool, "--create", "--topic", "topics", "--if-not-exists")
	s.refused(t, "InvalidReplicationFactorException", tool, "--create", "--topic", "no", "--replication-factor", "9")
	s.refused(t, "Unknown topic config name: nosuch", tool, "--create", "--topic", "no", "--config", "nosuch=1")
	contains(t, "list", "\n"+s.tool(t, "", tool, "--list"), "\ntopics\n")

	out := s.tool(t, "", tool, "--describe", "--topic", "topics")
	contains(t, "describe", table(out), "Topic: topics TopicId: ", " PartitionCount: 3 ReplicationFactor: 1 Configs: ", "retention.ms=100000",
		"Topic: topics Partition: 0 Leader: ", "Topic: topics Partition: 2 Leader: ")
	id := regexp.MustCompile(`TopicId: (\S+)`).FindStringSubmatch(out)
	if id == nil {
		t.Fatalf("describe has no topic id: %s", out)
	}
	contains(t, "describe by id", table(s.tool(t, "", tool, "--describe", "--topic-id", id[1])), "Topic: topics TopicId: "+id[1]+" PartitionCount: 3 ")
	for _, flag := range []string{"--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"} {
		sameTable(t, flag, s.tool(t, "", tool, "--describe", flag), "")
	}
	contains(t, "overrides", s.tool(t, "", tool, "--describe", "--topics-with-overrides"), "Topic: topics")

	s.tool(t, "", tool, "--alter", "--topic", "topics", "--partitions", "5")
	contains(t, "describe", table(s.tool(t, "", tool, "--describe", "--topic", "topics")), "PartitionCount: 5", "Partition: 4 Leader: ")
	s.refused(t, "InvalidPartitionsException", tool, "--alter", "--topic", "topics", "--partitions", "4")
	s.tool(t, "", tool, "--delete", "--topic", "topics")
	if out := s.tool(t, "", tool, "--list"); strings.Contains(out, "topics") {
		t.Errorf("listed after it was deleted: %q", out)
	}
	s.refused(t, "does not exist as expected", tool, "--delete", "--topic", "topics")
}

func (s *server) consoleTools(t *testing.T) {
	s.tool(t, "", "TopicCommand", "--create", "--topic", "console", "--partitions", "1")
	before := time.Now()
	s.tool(t, "h1:v1,h2:v2\tk1\tvalue 1\nh:\tk2\tvalue 2\n", "ConsoleProducer", "--topic", "console",
		"--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
	s.tool(t, "k3\tNULL\nk4\t\n", "ConsoleProducer", "--topic", "console",
		"--reader-property", "parse.key=true", "--reader-property", "null.marker=NULL", "--compression-codec", "zstd")
	read := func(args ...string) string {
		args = append([]string{"--topic", "console"}, args...)
		for _, property := range []string{"timestamp", "partition", "offset", "headers", "key"} {
			args = append(args, "--formatter-property", "print."+property+"=true")
		}
		return s.tool(t, "", "consumer.ConsoleConsumer", args...)
	}
	stamped := regexp.MustCompile(`CreateTime:(\d+)\t`)
	const all = "Partition:0 Offset:0 h1:v1,h2:v2 k1 value 1\n" +
		"Partition:0 Offset:1 h: k2 value 2\n" +
		"Partition:0 Offset:2 NO_HEADERS k3 null\n" +
		"Partition:0 Offset:3 NO_HEADERS k4\n"
	got := read("--group", "console", "--from-beginning", "--max-messages", "4")
	sameTable(t, "consumed", stamped.ReplaceAllString(got, ""), all)
	for _, m := range stamped.FindAllStringSubmatch(got, -1) {
		ms, _ := strconv.ParseInt(m[1], 10, 64)
		if at := time.UnixMilli(ms); at.Before(before.Truncate(time.Millisecond)) || at.After(time.Now()) {
			t.Errorf("a record of %v", at)
		}
	}
	// The group has committed, so goes on where it was; no group begins anew.
	s.tool(t, "five\nsix\n", "ConsoleProducer", "--topic", "console", "--reader-property", "parse.key=false")
	sameTable(t, "consumed by the group", stamped.ReplaceAllString(read("--group", "console", "--from-beginning", "--max-messages", "2"), ""),
		"Partition:0 Offset:4 NO_HEADERS null five\nPartition:0 Offset:5 NO_HEADERS null six\n")
	sameTable(t, "consumed by nobody's group", stamped.ReplaceAllString(read("--from-beginning", "--max-messages", "4"), ""), all)
	sameTable(t, "consumed from an offset", stamped.ReplaceAllString(read("--partition", "0", "--offset", "3", "--max-messages", "1"), ""),
		"Partition:0 Offset:3 NO_HEADERS k4\n")
	sameTable(t, "consumed by a pattern", s.tool(t, "", "consumer.ConsoleConsumer", "--include", "conso.*", "--from-beginning", "--max-messages", "1",
		"--isolation-level", "read_committed"), "value 1\n")
}

func (s *server) offsetTools(t *testing.T) {
	s.tool(t, "", "TopicCommand", "--create", "--topic", "offsets", "--partitions", "2")
	s.tool(t, lines(10, "%d"), "ConsoleProducer", "--topic", "offsets", "--command-property", "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner")
	offsets := func(args ...string) string {
		return s.tool(t, "", "GetOffsetShell", append([]string{"--topic", "offsets"}, args...)...)
	}
	sum := 0
	for line := range strings.Lines(offsets()) {
		var p, end int
		if _, err := fmt.Sscanf(line, "offsets:%d:%d", &p, &end); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sum += end
	}
	if sum != 10 {
		t.Errorf("ends add up to %d: %s", sum, offsets())
	}
	sameTable(t, "earliest", offsets("--time", "earliest"), "offsets:0:0\noffsets:1:0\n")
	sameTable(t, "one partition", offsets("--time", "-2", "--partitions", "1"), "offsets:1:0\n")
	sameTable(t, "at a time", offsets("--time", "1000"), "offsets:0:0\noffsets:1:0\n")

	s.tool(t, "", "TopicCommand", "--create", "--topic", "gone", "--partitions", "1")
	s.tool(t, lines(10, "%d"), "ConsoleProducer", "--topic", "gone")
	deleteTo := func(offset int) string {
		return s.tool(t, "", "DeleteRecordsCommand", "--offset-json-file",
			tempFile(t, fmt.Sprintf(`{"partitions":[{"topic":"gone","partition":0,"offset":%d}],"version":1}`, offset)))
	}
	contains(t, "delete records", table(deleteTo(4)), "partition: gone-0 low_watermark: 4\n")
	contains(t, "delete fewer records", table(deleteTo(2)), "partition: gone-0 low_watermark: 4\n")
	sameTable(t, "the first offset left", s.tool(t, "", "GetOffsetShell", "--topic", "gone", "--time", "earliest"), "gone:0:4\n")
	sameTable(t, "what is left", s.tool(t, "", "consumer.ConsoleConsumer", "--topic", "gone", "--from-beginning", "--max-messages", "6"), "4\n5\n6\n7\n8\n9\n")
	contains(t, "delete past the end", deleteTo(11), "OffsetOutOfRange")
	contains(t, "delete all", table(deleteTo(-1)), "partition: gone-0 low_watermark: 10\n")
	sameTable(t, "the end after all is deleted", s.tool(t, "", "GetOffsetShell", "--topic", "gone"), "gone:0:10\n")
}

func (s *server) configTool(t *testing.T) {
	const tool = "ConfigCommand"
	s.tool(t, "", "TopicCommand", "--create", "--topic", "configs", "--config", "retention.ms=100000")
	describe := func(args ...string) string { return s.tool(t, "", tool, append([]string{"--describe"}, args...)...) }
	contains(t, "describe", describe("--topic", "configs"), "Dynamic configs for topic configs are:\n"+
		"  retention.ms=100000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=100000")
	contains(t, "all described", describe("--topic", "configs", "--all"),
		"  max.message.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}\n")
	s.tool(t, "", tool, "--topic", "configs", "--alter", "--add-config", "cleanup.policy=[compact,delete],min.insync.replicas=1")
	contains(t, "described after adding", describe("--topic", "configs"),
		"cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, ", "retention.ms=100000")
	s.tool(t, "", tool, "--entity-type", "topics", "--entity-name", "configs", "--alter", "--delete-config", "retention.ms,cleanup.policy")
	if out := describe("--topic", "configs"); strings.Contains(out, "retention.ms") || !strings.Contains(out, "min.insync.replicas=1") {
		t.Errorf("described after deleting:\n%s", out)
	}
	s.refused(t, "InvalidConfigurationException", tool, "--topic", "configs", "--alter", "--add-config", "nosuch=1")
	s.refused(t, "InvalidConfigurationException", tool, "--topic", "configs", "--alter", "--add-config", "retention.ms=soon")

	// The brokers' settings: those of all are the defaults of topics.
	s.tool(t, "", tool, "--broker-defaults", "--alter", "--add-config", "log.retention.ms=7200000")
	contains(t, "the brokers' settings", describe("--broker-defaults"), "log.retention.ms=7200000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000")
	contains(t, "a topic's default", describe("--topic", "configs", "--all"), "  retention.ms=7200000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000")
	s.tool(t, "", tool, "--broker-defaults", "--alter", "--delete-config", "log.retention.ms")
	contains(t, "a topic's default again", describe("--topic", "configs", "--all"), "  retention.ms=604800000 sensitive=false")
	node := regexp.MustCompile(`Leader: (\d+)`).FindStringSubmatch(s.tool(t, "", "TopicCommand", "--describe", "--topic", "configs"))
	if node == nil {
		t.Fatal("no leader")
	}
	contains(t, "a broker's settings", describe("--broker", node[1], "--all"), "  message.max.bytes=1048588 ", "  offsets.retention.minutes=10080 ")
}

func (s *server) performanceTools(t *testing.T) {
	s.tool(t, "", "TopicCommand", "--create", "--topic", "perf", "--partitions", "4")
	n := strconv.Itoa(count(20_000, 200_000))
	contains(t, "producer", s.tool(t, "", "ProducerPerformance", "--topic", "perf", "--num-records", n, "--record-size", "100", "--throughput", "-1"),
		n+" records sent, ", " ms 99.9th.")
	out := s.tool(t, "", "ConsumerPerformance", "--topic", "perf", "--num-records", n, "--hide-header")
	if fields := strings.Split(strings.TrimSpace(out), ", "); len(fields) != 10 || fields[4] != n {
		t.Errorf("consumer: %s", out)
	}
	contains(t, "latency", s.tool(t, "", "EndToEndLatency", "--topic", "perf", "--num-records", "20", "--producer-acks", "all", "--record-size", "100"),
		"Avg latency: ", "Percentiles: 50th = ")
}

// brokerTools: what asks about brokers, replicas and other things of a cluster.
func (s *server) brokerTools(t *testing.T) {
	s.tool(t, "", "TopicCommand", "--create", "--topic", "brokers", "--partitions", "2")
	s.tool(t, strings.Repeat("x", 10_000), "ConsoleProducer", "--topic", "brokers")
	out := s.tool(t, "", "LogDirsCommand", "--describe", "--topic-list", "brokers")
	sizes := 0
	for _, m := range regexp.MustCompile(`"partition":"brokers-\d","size":(\d+),"offsetLag":0,"isFuture":false`).FindAllStringSubmatch(out, -1) {
		size, _ := strconv.Atoi(m[1])
		sizes += size
	}
	if sizes < 10_000 || sizes > 11_000 || !strings.Contains(out, `"error":null`) {
		t.Errorf("log dirs with 10,000 bytes:\n%s", out)
	}
	s.tool(t, "", "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
	contains(t, "unclean election", s.tool(t, "", "LeaderElectionCommand", "--election-type", "unclean", "--topic", "brokers", "--partition", "0"),
		"Valid replica already elected for partitions brokers-0")
	contains(t, "reassignments", s.tool(t, "", "reassign.ReassignPartitionsCommand", "--list"), "No partition reassignments found.")
	contains(t, "versions", s.tool(t, "", "BrokerApiVersionsCommand"), "JoinGroup(11): ", "OffsetCommit(8): ", "InitProducerId(22): ")
	contains(t, "producers", s.tool(t, "", "TransactionsCommand", "describe-producers", "--topic", "brokers", "--partition", "0"), "ProducerId")
}

// aloneTools are in virtual machines of their own, as a user has them.
func (s *server) aloneTools(t *testing.T) {
	alone := func(stdin, name string, args ...string) string {
		t.Helper()
		args = append([]string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars + "/*", "org.apache.kafka.tools." + name, "--bootstrap-server", s.kafka}, args...)
		cmd := exec.CommandContext(t.Context(), "java", args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(out)
	}
	alone("", "TopicCommand", "--create", "--topic", "alone")
	alone(lines(100, "line %d"), "ConsoleProducer", "--topic", "alone")
	if got := alone("", "consumer.ConsoleConsumer", "--topic", "alone", "--group", "alone", "--from-beginning", "--max-messages", "100"); got != lines(100, "line %d") {
		t.Errorf("consumed %q", got)
	}
}
