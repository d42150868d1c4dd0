package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrongArguments(t *testing.T) {
	for _, tt := range []struct{ args, says string }{
		{"nosuch", "nosuch"},
		{"topic nosuch", `unknown command "nosuch" (see siltstone topic --help)`},
		{"topic create", "give one TOPIC"},
		{"topic create t --nosuch", "see siltstone topic create --help"},
		{"topic create t --config a", "not name=value"},
		{"topic list --kafka 9092", "not an address"},
		{"produce a b", "give one TOPIC, not 2 arguments"},
		{"produce t --acks most", "--acks"},
		{"produce t --compression brotli", "--compression"},
		{"produce t --header h", "--header"},
		{"consume t --from yesterday", "--from"},
		{"consume t --from=-1", "--from"},
		{"segment verify /nosuch/file", "no such file"},
		{"dev extra", "extra"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), strings.Fields(tt.args), strings.NewReader(""), &out, &errs)
			text := errs.String()
			if code != 1 || out.Len() > 0 || strings.Count(text, "\n") != 1 || !strings.Contains(text, tt.says) {
				t.Errorf("code %d, stdout %q, stderr %q; want 1, nothing, a line with %q", code, out.String(), text, tt.says)
			}
		})
	}
}

// TestHelp: every command explains itself, and those that do something have an example.
func TestHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && cmd.Name() != "version" && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRoot())
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"version"}, nil, &out, &out); code != 0 || !strings.HasPrefix(out.String(), "siltstone "+version) {
		t.Errorf("code %d, %q", code, out.String())
	}
}
