package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

func TestOpenFolder(t *testing.T) {
	const stamp = "siltstone data folder, format 1\n"
	tests := []struct {
		name      string
		files     map[string]string
		mayCreate bool
		says      string // of the error; empty: there is none
	}{
		{"new", nil, true, ""},
		{"new, for reading", nil, false, "there is no data in it"},
		{"a mount point", map[string]string{"lost+found": ""}, true, ""},
		{"a start that was interrupted", map[string]string{"FORMAT.new": "silt"}, true, ""},
		{"ours", map[string]string{"FORMAT": stamp, "cluster.db": "x"}, true, ""},
		{"ours, for reading", map[string]string{"FORMAT": stamp}, false, ""},
		{"foreign", map[string]string{"mail.txt": ""}, true, "other files (mail.txt)"},
		{"foreign stamp", map[string]string{"FORMAT": "tar"}, true, "not Siltstone's"},
		{"empty stamp", map[string]string{"FORMAT": ""}, true, "not Siltstone's"},
		{"no number", map[string]string{"FORMAT": stampPrefix + "one"}, true, "not Siltstone's"},
		{"number 0", map[string]string{"FORMAT": stampPrefix + "0"}, true, "not Siltstone's"},
		{"newer", map[string]string{"FORMAT": stampPrefix + "2\n"}, true, "start the newer one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			for name, text := range tt.files {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := openFolder(dir, tt.mayCreate)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v, want one that says %q", err, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "FORMAT")); err != nil || string(got) != stamp {
				t.Errorf("FORMAT is %q, %v", got, err)
			}
			if err := openFolder(dir, false); err != nil {
				t.Errorf("opened again: %v", err)
			}
		})
	}
}

func TestOpenFolderForReadingMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nosuch")
	if err := openFolder(dir, false); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestExplainFolder(t *testing.T) {
	for _, tt := range []struct {
		err  error
		says string
	}{
		{coordinator.ErrLocked, "another siltstone uses it"},
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EDQUOT, "the disk is full"},
		{syscall.EROFS, "read-only"},
		{fs.ErrPermission, "no permission"},
		{syscall.EACCES, "no permission"},
		{syscall.ENOTDIR, "not a folder"},
		{siltstone.ErrNewerFormat, "a newer release"},
		{errors.New("odd"), "odd"},
	} {
		// As it comes: under the names of what was tried, and of a path.
		err := explainFolder("/d", fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "/d/x", Err: tt.err}))
		if text := err.Error(); !strings.HasPrefix(text, "data folder /d: ") || !strings.Contains(text, tt.says) || strings.Contains(text, "\n") {
			t.Errorf("%v: %q does not say %q", tt.err, text, tt.says)
		}
		if !errors.Is(err, tt.err) {
			t.Errorf("%v is not in what explains it", tt.err)
		}
	}
}
