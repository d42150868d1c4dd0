package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone/localstack/servers"
)

// onStores runs the tests of `siltstone dev` with `siltstone agent` in its place:
// what they call a data folder is a cluster in MinIO and an emulator of DynamoDB.
var onStores = flag.Bool("stores", false, "test siltstone agent over MinIO and an emulator of DynamoDB in place of siltstone dev")

// stores are those that all clusters of these tests are in, that are in any.
var stores struct {
	once       sync.Once
	err        error
	running    []*servers.Process
	minio, aws string // addresses

	mu       sync.Mutex
	clusters map[string]*storesOf // by the folder that a test has in mind
	begun    int
}

// storesOf is what servers of a cluster are started with.
type storesOf struct {
	remoteStores
	flags []string
	fresh sync.Once
}

// lease is siltstone.lease.ms of these clusters: the least that there can be,
// for it is what an agent waits after the kill of another one.
const lease = 4 * time.Second

// folderless skips a test that is about the folder of dev, or about dev.
func folderless(t *testing.T) {
	t.Helper()
	if *onStores {
		t.Skip("is about siltstone dev and its data folder")
	}
}

// writableAgain is how long a server may take that starts where one was killed.
func writableAgain(t *testing.T, dir string) time.Duration {
	t.Helper()
	if clusterIn(t, dir) != nil {
		return lease + 6*time.Second // the register, and an emulator that others use too
	}
	return time.Second
}

// beginStores starts them, once.
func beginStores(t *testing.T) {
	t.Helper()
	stores.once.Do(func() {
		stores.minio, stores.aws = servers.FreeAddr(t), servers.FreeAddr(t)
		dir := filepath.Dir(program)
		for _, s := range []servers.Server{servers.MinIO(dir, stores.minio), servers.AWS(dir, stores.aws)} {
			servers.MustBeInstalled(t, s)
			p, err := s.Start(context.Background(), dir)
			if err != nil {
				stores.err = err
				return
			}
			stores.running = append(stores.running, p)
		}
	})
	if stores.err != nil {
		t.Fatal(stores.err)
	}
}

// endStores is called when all tests are done.
func endStores() {
	for _, p := range stores.running {
		_ = p.Stop()
	}
}

// newCluster begins a cluster in place of a folder, in stores at these
// addresses. Its servers have flags of their own.
func newCluster(t *testing.T, dir, minio, aws string, flags ...string) *storesOf {
	t.Helper()
	stores.mu.Lock()
	stores.begun++
	n := stores.begun
	if stores.clusters == nil {
		stores.clusters = map[string]*storesOf{}
	}
	cluster := &storesOf{flags: flags, remoteStores: remoteStores{
		"--bucket", fmt.Sprintf("minio://%s/%s/%d", minio, servers.BucketName, n),
		"--coordinator", fmt.Sprintf("dynamodb://table-%d?region=%s&endpoint=http://%s", n, servers.Region, aws),
	}}
	stores.clusters[dir] = cluster
	stores.mu.Unlock()
	cluster.must(t, "cluster", "init")
	return cluster
}

// ownCluster begins a cluster whose servers the test starts by itself.
func ownCluster(t *testing.T) remoteStores {
	t.Helper()
	beginStores(t)
	return newCluster(t, t.TempDir(), stores.minio, stores.aws).remoteStores
}

// clusterIn is the cluster in place of a folder, or nil if it is a folder.
func clusterIn(t *testing.T, dir string) *storesOf {
	t.Helper()
	stores.mu.Lock()
	cluster := stores.clusters[dir]
	stores.mu.Unlock()
	if cluster == nil && *onStores {
		beginStores(t)
		return newCluster(t, dir, stores.minio, stores.aws, "--flush-wait", "10ms")
	}
	return cluster
}

// serverCommand is a server on a folder, or on the cluster that is in its place.
func serverCommand(t *testing.T, dir string, more ...string) *exec.Cmd {
	t.Helper()
	cluster := clusterIn(t, dir)
	if cluster == nil {
		return exec.Command(program, append(devArgs(dir), more...)...)
	}
	args := slices.Concat([]string{"agent", "--kafka", anyPort, "--http", "127.0.0.1:0"}, cluster.remoteStores, cluster.flags)
	cluster.fresh.Do(func() {
		s := startCommand(t, dir, exec.Command(program, args...))
		s.cli(t, "", "cluster", "alter", "--config", fmt.Sprintf("siltstone.lease.ms=%d", lease.Milliseconds()))
		s.stop(t)
	})
	return exec.Command(program, append(args, more...)...)
}

// whereIs says to commands where a server on a folder keeps its cluster.
func whereIs(t *testing.T, dir string) []string {
	t.Helper()
	if cluster := clusterIn(t, dir); cluster != nil {
		return cluster.remoteStores
	}
	return []string{"--data", dir}
}

// countObjects counts the segments of a folder, or of the cluster in its place.
func countObjects(t *testing.T, dir string) int {
	t.Helper()
	cluster := clusterIn(t, dir)
	if cluster == nil {
		return len(objectFiles(t, dir))
	}
	bucket := cluster.remoteStores[1]
	_, prefix, _ := strings.Cut(bucket, servers.BucketName+"/")
	files, err := filepath.Glob(filepath.Join(filepath.Dir(program), "minio", servers.BucketName, prefix, "?", "*", "*", "*", "xl.meta"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no segments below %s: %v", bucket, err)
	}
	return len(files)
}

// onlyOwnEnvironment keeps what the machine's owner has set from the programs
// that are tested, and gives them the keys of these stores.
func onlyOwnEnvironment() {
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "SILTSTONE_") {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
}
