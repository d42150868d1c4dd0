package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// disk is a small file system of its own at dir/data, in a namespace that is
// held by a process of its own: it outlives the servers that run on it.
type disk struct {
	data string // the data folder, as those in the namespace see it
	pid  int    // of the holder
	user bool   // the namespace is one of users, too
}

// newDisk mounts a tmpfs of a size ("16m"). Where that is not allowed the test fails.
func newDisk(t *testing.T, size string) *disk {
	t.Helper()
	d := &disk{data: filepath.Join(t.TempDir(), "data"), user: os.Geteuid() != 0}
	flags := "-m"
	if d.user {
		flags = "-rm"
	}
	if err := os.Mkdir(d.data, 0o750); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("mount -t tmpfs -o size=%s tmpfs %s && echo mounted && exec cat", size, d.data)
	holder := exec.Command("unshare", flags, "sh", "-c", script)
	stdin, err1 := holder.StdinPipe() // its end is the holder's
	stdout, err2 := holder.StdoutPipe()
	var stderr bytes.Buffer
	holder.Stderr = &stderr
	if err := errors.Join(err1, err2, holder.Start()); err != nil {
		t.Fatal(err)
	}
	d.pid = holder.Process.Pid
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = holder.Wait()
	})
	if _, err := io.ReadFull(stdout, make([]byte, len("mounted\n"))); err != nil {
		t.Fatalf("no small file system to test with: %v: %s", err, stderr.String())
	}
	return d
}

// command is one that runs where the disk is mounted.
func (d *disk) command(args ...string) *exec.Cmd {
	enter := []string{"-t", fmt.Sprint(d.pid), "-m"}
	if d.user {
		enter = append(enter, "-U", "--preserve-credentials")
	}
	return exec.Command("nsenter", append(append(enter, "--"), args...)...)
}

func (d *disk) must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := d.command(args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// path is where the test finds a file of the data folder.
func (d *disk) path(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", d.pid), d.data, name)
}

// start runs dev on the disk.
func (d *disk) start(t *testing.T) *server {
	t.Helper()
	return startCommand(t, d.data, d.command(append([]string{program}, devArgs(d.data)...)...))
}

// refused runs dev on the disk, which says in one line why it does not start.
func (d *disk) refused(t *testing.T, says string) {
	t.Helper()
	cmd := d.command(append([]string{program}, devArgs(d.data)...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	_ = cmd.Run()
	oneClearLine(t, "dev", stderr.String(), cmd.ProcessState.ExitCode(), says)
}

// check is a check of the data folder, which must be clean.
func (d *disk) check(t *testing.T) {
	t.Helper()
	if out, err := d.command(program, "check", "--data", d.data).CombinedOutput(); err != nil || !strings.Contains(string(out), "\nclean: ") {
		t.Errorf("check: %v: %s", err, out)
	}
}

// fill takes all the room that there is.
func (d *disk) fill(t *testing.T) (free func()) {
	t.Helper()
	name := d.path("filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// notReady waits until the server says that it is not, and why.
func (s *server) notReady(t *testing.T, why ...string) {
	t.Helper()
	body := ""
	eventually(t, fmt.Sprintf("not ready for %q", why), func() bool {
		var status int
		status, body = s.get(t, "/ready")
		for _, w := range why {
			if !strings.Contains(body, w) {
				return false
			}
		}
		return status == 503
	})
	if status, _ := s.get(t, "/healthy"); status != 200 {
		t.Errorf("/healthy: %d", status)
	}
}

func (s *server) readyAgain(t *testing.T) {
	t.Helper()
	eventually(t, "ready again", func() bool { status, _ := s.get(t, "/ready"); return status == 200 })
}

// complaints: what the log says of trouble is a few lines, however long it lasts.
func (s *server) complaints(t *testing.T, about string) {
	t.Helper()
	all := s.errors()
	if n := strings.Count(all, "\n"); n == 0 || n > 10 || !strings.Contains(all, about) {
		t.Errorf("%d lines of complaint, want few, and one with %q:\n%s", n, about, all)
	}
}

// tryProduce sends a record once, with acks=all, and waits a second at most
// for its acknowledgement.
func (s *server) tryProduce(t *testing.T, h *history, r *kgo.Record) error {
	t.Helper()
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = r.Partition, batchOf(t, batch.None, value(string(r.Value)))
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.Partitions = r.Topic, append(rt.Partitions, rp)
	q := kmsg.NewPtrProduceRequest()
	q.TimeoutMillis, q.Topics = 1000, append(q.Topics, rt)
	h.send(string(r.Value))
	resp, err := s.byName(t).Request(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	got := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		return err
	}
	r.Offset = got.BaseOffset
	h.acknowledge(r)
	return nil
}

// commitOffset commits for somebody outside the group.
func (s *server) commitOffset(t *testing.T, group, topic string, offset int64, metadata string) error {
	t.Helper()
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group = group
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Offset, rp.Metadata = offset, &metadata
	rt.Partitions = append(rt.Partitions, rp)
	q.Topics = append(q.Topics, rt)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := s.byName(t).Request(ctx, q)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
}

// byName is the server, without a client's retries, in versions of requests
// that name topics rather than their ids.
func (s *server) byName(t *testing.T, opts ...kgo.Opt) *kgo.Broker {
	t.Helper()
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(kmsg.Produce.Int16(), 12)
	versions.SetMaxKeyVersion(kmsg.Fetch.Int16(), 12)
	versions.SetMaxKeyVersion(kmsg.OffsetCommit.Int16(), 9)
	versions.SetMaxKeyVersion(kmsg.OffsetFetch.Int16(), 7)
	return s.franz(t, append(opts, kgo.MaxVersions(versions))...).SeedBrokers()[0]
}

// committedOffset is what a group has committed; -1 for nothing.
func (s *server) committedOffset(t *testing.T, group, topic string) int64 {
	t.Helper()
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Group = group
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{0}
	q.Topics = append(q.Topics, rt)
	resp, err := s.byName(t).Request(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return resp.(*kmsg.OffsetFetchResponse).Topics[0].Partitions[0].Offset
}
