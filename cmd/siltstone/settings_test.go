package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// settled parses arguments of the agent, and says what came of its settings.
func settled(t *testing.T, args ...string) (flags map[string]string, err error) {
	t.Helper()
	root := newRoot()
	agent, _, err := root.Find([]string{"agent"})
	if err != nil {
		t.Fatal(err)
	}
	flags = map[string]string{}
	agent.RunE = func(cmd *cobra.Command, _ []string) error {
		err := readSettings(cmd)
		for _, name := range []string{"bucket", "flush-wait", "zone", "kafka", "memory"} {
			flags[name] = cmd.Flags().Lookup(name).Value.String()
		}
		return err
	}
	root.SetArgs(append([]string{"agent"}, args...))
	return flags, root.ExecuteContext(t.Context())
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.properties")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSettings(t *testing.T) {
	path := settingsFile(t, "# where\nbucket = s3://of-the-file/${x}\nflush-wait=1s\nzone: c\ndata=of-check\n")
	t.Setenv("SILTSTONE_FLUSH_WAIT", "2s")
	t.Setenv("SILTSTONE_ZONE", "b")
	t.Setenv("SILTSTONE_MEMORY", "")
	got, err := settled(t, "--config", path, "--zone", "a")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"bucket": "s3://of-the-file/${x}", "flush-wait": "2s", "zone": "a", "kafka": defaultKafka, "memory": defaultMemory}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	t.Setenv("SILTSTONE_CONFIG", path)
	if got, err := settled(t); err != nil || got["bucket"] != want["bucket"] {
		t.Errorf("the file that the environment names: %v, %v", got, err)
	}
}

func TestWrongSettings(t *testing.T) {
	for name, c := range map[string]struct{ file, env, says string }{
		"an unknown one":         {"flushwait=1s", "", `no setting "flushwait"`},
		"one that is for a call": {"json=true", "", `no setting "json"`},
		"no duration, in a file": {"flush-wait=soon", "", "flush-wait in "},
		"no duration":            {"", "soon", "SILTSTONE_FLUSH_WAIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SILTSTONE_FLUSH_WAIT", c.env)
			_, err := settled(t, "--config", settingsFile(t, c.file))
			if _, wrong := err.(*usageError); !wrong || !strings.Contains(err.Error(), c.says) { //nolint:errorlint // it is the outermost
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := settled(t, "--config", filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}
