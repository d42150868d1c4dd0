package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/siltstone-io/siltstone/tiered/check"
)

var update = flag.Bool("update", false, "write docs/reference.md anew")

const referencePage = "../../docs/reference.md"

// printedAsJSON is what each command with --json prints.
var printedAsJSON = map[string]any{
	"siltstone topic create":         []listedTopic{},
	"siltstone topic list":           []listedTopic{},
	"siltstone topic describe":       []describedTopic{},
	"siltstone topic delete":         []deletedTopic{},
	"siltstone topic delete-records": []trimmedPartition{},
	"siltstone produce":              jsonRecord{},
	"siltstone consume":              jsonRecord{},
	"siltstone group list":           []listedGroup{},
	"siltstone group describe":       []describedGroup{},
	"siltstone group reset":          resetGroup{},
	"siltstone group delete":         []deletedGroup{},
	"siltstone cluster init":         begunCluster{},
	"siltstone cluster describe":     describedCluster{},
	"siltstone segment dump":         []dumpedSegment{},
	"siltstone segment verify":       []verifiedSegment{},
	"siltstone check":                check.Report{},
	"siltstone cost":                 bill{},
	"siltstone version":              buildVersion{},
}

const referenceHead = `# Command line reference

<!-- go test ./cmd/siltstone -run TestReference -update writes this page from the commands -->

One binary, ` + "`siltstone`" + `. The [tour](tour.md) shows it at work. ` + "`siltstone COMMAND --help`" + ` says what this page says.

- What is asked for goes to standard output. Errors, warnings and what was done go to standard error; on a terminal, long work shows how far it is there.
- ` + "`--json`" + ` prints the same for programs. Fields keep their names and their meaning; new ones may be added. ` + "`?`" + ` marks a field that may be missing, ` + "`or null`" + ` one that may be null. Times are RFC 3339, and milliseconds since 1970 in records.
- The commands that talk to a cluster work with any that speaks Kafka's protocol. They find it at ` + "`--kafka`, or else where `SILTSTONE_KAFKA`" + ` in the environment says.

| exit code | means |
|---|---|
| 0 | done; also where Ctrl-C ends what would go on, or the reader of a pipe goes away |
| 1 | an error, which is one line that says what to do; also where ` + "`check` or `segment verify`" + ` finds damage, which is printed before |
| 2 | the command is called in a wrong way, and has done nothing |
| 130 | a second Ctrl-C or SIGTERM ended it at once: what it was about is not finished |
`

// TestReference: the page says what the commands say.
func TestReference(t *testing.T) {
	var page bytes.Buffer
	page.WriteString(referenceHead)
	visit(newRoot(), func(cmd *cobra.Command) { writeReference(t, &page, cmd) })
	if *update {
		if err := os.WriteFile(referencePage, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(there), page.String()); diff != "" {
		t.Errorf("the page is stale: go test ./cmd/siltstone -run TestReference -update writes it\n%s", diff)
	}
}

func visit(cmd *cobra.Command, see func(*cobra.Command)) {
	see(cmd)
	for _, child := range cmd.Commands() {
		visit(child, see)
	}
}

func writeReference(t *testing.T, page *bytes.Buffer, cmd *cobra.Command) {
	t.Helper()
	if cmd.HasSubCommands() && cmd.HasParent() {
		fmt.Fprintf(page, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
		return
	}
	level := "##"
	if cmd.HasParent() && cmd.Parent().HasParent() {
		level = "###"
	}
	if cmd.HasParent() {
		text := cmd.Long
		if text == "" {
			text = cmd.Short + "."
		}
		text = strings.ReplaceAll(text, "\n  ", "\n      ") // what is set apart is so in Markdown too
		fmt.Fprintf(page, "\n%s %s\n\n    %s\n\n%s\n\n", level, cmd.CommandPath(), cmd.UseLine(), text)
		fmt.Fprintf(page, "For example:\n\n%s\n", indented(strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n")))
	}
	writeFlags(page, cmd)
	if cmd.Flags().Lookup("json") == nil {
		return
	}
	sample, ok := printedAsJSON[cmd.CommandPath()]
	if !ok {
		t.Errorf("%s prints JSON, and printedAsJSON does not say which", cmd.CommandPath())
		return
	}
	fmt.Fprintf(page, "\n`--json`:\n\n%s\n", indented(shape(reflect.TypeOf(sample), "")))
}

func writeFlags(page *bytes.Buffer, cmd *cobra.Command) {
	var rows []string
	row := func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		flags := "--" + f.Name
		if f.Shorthand != "" {
			flags = "-" + f.Shorthand + ", " + flags
		}
		if name != "" {
			flags += " " + strings.ToUpper(name)
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			value = "`" + f.DefValue + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", flags, value, strings.ReplaceAll(usage, "|", `\|`)))
	}
	cmd.NonInheritedFlags().VisitAll(row)
	cmd.InheritedFlags().VisitAll(row)
	if len(rows) > 0 {
		fmt.Fprintf(page, "\n| flag | default | |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

// indented is text as code in Markdown.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    " + line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shape is what a type is in JSON.
func shape(t reflect.Type, indent string) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[[]any]():
		return `[[name, value], ...]`
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shape(t.Elem(), indent) + " or null"
	case reflect.Slice:
		return "[" + shape(t.Elem(), indent) + ", ...]"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct:
		return "{\n" + fields(t, indent+"  ") + indent + "}"
	}
	return "number"
}

func fields(t reflect.Type, indent string) string {
	var b strings.Builder
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		optional := ""
		if strings.Contains(options, "omitempty") {
			optional = "?"
		}
		fmt.Fprintf(&b, "%s%q%s: %s\n", indent, name, optional, shape(f.Type, indent))
	}
	return b.String()
}
