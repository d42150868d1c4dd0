package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// apache runs Apache Kafka instead, one broker of the version in scripts/kafka.xml.
// Where what a test of clients wants is Kafka's behaviour, Kafka passes it too.
var apache = flag.Bool("apache", false, "test Apache Kafka in place of siltstone dev, to see what a test should expect")

func startApache(t *testing.T, dir, addr string) *server {
	t.Helper()
	addrs := freeAddrs(t, 2)
	if addr != anyPort {
		addrs[0] = addr
	}
	settings := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://%[2]s,CONTROLLER://%[3]s
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=%[3]s
log.dirs=%[1]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
`, dir, addrs[0], addrs[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		return exec.Command("java", append([]string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars + "/*"}, args...)...)
	}
	format := command("kafka.tools.StorageTool", "format", "--ignore-formatted", "--standalone", "--cluster-id", "c2lsdHN0b25lLWUyZSEhIQ", "--config", settings)
	if out, err := format.CombinedOutput(); err != nil {
		t.Fatalf("formatting Kafka's storage: %v: %s", err, out)
	}
	s := &server{cmd: command("kafka.Kafka", settings), dir: dir, kafka: addrs[0], exited: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(s.kill)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	eventually(t, "Kafka answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return cl.Ping(ctx) == nil
	})
	return s
}

// freeAddrs returns loopback addresses that nobody listens on.
func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // not before the last one is found, so that all differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}
