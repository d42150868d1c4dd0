package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func describe(kind kmsg.ConfigResourceType, name string, configs ...string) *kmsg.DescribeConfigsRequest {
	q := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, configs
	q.Resources = append(q.Resources, r)
	return q
}

func configNamed(t *testing.T, r kmsg.DescribeConfigsResponseResource, name string) kmsg.DescribeConfigsResponseResourceConfig {
	t.Helper()
	for _, c := range r.Configs {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no %s among %d settings", name, len(r.Configs))
	return kmsg.DescribeConfigsResponseResourceConfig{}
}

func TestDescribeConfigs(t *testing.T) {
	f := start(t)
	f.create("t", 1, "retention.ms", "1000")
	f.alterCluster("log.retention.ms", "5000")
	c := f.dial()
	for version := int16(1); version <= 4; version++ {
		q := describe(kmsg.ConfigResourceTypeTopic, "t")
		q.IncludeSynonyms, q.IncludeDocumentation = true, true
		r := ask[*kmsg.DescribeConfigsResponse](c, version, q).Resources[0]
		if r.ErrorCode != 0 || r.ResourceName != "t" || len(r.Configs) < 30 {
			t.Fatalf("v%d: %s, %d settings", version, errorName(r.ErrorCode), len(r.Configs))
		}
		own := configNamed(t, r, "retention.ms")
		if *own.Value != "1000" || own.Source != kmsg.ConfigSourceDynamicTopicConfig || own.ReadOnly || own.IsSensitive {
			t.Errorf("v%d: %+v", version, own)
		}
		var synonyms []string
		for _, s := range own.ConfigSynonyms {
			synonyms = append(synonyms, s.Name+"="+*s.Value)
		}
		if want := []string{"retention.ms=1000", "log.retention.ms=5000", "log.retention.ms=604800000"}; !slices.Equal(synonyms, want) {
			t.Errorf("v%d: synonyms %q, want %q", version, synonyms, want)
		}
		if version >= 3 && (own.ConfigType != kmsg.ConfigTypeLong || own.Documentation == nil || *own.Documentation == "") {
			t.Errorf("v%d: type %v, doc %v", version, own.ConfigType, own.Documentation)
		}
		if def := configNamed(t, r, "max.message.bytes"); def.Source != kmsg.ConfigSourceDefaultConfig {
			t.Errorf("v%d: %+v", version, def)
		}
		// Refused settings are shown, and flagged.
		if refused := configNamed(t, r, "remote.storage.enable"); !refused.ReadOnly {
			t.Errorf("v%d: %+v", version, refused)
		}
	}
	r := ask[*kmsg.DescribeConfigsResponse](c, 4, describe(kmsg.ConfigResourceTypeTopic, "t", "retention.ms", "no.such")).Resources[0]
	if len(r.Configs) != 1 || r.Configs[0].Documentation != nil || len(r.Configs[0].ConfigSynonyms) != 0 {
		t.Errorf("one by name: %+v", r.Configs)
	}
	r = ask[*kmsg.DescribeConfigsResponse](c, 4, describe(kmsg.ConfigResourceTypeBroker, "1")).Resources[0]
	if v := configNamed(t, r, "log.retention.ms"); *v.Value != "5000" || v.Source != kmsg.ConfigSourceDynamicDefaultBrokerConfig {
		t.Errorf("of a broker: %+v", v)
	}
	configNamed(t, r, "siltstone.replicas")
	r = ask[*kmsg.DescribeConfigsResponse](c, 4, describe(kmsg.ConfigResourceTypeBroker, "")).Resources[0]
	if len(r.Configs) != 1 || r.Configs[0].Name != "log.retention.ms" {
		t.Errorf("what was set for all brokers: %+v", r.Configs)
	}
	for _, tt := range []struct {
		kind       kmsg.ConfigResourceType
		name, want string
	}{
		{kmsg.ConfigResourceTypeTopic, "nowhere", "UNKNOWN_TOPIC_OR_PARTITION"},
		{kmsg.ConfigResourceTypeTopic, "no name", "INVALID_TOPIC_EXCEPTION"},
		{kmsg.ConfigResourceTypeBroker, "9", "INVALID_REQUEST"},
		{kmsg.ConfigResourceTypeBroker, "x", "INVALID_REQUEST"},
		{kmsg.ConfigResourceTypeBrokerLogger, "0", "INVALID_REQUEST"},
		{kmsg.ConfigResourceType(99), "0", "INVALID_REQUEST"},
	} {
		r := ask[*kmsg.DescribeConfigsResponse](c, 4, describe(tt.kind, tt.name)).Resources[0]
		if errorName(r.ErrorCode) != tt.want || len(r.Configs) != 0 || r.ErrorMessage == nil {
			t.Errorf("%v %q: %s, want %s", tt.kind, tt.name, errorName(r.ErrorCode), tt.want)
		}
	}
}

// alter makes a request; ops are "name=value", "name+=value", "name-=value", "-name".
func alter(kind kmsg.ConfigResourceType, name string, ops ...string) kmsg.IncrementalAlterConfigsRequestResource {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, op := range ops {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		name, value, _ := strings.Cut(op, "=")
		c.Name, c.Value = name, &value
		switch {
		case strings.HasPrefix(op, "-"):
			c.Name, c.Op, c.Value = op[1:], kmsg.IncrementalAlterConfigOpDelete, nil
		case strings.HasSuffix(name, "+"):
			c.Name, c.Op = name[:len(name)-1], kmsg.IncrementalAlterConfigOpAppend
		case strings.HasSuffix(name, "-"):
			c.Name, c.Op = name[:len(name)-1], kmsg.IncrementalAlterConfigOpSubtract
		}
		r.Configs = append(r.Configs, c)
	}
	return r
}

// outcome is a name, and what is said of it.
func outcome(name string, code int16, message *string) string {
	said := name + " " + errorName(code)
	if message != nil {
		said += " " + *message
	}
	return said
}

func TestIncrementalAlterConfigs(t *testing.T) {
	f := start(t)
	c := f.dial()
	topic, broker := kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker
	run := func(version int16, validate bool, resources ...kmsg.IncrementalAlterConfigsRequestResource) []string {
		t.Helper()
		q := kmsg.NewPtrIncrementalAlterConfigsRequest()
		q.Resources, q.ValidateOnly = resources, validate
		var got []string
		for _, r := range ask[*kmsg.IncrementalAlterConfigsResponse](c, version, q).Resources {
			got = append(got, outcome(r.ResourceName, r.ErrorCode, r.ErrorMessage))
		}
		return got
	}
	for version := range int16(2) {
		f.create("a", 1, "retention.ms", "1000", "max.message.bytes", "2000")
		f.create("b", 1)
		got := run(version, true, alter(topic, "a", "-retention.ms"))
		if made, _ := f.topics.Topics().Topic("a"); got[0] != "a " || made.Configs["retention.ms"] != "1000" {
			t.Errorf("validation: %q, and retention.ms is %q", got, made.Configs["retention.ms"])
		}
		got = run(version, false,
			alter(topic, "a", "-retention.ms", "cleanup.policy+=compact"),
			alter(topic, "b", "retention.ms=5", "max.message.bytes=much"),
			alter(topic, "nowhere", "retention.ms=5"),
			alter(broker, "", "num.partitions=9"),
			alter(broker, "0", "num.partitions=8"),
			alter(broker, "1", "-leader.replication.throttled.rate"),
			alter(broker, "9", "-leader.replication.throttled.rate"),
			alter(kmsg.ConfigResourceTypeBrokerLogger, "0", "x=y"),
		)
		want := []string{"a ", "b INVALID_CONFIG", "nowhere UNKNOWN_TOPIC_OR_PARTITION", " ", "0 INVALID_REQUEST", "1 ", "9 INVALID_REQUEST", "0 INVALID_REQUEST"}
		if len(got) != len(want) {
			t.Fatalf("%q", got)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%q, want %q", got[i], want[i])
			}
		}
		if !strings.Contains(got[1], "max.message.bytes") {
			t.Errorf("the setting is not named: %q", got[1])
		}
		view := f.topics.Topics()
		a, _ := view.Topic("a")
		b, _ := view.Topic("b")
		if _, own := a.Configs["retention.ms"]; own || a.Configs["max.message.bytes"] != "2000" || !a.Config().Compact || !a.Config().Delete {
			t.Errorf("a has %v", a.Configs)
		}
		if len(b.Configs) != 0 {
			t.Errorf("b was refused, and has %v", b.Configs)
		}
		if n := view.Cluster().NumPartitions; n != 9 {
			t.Errorf("num.partitions is %d", n)
		}
		if got := run(version, false, alter(topic, "a", "retention.ms=1"), alter(topic, "a", "retention.ms=2")); len(got) != 1 || !strings.HasPrefix(got[0], "a INVALID_REQUEST") {
			t.Errorf("twice: %q", got)
		}
		if got := run(version, false, alter(broker, "", "num.partitions=1"), alter(broker, "", "num.partitions=2")); len(got) != 1 || !strings.HasPrefix(got[0], " INVALID_REQUEST") {
			t.Errorf("the cluster twice: %q", got)
		}
		if n := f.topics.Topics().Cluster().NumPartitions; n != 9 {
			t.Errorf("the cluster twice: num.partitions is %d", n)
		}
		if got := run(version, false, alter(broker, "", "num.partitions=none")); !strings.Contains(got[0], "INVALID_CONFIG num.partitions") {
			t.Errorf("%q", got)
		}
		ask[*kmsg.DeleteTopicsResponse](c, 5, deleteNamed("a", "b"))
	}
}
