package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestHTTPPage does what docs/http.md shows, and follows a partition as its
// script does.
func TestHTTPPage(t *testing.T) {
	folderless(t)
	steps := readSteps(t, "http.md")
	if len(steps) < 15 {
		t.Fatalf("only %d steps found", len(steps))
	}
	shell := startTourShell(t)
	shell.take(t, steps...)

	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "```sh\n")
	script, _, _ = strings.Cut(script, "```")
	shell.take(t,
		tourStep{strings.TrimSpace(script) + " &", "{\"offset\":0,…\n{\"offset\":1,…\n{\"offset\":2,…\n"},
		tourStep{
			"curl -s localhost:8080/api/v1/topics/orders/partitions/0/records -H 'Content-Type: text/plain' -d more >answer &",
			"{\"offset\":3,…\"value\":\"more\",…\n",
		},
	)
}
