package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// system is something that speaks Kafka's protocol and can be started afresh,
// its data in an empty folder.
type system struct {
	name    string
	prepare func(ctx context.Context, dir string) (*server, error) // all but launching it
}

// with starts a system in a folder of its own below a parent, does something
// with it, stops it and removes the folder.
func (sys system) with(ctx context.Context, parent string, do func(*server) error) error {
	dir, err := os.MkdirTemp(parent, "siltstone-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := sys.prepare(ctx, dir)
	if err != nil {
		return err
	}
	if s.argv != nil {
		if err := s.launch(ctx); err != nil {
			return s.closeAfter(err)
		}
	}
	err = do(s)
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return s.closeAfter(err)
}

// siltstone is this tree's binary as siltstone dev: an agent, its bucket and
// its coordinator in one process.
func siltstone(binary string) system {
	return system{siltstoneName, func(_ context.Context, dir string) (*server, error) {
		addrs, err := freeAddrs(3)
		if err != nil {
			return nil, err
		}
		data := filepath.Join(dir, "data")
		return &server{
			addr: addrs[0], metrics: addrs[1], profile: addrs[2], heap: goHeap(addrs[2]), database: filepath.Join(data, "cluster.db"), dir: dir,
			argv: []string{binary, "dev", "--data", data, "--kafka", addrs[0], "--http", addrs[1], "--pprof", addrs[2]},
		}, nil
	}}
}

// siltstoneName is Siltstone's in reports.
const siltstoneName = "Siltstone"

// kafkaName is that of Apache Kafka.
const kafkaName = "Kafka 4.4.0"

// syncedName is that of a Kafka that syncs each append before it acknowledges
// it, as Siltstone does. Nothing is compared with it but by readers.
const syncedName = kafkaName + ", synced"

// synced is kafka with that one setting more.
func synced(jars string) system {
	return kafkaWith(syncedName, jars, "log.flush.interval.messages=1\n")
}

// kafka is Apache Kafka from a folder of jars: one node in KRaft mode, broker
// and controller, with the settings that it has by default, but for groups what
// its own config for one node says, and the JVM flags that its own start script
// has.
func kafka(jars string) system { return kafkaWith(kafkaName, jars, "") }

func kafkaWith(name, jars, more string) system {
	return system{name, func(ctx context.Context, dir string) (*server, error) {
		addrs, err := freeAddrs(2)
		if err != nil {
			return nil, err
		}
		return broker(ctx, jars, dir, addrs[0], kafkaSettings(dir, addrs[0], addrs[1])+more, "--standalone")
	}}
}

// broker is a node of Kafka with these settings, its storage formatted.
func broker(ctx context.Context, jars, dir, addr, settings string, formatting ...string) (*server, error) {
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return nil, err
	}
	java := []string{
		"java", "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
		"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(jars, "*"),
	}
	format := append(java[:len(java):len(java)], "kafka.tools.StorageTool", "format",
		"--cluster-id", "c2lsdHN0b25lLWJlbmNoIQ", "--config", file)
	format = append(format, formatting...)
	if out, err := exec.CommandContext(ctx, format[0], format[1:]...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("formatting Kafka's storage: %w: %s", err, out)
	}
	s := &server{addr: addr, dir: dir, argv: append(java, "kafka.Kafka", file)}
	s.heap = func(ctx context.Context) (int64, error) { return javaHeap(ctx, s.pid) }
	return s, nil
}

func kafkaSettings(dir, addr, controllerAddr string) string {
	return fmt.Sprintf(`process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://%[2]s,CONTROLLER://%[3]s
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=%[3]s
log.dirs=%[1]s
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
`, filepath.Join(dir, "data"), addr, controllerAddr)
}

// running is a server that somebody else started and will stop.
func running(addr string, pid int) system {
	return system{addr, func(context.Context, string) (*server, error) {
		return &server{addr: addr, pid: pid}, nil
	}}
}
