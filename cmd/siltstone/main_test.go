package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestWrongArguments(t *testing.T) {
	for _, tt := range []struct{ args, says string }{
		{"nosuch", "nosuch"},
		{"nosuch", "(see siltstone --help)"},
		{"tpoic list", "did you mean topic? (see siltstone --help)"},
		{"topic nosuch", `unknown command "nosuch" (see siltstone topic --help)`},
		{"topic crate t", "did you mean create? (see siltstone topic --help)"},
		{"help nosuch", `unknown command "nosuch" (see siltstone --help)`},
		{"help topic nosuch", `unknown command "nosuch" (see siltstone topic --help)`},
		{"topic create", "give at least one TOPIC"},
		{"topic create t -p 99999999999", `"-p, --partitions" flag: value out of range (see siltstone topic create --help)`},
		{"topic create t -p many", `"-p, --partitions" flag: invalid syntax (see`},
		{"topic list --json=perhaps", `"--json" flag: invalid syntax (see`},
		{"topic create t --nosuch", "(see siltstone topic create --help)"},
		{"topic create t --config a", "not name=value"},
		{"topic create t -p 0", "--partitions is 1 or above, or -1, not 0"},
		{"topic create t -p -2", "--partitions is 1 or above, or -1, not -2"},
		{"topic create t --replication-factor 0", "--replication-factor is 1 or above, or -1, not 0"},
		{"topic create t --replication-factor 99999", "value out of range"},
		{"topic list extra", `takes no argument such as "extra"`},
		{"topic list --kafka", "flag needs an argument"},
		{"topic describe", "give at least one TOPIC"},
		{"topic delete", "give at least one TOPIC"},
		{"topic delete-records", "give one TOPIC"},
		{"topic delete-records a b --before end", "give one TOPIC, not 2 arguments"},
		{"group list extra", `takes no argument such as "extra"`},
		{"group list --state Stabel", "--state is of Empty"},
		{"group describe", "give at least one GROUP"},
		{"group describe g --sample=-1s", "--sample -1s is below 0"},
		{"group reset g", "give one of --to-earliest"},
		{"group reset g --to-latest --shift-by 1", "give one of --to-earliest"},
		{"group reset g --to-time yesterday", "--to-time"},
		{"group reset g --to-latest --topic t:x", "--topic is like"},
		{"group reset --to-latest", "give one GROUP"},
		{"group reset g --to-offset -1", "--to-offset -1 is below 0"},
		{"group reset g --to-offset one", "invalid syntax"},
		{"group reset g --shift-by 1.5", "invalid syntax"},
		{"group reset g --to-earliest=false", "--to-earliest=false"},
		{"group describe g --sample soon", "--sample"},
		{"group delete", "give at least one GROUP"},
		{"produce a b", "give one TOPIC, not 2 arguments"},
		{"produce t --acks most", "--acks"},
		{"produce t --compression brotli", "--compression"},
		{"produce t --acks 2", "--acks is all, leader or none"},
		{"produce", "give one TOPIC"},
		{"agent --bucket s3://b --coordinator dynamodb://t --kafka 127.0.0.1:0 --http 127.0.0.1:0 --peer nowhere", "--peer"},
		{"agent --bucket s3://b --coordinator dynamodb://t --kafka 127.0.0.1:0 --http 127.0.0.1:0 --advertise-peer 0.0.0.0:1", "--advertise-peer"},
		{"produce t -K \\", "--key-separator"},
		{"produce t -K \\q", "--key-separator"},
		{"produce t -p first", "invalid syntax"},
		{"produce t --header h", "--header"},
		{"produce t -p -2", "--partition"},
		{"produce t --json --key k", "--json reads keys"},
		{"produce t --json --file f", "--json reads keys"},
		{"produce t --key k -K :", "give --key or --key-separator"},
		{"produce t --file f -K :", "a file is a record"},
		{"produce t --keep-partitions", "goes with --json"},
		{"produce t --json --keep-partitions -p 1", "without --partition"},
		{"consume t --from yesterday", "--from"},
		{"consume t --from=-1", "--from"},
		{"consume t -p -2", "--partition"},
		{"consume t -p 1-", "--partition"},
		{"consume t -n -1", "--count"},
		{"consume t -n some", "invalid syntax"},
		{"consume", "give one TOPIC"},
		{"consume a b", "give one TOPIC, not 2 arguments"},
		{"consume t --from 2026-02-30", "--from"},
		{"consume t --group g --from 2026-02-28", "siltstone group reset"},
		{"consume t --until soon", "--until"},
		{"consume t --until beginning", "leaves nothing to read"},
		{"consume t --until end --exit", "--exit or --until"},
		{"consume t --keys --json", "give one of --keys"},
		{"consume t --format %q", "--format"},
		{"consume t --isolation none", "--isolation is read_committed or read_uncommitted"},
		{"consume t --group g --from 3", "siltstone group reset"},
		{"consume t --group g --partition 3", "not for it"},
		{"consume t --group g --until 3", "not for it"},
		{"topic alter t", "give what to change"},
		{"topic alter t -p -1", "--partitions is 1 or above, not -1"},
		{"topic alter t -p 0", "--partitions is 1 or above, not 0"},
		{"topic alter -p 3", "give at least one TOPIC"},
		{"topic alter t -c =1", "not name=value"},
		{"topic alter t -c a=1 --delete-config a", "both about a"},
		{"topic delete-records t", "give --before"},
		{"topic delete-records t --before then", "--before"},
		{"topic delete-records t --before end -p x", "--partition"},
		{"cluster alter", "give what to change"},
		{"cluster alter -c num.partitions", "not name=value"},
		{"cluster describe extra", `takes no argument such as "extra"`},
		{"segment dump", "give at least one FILE"},
		{"segment verify", "give at least one FILE"},
		{"version extra", `takes no argument such as "extra"`},
		{"completion", "give one SHELL"},
		{"completion csh", "SHELL is bash"},
		{"dev extra", `takes no argument such as "extra" (see siltstone dev --help)`},
		{"dev --log-level loud", "--log-level is debug, info, warn or error"},
		{"dev --kafka 9092 --data /proc/nosuch", `--kafka "9092" is not an address like`},
		{"dev --http localhost --data /proc/nosuch", `--http "localhost" is not an address like`},
		{"dev --pprof 6060 --data /proc/nosuch", `--pprof "6060" is not an address like`},
		{"dev --kafka 127.0.0.1:99999 --data /proc/nosuch", "the port is a number from 0 to 65535, not 99999"},
		{"dev --kafka 127.0.0.1:1 --http 127.0.0.1:1 --data /proc/nosuch", "--kafka and --http are both 127.0.0.1:1"},
		{"dev --advertise example.org --data /proc/nosuch", `--advertise "example.org" is not an address like`},
		{"dev --advertise 0.0.0.0:9092 --data /proc/nosuch", "no address that anybody can come to"},
		{"dev --memory 10MiB --data /proc/nosuch", "--memory 10MiB is too little"},
		{"dev --memory much --data /proc/nosuch", `--memory "much" is not a size`},
		{"dev --data=", "--data names no folder"},
		{"check --data=", "--data names no folder"},
		{"check extra", `takes no argument such as "extra" (see siltstone check --help)`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), strings.Fields(tt.args), strings.NewReader(""), &out, &errs)
			text := errs.String()
			if code != exitUsage || out.Len() > 0 || strings.Count(text, "\n") != 1 || !strings.Contains(text, tt.says) {
				t.Errorf("code %d, stdout %q, stderr %q; want 2, nothing, a line with %q", code, out.String(), text, tt.says)
			}
		})
	}
}

