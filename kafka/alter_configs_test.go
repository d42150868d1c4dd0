package kafka

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// replace asks for a resource to have these settings, "name=value", and no
// others; one without a value has a null.
func replace(kind kmsg.ConfigResourceType, name string, settings ...string) kmsg.AlterConfigsRequestResource {
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, s := range settings {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		name, value, given := strings.Cut(s, "=")
		if c.Name = name; given {
			c.Value = &value
		}
		r.Configs = append(r.Configs, c)
	}
	return r
}

// replaceConfigs asks, and returns for each resource its name, error and message.
func replaceConfigs(c *client, version int16, validate bool, resources ...kmsg.AlterConfigsRequestResource) (got []string) {
	q := kmsg.NewPtrAlterConfigsRequest()
	q.Resources, q.ValidateOnly = resources, validate
	for _, r := range ask[*kmsg.AlterConfigsResponse](c, version, q).Resources {
		got = append(got, outcome(r.ResourceName, r.ErrorCode, r.ErrorMessage))
	}
	return got
}

func TestAlterConfigs(t *testing.T) {
	f := start(t)
	c := f.dial()
	topic, broker := kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker
	own := func(name string) map[string]string {
		made, _ := f.topics.Topics().Topic(name)
		return made.Configs
	}
	for version := range int16(3) {
		before := map[string]string{"retention.ms": "1000", "max.message.bytes": "2000"}
		f.create("a", 1, "retention.ms", "1000", "max.message.bytes", "2000")
		f.create("b", 1, "retention.ms", "1000", "max.message.bytes", "2000")
		f.alterCluster("num.partitions", "4")
		resources := []kmsg.AlterConfigsRequestResource{
			replace(topic, "a", "cleanup.policy=compact", "max.message.bytes= 3000 "),
			replace(topic, "b", "retention.ms=5", "no.such=1"),
			replace(topic, "nowhere", "retention.ms=5"),
			replace(broker, "", "log.retention.ms=7"),
			replace(broker, "0", "num.partitions=8"),
			replace(broker, "1"),
			replace(kmsg.ConfigResourceTypeGroupConfig, "g", "x=y"),
		}
		want := []string{"a ", "b INVALID_CONFIG no.such", "nowhere UNKNOWN_TOPIC_OR_PARTITION", " ", "0 INVALID_REQUEST", "1 ", "g INVALID_REQUEST"}
		for _, validate := range []bool{true, false} {
			got := replaceConfigs(c, version, validate, resources...)
			if len(got) != len(want) {
				t.Fatalf("v%d: %q", version, got)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("v%d, validation %v: %q, want %q", version, validate, got[i], want[i])
				}
			}
			if d := cmp.Diff(before, own("b")); d != "" {
				t.Errorf("v%d: what was refused changed something: %s", version, d)
			}
			if n := f.topics.Topics().Cluster().NumPartitions; validate && (n != 4 || cmp.Diff(before, own("a")) != "") {
				t.Errorf("v%d: validation changed something: %v, %d", version, own("a"), n)
			}
		}
		if d := cmp.Diff(map[string]string{"cleanup.policy": "compact", "max.message.bytes": "3000"}, own("a")); d != "" {
			t.Errorf("v%d: %s", version, d)
		}
		if d := cmp.Diff(map[string]string{"log.retention.ms": "7"}, f.topics.Topics().Settings()); d != "" {
			t.Errorf("v%d: of the cluster: %s", version, d)
		}
		for _, tt := range []struct {
			settings []string
			want     string
		}{
			{[]string{"retention.ms"}, "a INVALID_REQUEST retention.ms has a null value"},
			{[]string{"retention.ms=1", "retention.ms=2"}, "a INVALID_REQUEST"},
			{[]string{"remote.storage.enable=true"}, "a INVALID_CONFIG remote.storage.enable"},
		} {
			if got := replaceConfigs(c, version, false, replace(topic, "a", tt.settings...)); !strings.HasPrefix(strings.ReplaceAll(got[0], "invalid request: ", ""), tt.want) {
				t.Errorf("v%d: %q, want %q", version, got, tt.want)
			}
		}
		if got := replaceConfigs(c, version, false, replace(topic, "a", "retention.ms=1"), replace(topic, "a")); len(got) != 1 || !strings.HasPrefix(got[0], "a INVALID_REQUEST") {
			t.Errorf("v%d, twice: %q", version, got)
		}
		if got := replaceConfigs(c, version, false, replace(topic, "a"), replace(broker, "")); got[0] != "a " || len(own("a")) != 0 || len(f.topics.Topics().Settings()) != 0 {
			t.Errorf("v%d, nothing of one's own: %q, %v", version, got, own("a"))
		}
		ask[*kmsg.DeleteTopicsResponse](c, 5, deleteNamed("a", "b"))
	}
}
