package e2e

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// varied is n bytes or a little more of distinct lines: source and
// documentation of Go and of the modules on this machine.
func varied(t *testing.T, n int) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	seen := map[uint64]bool{}
	seed := maphash.MakeSeed()
	enough := errors.New("enough")
	for _, root := range strings.Fields(string(out)) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isText(path) {
				return err
			}
			file, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range bytes.Lines(file) {
				line = bytes.TrimRight(line, "\r\n")
				if h := maphash.Bytes(seed, line); len(line) > 0 && len(line) < 100_000 && !seen[h] {
					seen[h] = true
					text.Write(line)
					text.WriteByte('\n')
				}
			}
			if text.Len() >= n {
				return enough
			}
			return nil
		})
		if errors.Is(err, enough) {
			return text.Bytes()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("this machine has only %d bytes of text", text.Len())
	return nil
}

func isText(path string) bool {
	switch filepath.Ext(path) {
	case ".go", ".md", ".txt", ".html", ".s", ".c", ".h", ".java", ".json", ".yml", ".js", ".py":
		return true
	}
	return false
}
