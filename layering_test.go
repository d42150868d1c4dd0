package siltstone_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/siltstone-io/siltstone"

// layers is the architecture: every package, its row, and what of this module
// its code may import ("." is the root). "a/..." is a and all below it.
// A package imports rows below its own or its own sub-packages; nothing
// sideways, nothing up. Row 0 has one order of its own: the root, then
// kafka/batch, then the rest. A new package gets a line here first.
var layers = []struct {
	row     int
	pkg     string
	imports string
}{
	// Formats, ports, words. Adapters and suites sit under their port.
	{0, ".", ""},
	{0, "internal/planted", ""},
	{0, "kafka/batch", "."},
	{0, "tiered/segment", ". kafka/batch"},
	{0, "tiered/bucket", "."},
	{0, "tiered/bucket/local", ". tiered/bucket"},
	{0, "tiered/bucket/memory", ". tiered/bucket"},
	{0, "tiered/bucket/faulty", ". tiered/bucket"},
	{0, "tiered/bucket/buckettest", ". tiered/bucket"},
	{0, "tiered/bucket/remote", ". tiered/bucket"},
	{0, "tiered/bucket/s3", ". tiered/bucket tiered/bucket/remote"},
	{0, "tiered/bucket/minio", ". tiered/bucket tiered/bucket/remote"},
	{0, "tiered/bucket/retry", ". tiered/bucket"},
	{0, "tiered/bucket/open", ". tiered/bucket tiered/bucket/remote tiered/bucket/s3 tiered/bucket/minio tiered/bucket/local tiered/bucket/retry"},
	{0, "coordinator", "."},
	{0, "coordinator/dynamo", ". coordinator"},
	{0, "coordinator/embedded", ". coordinator"},
	{0, "coordinator/memory", ". coordinator"},
	{0, "coordinator/faulty", ". coordinator"},
	{0, "coordinator/coordinatortest", ". coordinator"},

	// What is kept in the coordinator; siblings are blind to each other.
	{1, "coordinator/internal/wire", "."},
	{1, "coordinator/internal/foldtest", "."},
	{1, "coordinator/ledger", ". internal/planted coordinator coordinator/internal/wire tiered/bucket"},
	{1, "coordinator/shard", ". internal/planted kafka/batch coordinator coordinator/internal/wire coordinator/ledger tiered/segment"},
	{1, "coordinator/topic", ". coordinator coordinator/internal/wire coordinator/ledger kafka/batch"},
	{1, "coordinator/topic/topictest", "coordinator coordinator/ledger coordinator/topic"},
	{1, "coordinator/group", ". internal/planted coordinator coordinator/internal/wire coordinator/ledger"},

	{2, "tiered", ". kafka/batch tiered/bucket tiered/segment coordinator coordinator/ledger coordinator/shard"},
	{2, "tiered/check", ". kafka/batch tiered/bucket tiered/segment coordinator coordinator/ledger coordinator/shard coordinator/topic coordinator/group"},

	{3, "agent/peer", "."},
	{3, "agent/peer/tcp", ". agent/peer"},
	{3, "agent", ". agent/peer internal/planted kafka/batch tiered tiered/bucket tiered/segment coordinator coordinator/ledger coordinator/shard coordinator/topic coordinator/group"},

	// Doors reach the log through interfaces that they declare, so not agent.
	{4, "kafka", ". kafka/batch coordinator/topic coordinator/group"},
	{4, "gateway", ". kafka/batch coordinator/topic"},

	// Wiring and proof: anything but each other.
	{5, "cmd/siltstone", ". internal/... kafka/... gateway/... agent/... tiered/... coordinator/..."},
	{6, "sim", ". internal/... kafka/... gateway/... agent/... tiered/... coordinator/..."},
	{6, "bench", ". internal/... kafka/... gateway/... agent/... tiered/... coordinator/... localstack/..."},
	{6, "e2e", ". internal/... kafka/... gateway/... agent/... tiered/... coordinator/... localstack/..."},
	{6, "spec", ""},
	{6, "tiered/bucket/remote/remotetest", ". tiered/bucket tiered/bucket/remote tiered/bucket/buckettest tiered/bucket/faulty localstack/servers"},
	{6, "localstack", "localstack/..."},
	{6, "localstack/servers", ""},
	{6, "localstack/faultproxy", ""},
}

// testSupport may be imported by any test, whatever its row.
const testSupport = "internal/planted tiered/bucket/memory tiered/bucket/local tiered/bucket/faulty tiered/bucket/buckettest " +
	"coordinator/memory coordinator/embedded coordinator/faulty coordinator/coordinatortest " +
	"localstack/servers localstack/faultproxy tiered/bucket/remote/remotetest"

