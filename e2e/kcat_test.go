package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// kcat runs kcat against the server; what it writes to stderr is a failure.
func (s *server) kcat(t *testing.T, stdin []byte, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kcat", append([]string{"-b", s.kafka, "-q"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// TestKcatBatches: compressed batches of many records, read from each of their offsets.
func TestKcatBatches(t *testing.T) {
	const records = 20
	s := start(t, t.TempDir())
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			s.cli(t, "", "topic", "create", codec)
			// One batch: nothing is sent before all of it is there.
			s.kcat(t, []byte(lines(records, "record %d")), "-P", "-t", codec, "-p", "0", "-z", codec, "-X", "linger.ms=200")
			if got := s.kcat(t, nil, "-C", "-t", codec, "-p", "0", "-o", "beginning", "-e"); got != lines(records, "record %d") {
				t.Fatalf("read back %q", got)
			}
			for offset := range records {
				got := s.kcat(t, nil, "-C", "-t", codec, "-p", "0", "-o", strconv.Itoa(offset), "-c", "1", "-f", "%o %s")
				if want := fmt.Sprintf("%d record %d", offset, offset); got != want {
					t.Errorf("from offset %d: %q, want %q", offset, got, want)
				}
			}
			if out := s.cli(t, "", "consume", codec, "--exit", "--from", "7", "--count", "1"); out != "record 7\n" {
				t.Errorf("siltstone consume from 7: %q", out)
			}
		})
	}
	s.stop(t)
	if r := check(t, s.dir); r.Records != int64(records*len(codecs)) {
		t.Errorf("check counts %d records", r.Records)
	}
}

// TestKcatNulls: null and empty are told apart, and repeated headers keep their order.
func TestKcatNulls(t *testing.T) {
	s := start(t, t.TempDir())
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			s.cli(t, "", "topic", "create", codec)
			for _, args := range [][]string{{"-Z"}, nil} { // -Z: empty is null
				s.kcat(t, []byte(":\nk:\n:v\nk:v\n"), append([]string{
					"-P", "-t", codec, "-p", "0", "-z", codec, "-K:", "-H", "h=1", "-H", "h=", "-H", "h", "-H", "g=2", "-H", "h=1",
				}, args...)...)
			}
			got := s.kcat(t, nil, "-C", "-t", codec, "-p", "0", "-o", "beginning", "-e", "-f", "%o %K %S %h\n")
			var want strings.Builder
			for i, lengths := range []string{"-1 -1", "1 -1", "-1 1", "1 1", "0 0", "1 0", "0 1", "1 1"} {
				fmt.Fprintf(&want, "%d %s h=1,h=,h=NULL,g=2,h=1\n", i, lengths)
			}
			if got != want.String() {
				t.Errorf("read back\n%swant\n%s", got, want.String())
			}
		})
	}
}

// TestKcatLimits: a record above the reader's limits comes whole, and what follows too.
func TestKcatLimits(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "large", "-c", "max.message.bytes=2097152")
	large := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, large, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, codec := range codecs {
		s.kcat(t, nil, "-P", "-t", "large", "-p", "0", "-z", codec, "-X", "message.max.bytes=2097152", file)
	}
	s.kcat(t, []byte(lines(10, "small %d")), "-P", "-t", "large", "-p", "0")
	for _, limit := range []string{"1000", "1", "1048576"} {
		got := s.kcat(t, nil, "-C", "-t", "large", "-p", "0", "-o", "beginning", "-e", "-D", "", "-X", "fetch.message.max.bytes="+limit)
		want := slices.Concat(bytes.Repeat(large, len(codecs)), []byte(strings.ReplaceAll(lines(10, "small %d"), "\n", "")))
		if got != string(want) {
			t.Errorf("with a fetch limit of %s: %d bytes, want %d", limit, len(got), len(want))
		}
	}
	s.cli(t, "", "topic", "create", "small")
	cmd := exec.CommandContext(t.Context(), "kcat", "-b", s.kafka, "-P", "-t", "small", "-p", "0", "-X", "message.max.bytes=2097152", file)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "too large") {
		t.Errorf("1 MiB into a topic that takes less: %v %s", err, out)
	}
}

// TestKcatFile sends a file of distinct lines through each codec and gets it
// back byte for byte.
func TestKcatFile(t *testing.T) {
	text := varied(t, count(10<<20, 100<<20))
	s := start(t, t.TempDir())
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			s.cli(t, "", "topic", "create", codec)
			s.kcat(t, text, "-P", "-t", codec, "-p", "0", "-z", codec)
			got := s.kcat(t, nil, "-C", "-t", codec, "-p", "0", "-o", "beginning", "-e")
			if got != string(text) {
				t.Errorf("%d bytes went in, %d came out; they differ from byte %d on", len(text), len(got), firstDifference(string(text), got))
			}
		})
	}
	s.stop(t)
	r := check(t, s.dir)
	t.Logf("%d bytes through %d codecs: %d records in %d objects", len(text), len(codecs), r.Records, r.Objects)
}

func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
