package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"time"

	"github.com/siltstone-io/siltstone/localstack/faultproxy"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

// Names of an agent over MinIO in reports. Its coordinator is a table in an
// emulator of DynamoDB, which is slower than that, and takes CPU from all.
const (
	minioName   = "Siltstone on MinIO"
	delayedName = "Siltstone on MinIO, PUT 50 ms later"
)

// delays are what requests to the bucket wait before MinIO sees them.
type delays struct{ put, get time.Duration }

var delayedPut = delays{put: 50 * time.Millisecond}

// onMinIO is this tree's binary as siltstone agent with its own defaults.
func onMinIO(name, binary string, d delays) system {
	return system{name, func(ctx context.Context, dir string) (*server, error) {
		addrs, err := freeAddrs(3)
		if err != nil {
			return nil, err
		}
		s := agentAt(addrs, dir)
		stores, err := s.startStores(ctx, binary, d)
		if err != nil {
			return nil, s.closeAfter(err)
		}
		s.argv = agentCommand(binary, addrs, stores)
		return s, nil
	}}
}

// agentAt is an agent that speaks Kafka, HTTP and Go's profiles at three addresses.
func agentAt(addrs []string, dir string) *server {
	return &server{
		addr: addrs[0], metrics: addrs[1], profile: addrs[2], heap: goHeap(addrs[2]), dir: dir,
		env: []string{"AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey},
	}
}

func agentCommand(binary string, addrs, more []string) []string {
	return append([]string{binary, "agent", "--kafka", addrs[0], "--http", addrs[1], "--pprof", addrs[2]}, more...)
}

// startStores starts MinIO and the emulator, begins a cluster in them, and
// returns the flags that name them. They end with the server.
func (s *server) startStores(ctx context.Context, binary string, d delays) ([]string, error) {
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	minio, aws := addrs[0], addrs[1]
	for _, store := range []servers.Server{servers.MinIO(s.dir, minio), servers.AWS(s.dir, aws)} {
		p, err := store.Start(ctx, s.dir)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, p.Stop)
	}
	if d != (delays{}) {
		p, err := faultproxy.New(faultproxy.Options{Upstream: "http://" + minio})
		if err == nil {
			err = p.Set(d.faults()...)
		}
		if err != nil {
			return nil, err
		}
		proxy := httptest.NewServer(p)
		s.closers = append(s.closers, func() error { proxy.Close(); return nil })
		minio = proxy.Listener.Addr().String()
	}
	stores := []string{
		"--bucket", "minio://" + minio + "/" + servers.BucketName,
		"--coordinator", "dynamodb://bench?region=" + servers.Region + "&endpoint=http://" + aws,
	}
	begin := exec.CommandContext(ctx, binary, append([]string{"cluster", "init"}, stores...)...)
	begin.Env = s.environment()
	if out, err := begin.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("beginning a cluster: %w: %s", err, out)
	}
	return stores, nil
}

func (d delays) faults() (faults []faultproxy.Fault) {
	for method, delay := range map[string]time.Duration{http.MethodPut: d.put, http.MethodGet: d.get} {
		if delay > 0 {
			faults = append(faults, faultproxy.Fault{Method: method, DelayMs: int(delay / time.Millisecond)})
		}
	}
	return faults
}