// TestEmptyArguments: what a shell makes of a variable that is not set is no
// call for something else.
func TestEmptyArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"topic", "delete", "a", ""}, "TOPIC is empty"},
		{[]string{"topic", "create", ""}, "TOPIC is empty"},
		{[]string{"group", "delete", ""}, "GROUP is empty"},
		{[]string{"consume", ""}, "TOPIC is empty"},
		{[]string{"consume", "t", "--group", ""}, "--group is empty"},
		{[]string{"consume", "t", "--partition", ""}, "--partition is empty"},
		{[]string{"consume", "t", "--until", ""}, "--until is empty"},
		{[]string{"consume", "t", "--from", ""}, "--from"},
		{[]string{"topic", "delete-records", "t", "--before", "end", "--partition", ""}, "--partition is empty"},
		{[]string{"topic", "delete-records", "t", "--before", ""}, "give --before"},
		{[]string{"group", "reset", "g", "--to-latest", "--topic", ""}, "--topic is like"},
		{[]string{"topic", "list", "--kafka", ""}, "names no address"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), tt.args, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%q: code %d, %q, want %q", tt.args, code, errs.String(), tt.says)
		}
	}
}

// TestWrongServers: every command that talks to a cluster refuses what cannot
// be the address of one, of its flag and of the environment.
func TestWrongServers(t *testing.T) {
	for _, args := range []string{
		"topic create t", "topic list", "topic describe t", "topic alter t -p 3", "topic delete t", "topic delete-records t --before end",
		"produce t", "consume t", "consume t --group g",
		"group list", "group describe g", "group reset g --to-latest", "group delete g",
		"cluster describe", "cluster alter -c a=1",
	} {
		for _, servers := range []string{"127.0.0.1:99999", "9092", "127.0.0.1:kafka", "127.0.0.1:0", "a,http://b:1"} {
			for _, from := range []string{"--kafka", serversVariable} {
				words := strings.Fields(args)
				if from == "--kafka" {
					t.Setenv(serversVariable, "")
					words = append(words, from, servers)
				} else {
					t.Setenv(serversVariable, servers)
				}
				var out, errs bytes.Buffer
				code := run(t.Context(), words, strings.NewReader("line\n"), &out, &errs)
				text := errs.String()
				if code != exitUsage || out.Len() > 0 || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "siltstone: "+from+": ") || !strings.Contains(text, "not an address like 127.0.0.1:9092") {
					t.Errorf("%s, %s %s: code %d, stdout %q, stderr %q", args, from, servers, code, out.String(), text)
				}
			}
		}
	}
}