// outside says which packages may import a module of others. Tests may import any.
var outside = []struct{ module, importers string }{
	{"github.com/aws/aws-sdk-go-v2", "coordinator/dynamo tiered/bucket/s3 localstack/..."},
	{"github.com/aws/smithy-go", "coordinator/dynamo tiered/bucket/s3"},
	{"github.com/dustin/go-humanize", "cmd/siltstone bench"},
	{"github.com/google/go-cmp", "tiered/bucket/buckettest coordinator/coordinatortest sim"},
	{"github.com/klauspost/compress", "gateway kafka/batch"},
	{"github.com/minio/minio-go/v7", "tiered/bucket/minio localstack/..."},
	{"github.com/pierrec/lz4/v4", "kafka/batch"},
	{"github.com/prometheus/client_golang", "agent agent/peer/tcp kafka gateway tiered/... coordinator/... cmd/siltstone"},
	{"github.com/prometheus/client_model", "cmd/siltstone"},
	{"github.com/prometheus/common", "cmd/siltstone"},
	{"github.com/magiconair/properties", "cmd/siltstone"},
	{"github.com/spf13/cobra", "cmd/siltstone"},
	{"github.com/spf13/pflag", "cmd/siltstone"},
	{"github.com/twmb/franz-go/pkg/kmsg", "kafka cmd/siltstone sim bench"},
	{"github.com/twmb/franz-go/pkg/kbin", "kafka sim bench"},
	{"github.com/twmb/franz-go/pkg/kerr", "kafka cmd/siltstone sim bench"},
	{"github.com/twmb/franz-go", "cmd/siltstone sim bench"},
	{"go.etcd.io/bbolt", "coordinator/embedded"},
	{"golang.org/x/sync", "agent kafka gateway tiered/... coordinator/... cmd/siltstone sim bench localstack"},
	{"golang.org/x/sys", "coordinator/embedded tiered/bucket/local cmd/siltstone bench localstack"},
	{"pgregory.net/rapid", "tiered/bucket/buckettest coordinator/coordinatortest coordinator/internal/foldtest"},
}

func TestLayering(t *testing.T) {
	rows, allowed := map[string]int{}, map[string]string{}
	for _, l := range layers {
		rows[l.pkg], allowed[l.pkg] = l.row, l.imports
	}
	for _, p := range listPackages(t) {
		row, known := rows[p.name]
		if !known {
			t.Errorf("%s has no line in the table of layers", p.name)
			continue
		}
		for _, to := range p.imports {
			checkImport(t, p.name, to, allowed[p.name])
		}
		for _, to := range p.testImports {
			own, ours := strings.CutPrefix(to, module)
			to := relative(own)
			if ours && rows[to] > row && !matches(testSupport, to) {
				t.Errorf("a test of %s (row %d) imports %s (row %d)", p.name, row, to, rows[to])
			}
		}
	}
}

// checkImport checks one edge of the code that is no test.
func checkImport(t *testing.T, from, to, allowed string) {
	if own, ours := strings.CutPrefix(to, module); ours {
		if !matches(allowed, relative(own)) {
			t.Errorf("%s imports %s; it may import: %s", from, relative(own), allowed)
		}
		return
	}
	if first, _, _ := strings.Cut(to, "/"); !strings.Contains(first, ".") {
		return // the standard library
	}
	for _, o := range outside {
		if to == o.module || strings.HasPrefix(to, o.module+"/") {
			if !matches(o.importers, from) {
				t.Errorf("%s imports %s; only these may: %s", from, to, o.importers)
			}
			return
		}
	}
	t.Errorf("%s imports %s, which the table of outside modules does not have", from, to)
}

func relative(own string) string {
	if own == "" {
		return "."
	}
	return strings.TrimPrefix(own, "/")
}

// matches says whether a list of packages, as in layers, has pkg.
func matches(list, pkg string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(f string) bool {
		tree, all := strings.CutSuffix(f, "/...")
		return pkg == tree || all && strings.HasPrefix(pkg, tree+"/")
	})
}

type listed struct {
	name                 string
	imports, testImports []string
}

func listPackages(t *testing.T) []listed {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, listed{
			name:        relative(strings.TrimPrefix(p.ImportPath, module)),
			imports:     p.Imports,
			testImports: slices.Concat(p.TestImports, p.XTestImports),
		})
	}
}

// TestTidy holds the limits of style that can be counted. They only tighten.
func TestTidy(t *testing.T) {
	const maxLines = 700
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if path == running {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(src, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, over %d: find its seam", path, n, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
