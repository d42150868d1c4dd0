package siltstone_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// running is where make up keeps what changes meanwhile.
var running = filepath.Join("localstack", "run")

var link = regexp.MustCompile(`\]\(([^)#\s]+)`)

// TestDocs follows the links between the project's own pages and files.
func TestDocs(t *testing.T) {
	pages := 0
	err := filepath.WalkDir(".", func(page string, d fs.DirEntry, err error) error {
		if d.IsDir() && page != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || page == running) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(page, ".md") {
			return err
		}
		pages++
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 5 {
		t.Errorf("only %d pages found", pages)
	}
}
