package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestParseServers(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1:9092":         "127.0.0.1:9092",
		"kafka":                  "kafka:9092",
		"kafka-1, kafka-2:19092": "kafka-1:9092 kafka-2:19092",
		"a,,b,":                  "a:9092 b:9092",
		":9092":                  ":9092",
		"::1":                    "[::1]:9092",
		"[::1]":                  "[::1]:9092",
		"[::1]:1":                "[::1]:1",
		"[fe80::1%eth0]:1":       "[fe80::1%eth0]:1",
		"10.0.0.1":               "10.0.0.1:9092",
		"a.b.example:65535":      "a.b.example:65535",
	} {
		got, err := parseServers(in)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q is %q (%v), want %q", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"":                "names no address",
		" , ":             "names no address",
		"a:0":             `from 1 to 65535, not "0"`,
		"a:65536":         `from 1 to 65535, not "65536"`,
		"a,b:99999":       `"b:99999" is not an address`,
		"a:":              `not ""`,
		"a:kafka":         `not "kafka"`,
		"9092":            `"9092" is not an address like 127.0.0.1:9092`,
		"http://a":        "1 to 65535",
		"kafka://a:9092":  "no host",
		"a b":             "no host",
		"user@a:9092":     "no host",
		"::1:9092:x":      "no host",
		"[::1]9092":       "no host",
		"a:9092 b:9092":   "no host",
		"127.0.0.1:9092/": "1 to 65535",
	} {
		if got, err := parseServers(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %q (%v), want %q", in, got, err, says)
		}
	}
}

// TestSeeds: the flag, or else the environment, or else the default.
func TestSeeds(t *testing.T) {
	for _, tt := range []struct {
		env  string
		args []string
		want []string
	}{
		{"", nil, []string{defaultKafka}},
		{"a,b:1", nil, []string{"a:9092", "b:1"}},
		{"a", []string{"--kafka", "c"}, []string{"c:9092"}},
		{"a", []string{"-b", defaultKafka}, []string{defaultKafka}},
	} {
		t.Setenv(serversVariable, tt.env)
		var c client
		cmd := &cobra.Command{Run: func(*cobra.Command, []string) {}}
		c.register(cmd)
		cmd.SetArgs(tt.args)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		got, err := c.seeds()
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%q, %v: %v\n%s", tt.env, tt.args, err, diff)
		}
	}
	t.Setenv(serversVariable, "a:99999")
	c := client{given: func() bool { return false }}
	_, err := c.seeds()
	if usage, ok := errors.AsType[*usageError](err); !ok || !strings.HasPrefix(usage.Error(), `SILTSTONE_KAFKA: "a:99999" is not`) {
		t.Errorf("a wrong variable: %v", err)
	}
}
