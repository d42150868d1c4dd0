package gateway

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPage: docs/http.md has each call, parameter, error and metric.
func TestPage(t *testing.T) {
	file, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(file)
	has := func(what, text string) {
		t.Helper()
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %s: %s", what, text)
		}
	}
	for _, c := range calls {
		path := strings.NewReplacer("{topic}", "{t}", "{partition}", "{p}").Replace(c.path)
		has("the path", path)
		for _, p := range c.params {
			has("the parameter", p)
		}
	}
	for _, c := range classes {
		row := fmt.Sprintf("| %d | `", c.number)
		has("the error", row)
		if _, rest, _ := strings.Cut(page, row); !strings.Contains(strings.SplitN(rest, "|", 2)[0], c.code) {
			t.Errorf("the page gives %d another code than %s", c.number, c.code)
		}
	}
	for _, name := range append(append([]string{"text/event-stream", typeBatches}, notYetHeaders...), notYetParams...) {
		has("what is not served", strings.ReplaceAll(name, "Last-Event-Id", "Last-Event-ID"))
	}
	f := start(t)
	f.create("t", 1)
	f.do("GET", recordsOf, "").ok()
	metrics, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics {
		has("the metric", m.GetName())
	}
	for path := range instead {
		if !slices.ContainsFunc(calls, func(c call) bool { return c.path == path }) {
			t.Errorf("there is no call at %s", path)
		}
	}
}
