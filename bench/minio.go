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

const putDelay = 50 * time.Millisecond

// onMinIO is this tree's binary as siltstone agent with its own defaults. Each
// PUT is delayed, if that is asked for.
func onMinIO(name, binary string, delay time.Duration) system {
	return system{name, func(ctx context.Context, dir string) (*server, error) {
		addrs, err := freeAddrs(5)
		if err != nil {
			return nil, err
		}
		s := &server{
			addr: addrs[0], metrics: addrs[1], profile: addrs[2], heap: goHeap(addrs[2]), dir: dir,
			env: []string{"AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey},
		}
		minio := addrs[3]
		for _, store := range []servers.Server{servers.MinIO(dir, minio), servers.AWS(dir, addrs[4])} {
			p, err := store.Start(ctx, dir)
			if err != nil {
				return nil, s.closeAfter(err)
			}
			s.closers = append(s.closers, p.Stop)
		}
		if delay > 0 {
			p, err := faultproxy.New(faultproxy.Options{Upstream: "http://" + minio})
			if err == nil {
				err = p.Set(faultproxy.Fault{Method: http.MethodPut, DelayMs: int(delay / time.Millisecond)})
			}
			if err != nil {
				return nil, s.closeAfter(err)
			}
			proxy := httptest.NewServer(p)
			s.closers = append(s.closers, func() error { proxy.Close(); return nil })
			minio = proxy.Listener.Addr().String()
		}
		stores := []string{
			"--bucket", "minio://" + minio + "/" + servers.BucketName,
			"--coordinator", "dynamodb://bench?region=" + servers.Region + "&endpoint=http://" + addrs[4],
		}
		begin := exec.CommandContext(ctx, binary, append([]string{"cluster", "init"}, stores...)...)
		begin.Env = s.environment()
		if out, err := begin.CombinedOutput(); err != nil {
			return nil, s.closeAfter(fmt.Errorf("beginning a cluster: %w: %s", err, out))
		}
		s.argv = append([]string{binary, "agent", "--kafka", addrs[0], "--http", addrs[1], "--pprof", addrs[2]}, stores...)
		return s, nil
	}}
}
