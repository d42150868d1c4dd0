package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const groupTool = "consumer.group.ConsumerGroupCommand"

// groupRows are the lines of what the tool prints about a group, sorted.
func groupRows(out, group string) string {
	var rows []string
	for line := range strings.Lines(table(out)) {
		if strings.HasPrefix(line, group+" ") {
			rows = append(rows, strings.TrimPrefix(line, group+" "))
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "")
}

// waitGroup waits until a group has so many members and is stable, or is empty.
func (s *server) waitGroup(t *testing.T, group string, members int) kadm.DescribedGroup {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	var d kadm.DescribedGroup
	eventually(t, "group "+group+" has "+strconv.Itoa(members)+" members and is at rest", func() bool {
		described, err := admin.DescribeGroups(t.Context(), group)
		if err != nil {
			return false
		}
		d = described[group]
		return d.Err == nil && len(d.Members) == members && d.State == map[bool]string{true: "Empty", false: "Stable"}[members == 0]
	})
	return d
}

// TestJavaGroupTools: the consumer group tools of Apache Kafka, with their defaults.
func TestJavaGroupTools(t *testing.T) {
	s := start(t, t.TempDir())
	s.tool(t, "", "TopicCommand", "--create", "--topic", "t", "--partitions", "3")
	s.tool(t, lines(12, "k%d:v"), "ConsoleProducer", "--topic", "t", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
	s.tool(t, "", "consumer.ConsoleConsumer", "--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "12")
	s.tool(t, "", "consumer.ConsoleConsumer", "--topic", "t", "--group", "other", "--from-beginning", "--max-messages", "12")

	t.Run("empty", s.emptyGroup)
	t.Run("live", s.liveGroup)
	t.Run("reset", s.resetGroup)
	t.Run("delete", s.deleteGroup)
}

func (s *server) emptyGroup(t *testing.T) {
	s.waitGroup(t, "g", 0)
	contains(t, "list", "\n"+s.tool(t, "", groupTool, "--list"), "\ng\n", "\nother\n")
	sameTable(t, "list --state", groupRows(s.tool(t, "", groupTool, "--list", "--state"), "g"), "Empty\n")
	sameTable(t, "list --state stable", groupRows(s.tool(t, "", groupTool, "--list", "--state", "stable"), "g"), "")
	sameTable(t, "list --type classic", groupRows(s.tool(t, "", groupTool, "--list", "--type", "classic"), "g"), "Classic\n")
	sameTable(t, "list --type consumer", groupRows(s.tool(t, "", groupTool, "--list", "--type", "consumer"), "g"), "")
	sameTable(t, "groups", groupRows(s.tool(t, "", "GroupsCommand", "--list", "--consumer"), "g"), "Classic consumer\n")
	sameTable(t, "share groups", groupRows(s.tool(t, "", "GroupsCommand", "--list", "--share"), "g"), "")
	const offsets = "t 0 3 3 0 - - -\nt 1 5 5 0 - - -\nt 2 4 4 0 - - -\n"
	sameTable(t, "describe", groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g"), "g"), offsets)
	sameTable(t, "describe all", groupRows(s.tool(t, "", groupTool, "--describe", "--all-groups", "--offsets"), "other"), offsets)
	sameTable(t, "members", groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g", "--members"), "g"), "")
	state := groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g", "--state"), "g")
	if !strings.HasPrefix(state, s.kafka+" (") || !strings.HasSuffix(state, ") - Empty 0\n") {
		t.Errorf("state: %q", state)
	}
	contains(t, "an unknown group", s.tool(t, "", groupTool, "--describe", "--group", "nosuch"), "GroupIdNotFoundException")
}

// liveGroup has a console consumer in the group.
func (s *server) liveGroup(t *testing.T) {
	consumed := make(chan outcome)
	go func() {
		o, _ := java.run("", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", s.kafka, "--topic", "t", "--group", "g", "--max-messages", "1")
		consumed <- o
	}()
	member := s.waitGroup(t, "g", 1).Members[0]
	if member.ClientID != "console-consumer" || member.ClientHost != "/127.0.0.1" {
		t.Errorf("client %q of %q", member.ClientID, member.ClientHost)
	}
	id := member.MemberID + " /127.0.0.1 console-consumer"
	sameTable(t, "describe", groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g"), "g"),
		"t 0 3 3 0 "+id+"\nt 1 5 5 0 "+id+"\nt 2 4 4 0 "+id+"\n")
	sameTable(t, "members", groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g", "--members"), "g"), id+" 3\n")
	sameTable(t, "members, verbose", groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g", "--members", "--verbose"), "g"), id+" 3 - t:0,1,2 -  -\n")
	state := groupRows(s.tool(t, "", groupTool, "--describe", "--group", "g", "--state"), "g")
	if !strings.HasSuffix(state, ") range Stable 1\n") {
		t.Errorf("state: %q", state)
	}
	sameTable(t, "list --state stable", groupRows(s.tool(t, "", groupTool, "--list", "--state", "stable"), "g"), "Stable\n")

	contains(t, "delete", s.tool(t, "", groupTool, "--delete", "--group", "g"), "GroupNotEmptyException")
	contains(t, "reset", s.tool(t, "", groupTool, "--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute"),
		"Assignments can only be reset if the group 'g' is inactive, but the current state is Stable.")
	contains(t, "delete offsets", s.tool(t, "", groupTool, "--delete-offsets", "--group", "g", "--topic", "t"), "GroupSubscribedToTopicException")

	s.tool(t, "k1:last\n", "ConsoleProducer", "--topic", "t", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
	if o := <-consumed; o.code != 0 || o.stdout != "last\n" {
		t.Errorf("the consumer had %+v", o)
	}
	s.waitGroup(t, "g", 0)
}

func (s *server) resetGroup(t *testing.T) {
	// Ten records, an hour apart.
	s.tool(t, "", "TopicCommand", "--create", "--topic", "timed", "--partitions", "2")
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	cl := s.franz(t)
	for i := range 10 {
		r := &kgo.Record{Topic: "timed", Timestamp: first.Add(time.Duration(i) * time.Hour), Value: []byte("x")}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	reset := func(args ...string) string {
		return groupRows(s.tool(t, "", groupTool, append([]string{"--reset-offsets", "--group", "resets"}, args...)...), "resets")
	}
	committed := func() string {
		return groupRows(s.tool(t, "", groupTool, "--describe", "--group", "resets"), "resets")
	}
	exported := tempFile(t, "timed,0,6\ntimed,1,0\n")
	for _, tt := range []struct {
		args []string
		want string // offset of partition 0
	}{
		{[]string{"--topic", "timed", "--to-earliest"}, "0"}, // makes the group
		{[]string{"--topic", "timed", "--to-latest"}, "10"},
		{[]string{"--all-topics", "--to-offset", "7"}, "7"},
		{[]string{"--topic", "timed", "--shift-by", "-3"}, "4"},
		{[]string{"--topic", "timed", "--shift-by", "-30"}, "0"},
		{[]string{"--topic", "timed", "--to-datetime", "2024-01-01T04:30:00.000Z"}, "5"},
		{[]string{"--topic", "timed", "--to-datetime", "2023-01-01T00:00:00.000"}, "0"},
		{[]string{"--topic", "timed", "--by-duration", "PT1H"}, "10"}, // nothing is so new
		{[]string{"--topic", "timed:0", "--to-offset", "3"}, "3"},
		{[]string{"--topic", "timed", "--to-current"}, "3"},
		{[]string{"--from-file", exported}, "6"},
	} {
		before := committed()
		row := "timed 0 " + tt.want + "\n"
		contains(t, "dry run", reset(append(tt.args, "--dry-run")...), row)
		if after := committed(); after != before {
			t.Errorf("%q, dry: offsets were\n%sand are\n%s", tt.args, before, after)
		}
		contains(t, "execute", reset(append(tt.args, "--execute")...), row)
		contains(t, "committed", committed(), "timed 0 "+tt.want+" 10 ")
	}
	contains(t, "export", s.tool(t, "", groupTool, "--reset-offsets", "--group", "resets", "--all-topics", "--to-current", "--export", "--dry-run"), "timed,0,6\n", "timed,1,0\n")

	out := table(s.tool(t, "", groupTool, "--delete-offsets", "--group", "resets", "--topic", "timed:1"))
	contains(t, "delete offsets", out, "Request succeeded for deleting offsets from group resets.", "timed 1 Successful\n")
	if rows := committed(); !strings.Contains(rows, "timed 0 6 10 ") || strings.Contains(rows, "timed 1 ") {
		t.Errorf("committed after deleting one: %s", rows)
	}
}

func (s *server) deleteGroup(t *testing.T) {
	contains(t, "delete", s.tool(t, "", groupTool, "--delete", "--group", "g"), "Deletion of requested consumer groups ('g') was successful.")
	contains(t, "delete again", s.tool(t, "", groupTool, "--delete", "--group", "g"), "GroupIdNotFoundException")
	out := "\n" + s.tool(t, "", groupTool, "--list")
	if strings.Contains(out, "\ng\n") || !strings.Contains(out, "\nother\n") {
		t.Errorf("list after deleting g: %s", out)
	}
	contains(t, "describe", s.tool(t, "", groupTool, "--describe", "--group", "g"), "GroupIdNotFoundException")
	// A group of the same name begins without offsets.
	if got := s.tool(t, "", "consumer.ConsoleConsumer", "--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "13"); strings.Count(got, "\n") != 13 {
		t.Errorf("consumed %q", got)
	}
}