// TestErrors: what is called in the right way and fails is code 1, and a reader
// that goes away no error.
func TestErrors(t *testing.T) {
	var out, errs bytes.Buffer
	for _, tt := range []struct{ args, says string }{
		{"segment verify /nosuch/file", "no such file"},
		{"segment dump /nosuch/file", "no such file"},
		{"segment dump .", "is a directory"},
		{"segment dump main_test.go", "main_test.go: this is no segment: it neither begins nor ends like one"},
		{"segment verify main_test.go", "1 of 1 segment damaged"},
		{"topic list --kafka 127.0.0.1:1", "no Kafka server answers at 127.0.0.1:1: start one"},
		{"topic list --kafka 127.0.0.1:1,127.0.0.1:2", "no Kafka server answers at 127.0.0.1:1 or 127.0.0.1:2: start one"},
		{"produce t --kafka 127.0.0.1:1", "no Kafka server answers"},
		{"consume t --kafka 127.0.0.1:1", "no Kafka server answers"},
		{"group list --kafka 127.0.0.1:1", "no Kafka server answers"},
	} {
		errs.Reset()
		if code := run(t.Context(), strings.Fields(tt.args), strings.NewReader(""), &out, &errs); code != exitError || !strings.Contains(errs.String(), tt.says) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: code %d, %q, want %q", tt.args, code, errs.String(), tt.says)
		}
	}
	errs.Reset()
	out.Reset()
	if code := run(t.Context(), []string{"version", "--json"}, nil, gone{}, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("where nobody reads: code %d, %q", code, errs.String())
	}
}

// TestInterrupted: what is interrupted says so in people's words.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"topic list", "group describe g", "consume t", "produce t"} {
		var out, errs bytes.Buffer
		if code := run(ctx, strings.Fields(args+" --kafka 127.0.0.1:1"), strings.NewReader(""), &out, &errs); code != exitError || errs.String() != "siltstone: interrupted before it was done\n" {
			t.Errorf("%s: code %d, %q", args, code, errs.String())
		}
	}
}

// gone is a pipe that nobody reads from.
type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
}

// TestHelp: every command explains itself, with an example.
func TestHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRoot())
}

// TestHelpOf: help takes the name of a command at any depth.
func TestHelpOf(t *testing.T) {
	for _, name := range []string{"dev", "topic", "topic create"} {
		var asked, flagged, errs bytes.Buffer
		args := strings.Fields(name)
		code := run(t.Context(), append([]string{"help"}, args...), nil, &asked, &errs)
		code += run(t.Context(), append(args, "--help"), nil, &flagged, &errs)
		if code != 0 || errs.Len() > 0 || asked.Len() == 0 || asked.String() != flagged.String() {
			t.Errorf("help %s: code %d, %q\n%s", name, code, errs.String(), cmp.Diff(flagged.String(), asked.String()))
		}
	}
}

// TestHelpWidth: help fits a terminal of 100 columns.
func TestHelpWidth(t *testing.T) {
	visit(newRoot(), func(cmd *cobra.Command) {
		var out bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := run(t.Context(), args, nil, &out, &out); code != 0 || out.Len() == 0 {
			t.Errorf("%v: code %d", args, code)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
				t.Errorf("%v: %d columns: %q", args, n, line)
			}
		}
	})
}

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		var out bytes.Buffer
		if code := run(t.Context(), []string{how}, nil, &out, &out); code != 0 || out.String() != thisVersion().String()+"\n" || !strings.HasPrefix(out.String(), "siltstone "+version) {
			t.Errorf("%s: code %d, %q", how, code, out.String())
		}
	}
}
