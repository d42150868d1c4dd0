package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDevWithoutPorts: where a port is taken, nothing is made or changed, and a
// folder that is taken too is what is said.
func TestDevWithoutPorts(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ended, held := filepath.Join(t.TempDir(), "data"), t.TempDir()
	newFolder(t, ended)
	before := files(t, ended)
	s, err := openStores(held)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	fresh := filepath.Join(t.TempDir(), "data")
	for _, tt := range []struct{ dir, says string }{
		{fresh, "in use by another program"},
		{ended, "in use by another program"},
		{held, "another siltstone uses it"},
	} {
		for _, flag := range []string{"kafka", "http", "pprof"} {
			args := []string{"dev", "--data", tt.dir, "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--" + flag, taken.Addr().String()}
			var out, errs bytes.Buffer
			if code := run(t.Context(), args, nil, &out, &errs); code != exitError || out.Len() > 0 || !strings.Contains(errs.String(), tt.says) {
				t.Errorf("--%s is taken: code %d, %s%s; want 1, and %q", flag, code, out.String(), errs.String(), tt.says)
			}
		}
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
	if diff := cmp.Diff(before, files(t, ended)); diff != "" {
		t.Error(diff)
	}
}
