package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newHistory() *history { return &history{sent: map[string]bool{}, acked: map[string]place{}} }

// large is a record that takes room on the disk.
func large(partition int32, n int) *kgo.Record {
	value := fmt.Sprintf("0/%d/%d/%s", partition, n, strings.Repeat("x", 100_000))
	return &kgo.Record{Topic: "t", Partition: partition, Value: []byte(value)}
}

// TestDiskFull fills a disk by producing. What was acknowledged stays, nothing
// else is; reads go on; a group's commit is refused or kept; and with room on
// the disk all goes on without a restart.
func TestDiskFull(t *testing.T) {
	folderless(t)
	d, h := newDisk(t, "12m"), newHistory()
	s := d.start(t)
	s.cli(t, "", "topic", "create", "t", "-p", "2")
	var full error
	for n := 0; full == nil; n++ {
		if n > 200 {
			t.Fatal("the disk does not fill up")
		}
		full = s.tryProduce(t, h, large(0, n))
	}
	if !kerr.IsRetriable(full) {
		t.Errorf("a producer is told %v, want an error to retry", full)
	}
	free := d.fill(t) // the last page, too
	s.notReady(t, "no space left on device", d.data)

	// A producer that does not give up, as clients are by default.
	patient := make(chan error, 1)
	waiting := &kgo.Record{Topic: "t", Partition: 1, Value: []byte("patient")}
	h.send(string(waiting.Value))
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	cl.Produce(t.Context(), waiting, func(r *kgo.Record, err error) {
		if err == nil {
			h.acknowledge(r)
		}
		patient <- err
	})
	for n := range 3 {
		if err := s.tryProduce(t, h, large(1, 1+n)); !kerr.IsRetriable(err) {
			t.Errorf("on the full disk: %v", err)
		}
	}
	if got := s.read(t, "t", 0, 0, len(h.acked)); len(got) < len(h.acked) {
		t.Errorf("%d records are read on the full disk, of %d", len(got), len(h.acked))
	}
	committed := commitUntilFull(t, s)
	select {
	case err := <-patient:
		t.Errorf("acknowledged on the full disk: %v", err)
	default:
	}
	s.complaints(t, "no space left on device")

	free()
	d.must(t, "mount", "-o", "remount,size=64m", d.data)
	s.readyAgain(t)
	if err := <-patient; err != nil {
		t.Errorf("the producer that waited: %v", err)
	}
	if err := s.tryProduce(t, h, large(1, 10)); err != nil {
		t.Errorf("with room on the disk: %v", err)
	}
	if err := s.commitOffset(t, "late", "t", 7, ""); err != nil {
		t.Errorf("a commit with room on the disk: %v", err)
	}
	verify(t, s, h)
	s.stop(t)
	d.check(t)

	s = d.start(t)
	verify(t, s, h)
	for group, offset := range committed {
		if got := s.committedOffset(t, group, "t"); got != offset {
			t.Errorf("group %s is at %d, and committed %d", group, got, offset)
		}
	}
	s.stop(t)
}

// commitUntilFull commits offsets of groups until one is refused, and returns
// those that were not: the coordinator's file has some room of its own.
func commitUntilFull(t *testing.T, s *server) map[string]int64 {
	t.Helper()
	committed := map[string]int64{}
	for n := range int64(1000) {
		group := fmt.Sprintf("g%d", n)
		err := s.commitOffset(t, group, "t", n, strings.Repeat("m", 4000))
		if errors.Is(err, kerr.NotCoordinator) {
			return committed
		}
		if err != nil {
			t.Fatalf("a commit on the full disk: %v, want it done or NOT_COORDINATOR", err)
		}
		committed[group] = n
	}
	t.Fatal("no commit is refused on the full disk")
	return nil
}

// TestStartOnFullDisk: a cluster whose disk is full does not start, and says
// so; it can be checked, and starts when there is room.
func TestStartOnFullDisk(t *testing.T) {
	folderless(t)
	d, h := newDisk(t, "16m"), newHistory()
	s := d.start(t)
	s.cli(t, "", "topic", "create", "t", "-p", "2")
	for n := range 3 {
		if err := s.tryProduce(t, h, large(0, n)); err != nil {
			t.Fatal(err)
		}
	}
	s.stop(t)
	free := d.fill(t)
	d.refused(t, "the disk is full")
	d.check(t)
	free()
	s = d.start(t)
	verify(t, s, h)
	s.stop(t)
}

// TestDiskTurnsReadOnly: the folder of objects, a mount of its own so that it
// can be made read-only under a server, which has the coordinator's file open.
func TestDiskTurnsReadOnly(t *testing.T) {
	folderless(t)
	d, h := newDisk(t, "32m"), newHistory()
	d.start(t).stop(t)
	objects := filepath.Join(d.data, "objects")
	d.must(t, "mount", "--bind", objects, objects)
	s := d.start(t)
	s.cli(t, "", "topic", "create", "t", "-p", "2")
	if err := s.tryProduce(t, h, large(0, 0)); err != nil {
		t.Fatal(err)
	}
	d.must(t, "mount", "-o", "remount,bind,ro", objects)
	if err := s.tryProduce(t, h, large(0, 1)); !kerr.IsRetriable(err) {
		t.Errorf("on a read-only disk: %v, want an error to retry", err)
	}
	s.notReady(t, "read-only file system")
	if got := s.read(t, "t", 0, 0, 1); len(got) != 1 {
		t.Errorf("%d records are read", len(got))
	}
	s.complaints(t, "read-only file system")
	d.must(t, "mount", "-o", "remount,bind,rw", objects)
	s.readyAgain(t)
	if err := s.tryProduce(t, h, large(1, 2)); err != nil {
		t.Errorf("writable again: %v", err)
	}
	verify(t, s, h)
	s.stop(t)
	d.must(t, "umount", objects)
	d.must(t, "mount", "-o", "remount,ro", d.data)
	d.refused(t, "the disk is read-only")
	d.check(t)
}

// TestNoPermission: a folder of another user.
func TestNoPermission(t *testing.T) {
	folderless(t)
	dir := t.TempDir()
	start(t, dir).stop(t)
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		for _, path := range []string{filepath.Dir(dir), dir, filepath.Dir(program)} { // what is on the way to it
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	} else if err := os.Chmod(filepath.Join(dir, "cluster.db"), 0); err != nil { // in the way of its owner, too
		t.Fatal(err)
	}
	for _, args := range [][]string{devArgs(dir), {"check", "--data", dir}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.SysProcAttr = attr
		var stderr strings.Builder
		cmd.Stderr = &stderr
		_ = cmd.Run()
		oneClearLine(t, args[0], stderr.String(), cmd.ProcessState.ExitCode(), "no permission")
	}
}
