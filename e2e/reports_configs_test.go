package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// described is every setting of a resource, by name: value, source, synonyms
// and whether it is read-only, as one line.
func (w *wire) described(kind kmsg.ConfigResourceType, name string, settings ...string) map[string]string {
	w.t.Helper()
	q := kmsg.NewPtrDescribeConfigsRequest()
	q.IncludeSynonyms = true
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, settings
	q.Resources = append(q.Resources, r)
	resp := ask[*kmsg.DescribeConfigsResponse](w, 4, q).Resources[0]
	if resp.ErrorCode != 0 {
		w.t.Fatalf("describe %s: %s", name, errorName(resp.ErrorCode))
	}
	all := map[string]string{}
	for _, c := range resp.Configs {
		line := fmt.Sprintf("%s %s", *c.Value, c.Source)
		for _, s := range c.ConfigSynonyms {
			line += fmt.Sprintf(" %s=%s:%s", s.Name, *s.Value, s.Source)
		}
		if c.ReadOnly {
			line += " read-only"
		}
		if len(c.ConfigSynonyms) == 0 {
			w.t.Errorf("%s of %s has no synonyms", c.Name, name)
		}
		all[c.Name] = line
	}
	return all
}

// replaceConfigs is AlterConfigs of a resource, with "name=value".
func (w *wire) replaceConfigs(kind kmsg.ConfigResourceType, name string, validate bool, settings ...string) (code, text string) {
	w.t.Helper()
	q := kmsg.NewPtrAlterConfigsRequest()
	q.ValidateOnly = validate
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, s := range settings {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		name, value, _ := strings.Cut(s, "=")
		c.Name, c.Value = name, &value
		r.Configs = append(r.Configs, c)
	}
	q.Resources = append(q.Resources, r)
	resp := ask[*kmsg.AlterConfigsResponse](w, 2, q).Resources[0]
	if resp.ErrorMessage != nil {
		text = *resp.ErrorMessage
	}
	return errorName(resp.ErrorCode), text
}

// TestReport09Configs: all settings are described, with their sources and
// synonyms; AlterConfigs replaces the set and IncrementalAlterConfigs does not;
// and all of it is the same after a restart. (redpanda#978)
func TestReport09Configs(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	topic, broker := kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker
	s.cli(t, "", "topic", "create", "t", "--config", "retention.ms=100000", "--config", "max.message.bytes=5000")

	all := w.described(topic, "t")
	for name := range obeyedConfigs {
		if all[name] == "" {
			t.Errorf("%s is not described", name)
		}
	}
	for name, want := range map[string]string{
		"retention.ms":          "100000 DYNAMIC_TOPIC_CONFIG retention.ms=100000:DYNAMIC_TOPIC_CONFIG log.retention.ms=604800000:DEFAULT_CONFIG",
		"segment.index.bytes":   "10485760 DEFAULT_CONFIG log.index.size.max.bytes=10485760:DEFAULT_CONFIG",
		"remote.storage.enable": "false DEFAULT_CONFIG remote.storage.enable=false:DEFAULT_CONFIG read-only",
	} {
		if all[name] != want {
			t.Errorf("%s: %q, want %q", name, all[name], want)
		}
	}
	own := func(want ...string) {
		t.Helper()
		var got []string
		for name, line := range w.described(topic, "t") {
			if value, rest, _ := strings.Cut(line, " "); strings.HasPrefix(rest, "DYNAMIC_TOPIC_CONFIG") {
				got = append(got, name+"="+value)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the topic has %q, want %q", got, want)
		}
	}
	wants := func(code, text, want, says string) {
		t.Helper()
		if code != want || !strings.Contains(text, says) {
			t.Errorf("%q, %q; want %q that says %q", code, text, want, says)
		}
	}
	refuse := func(kind kmsg.ConfigResourceType, name, want, says string, settings ...string) {
		t.Helper()
		code, text := w.replaceConfigs(kind, name, false, settings...)
		wants(code, text, want, says)
	}

	s.setConfig(t, "t", "retention.ms", "200000")
	own("max.message.bytes=5000", "retention.ms=200000")
	if code, text := w.replaceConfigs(topic, "t", true, "cleanup.policy=compact"); code != "" {
		t.Errorf("validation: %s, %s", code, text)
	}
	refuse(topic, "t", "INVALID_CONFIG", "nosuch", "cleanup.policy=compact", "nosuch=1")
	refuse(topic, "t", "INVALID_CONFIG", "retention.ms", "cleanup.policy=compact", "retention.ms=soon")
	refuse(topic, "nosuch", "UNKNOWN_TOPIC_OR_PARTITION", "nosuch", "cleanup.policy=compact")
	refuse(broker, "1", "INVALID_REQUEST", "leave the broker's name empty", "num.partitions=3")
	refuse(broker, "", "INVALID_CONFIG", "nosuch", "num.partitions=3", "nosuch=1")
	own("max.message.bytes=5000", "retention.ms=200000")
	if code, text := w.replaceConfigs(topic, "t", false, "retention.ms=300000"); code != "" {
		t.Errorf("%s, %s", code, text)
	}
	own("retention.ms=300000")
	if code, text := w.replaceConfigs(broker, "", false, "log.retention.ms=7200000", "max.message.bytes.is.no=1"); code != "INVALID_CONFIG" {
		t.Errorf("%s, %s", code, text)
	}
	if code, text := w.replaceConfigs(broker, "", false, "log.retention.ms=7200000"); code != "" {
		t.Errorf("%s, %s", code, text)
	}

	before := []map[string]string{w.described(topic, "t"), w.described(broker, s.node(t)), w.described(broker, ""), w.described(topic, "t", "retention.ms")}
	if len(before[2]) != 1 || len(before[3]) != 1 || len(before[1]) < 30 {
		t.Errorf("%d settings of all brokers, %d by name, %d of one broker", len(before[2]), len(before[3]), len(before[1]))
	}
	s.kill()
	s = start(t, s.dir)
	w = s.dial(t)
	after := []map[string]string{w.described(topic, "t"), w.described(broker, s.node(t)), w.described(broker, ""), w.described(topic, "t", "retention.ms")}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
}
