package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/siltstone-io/siltstone/localstack/servers"
)

// stackTest is a stack in a folder and on ports of its own.
type stackTest struct {
	*testing.T
	stack
}

func newStackTest(t *testing.T) *stackTest {
	t.Helper()
	s := &stackTest{t, stack{dir: t.TempDir(), minio: servers.FreeAddr(t), aws: servers.FreeAddr(t)}}
	for _, server := range s.servers() {
		servers.MustBeInstalled(t, server)
	}
	t.Cleanup(func() {
		_, _ = s.call("down")
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
			for _, log := range logs {
				b, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, b[max(0, len(b)-4096):])
			}
		}
	})
	return s
}

// call is a command of localstack, as make calls it.
func (s *stackTest) call(command string) (out string, err error) {
	var stdout, stderr bytes.Buffer
	// The test's own context ends before its clean-up.
	err = run(context.Background(), []string{command, "--dir", s.dir, "--minio", s.minio, "--aws", s.aws}, &stdout, &stderr)
	return stdout.String() + stderr.String(), err
}

func (s *stackTest) must(command string) string {
	s.Helper()
	out, err := s.call(command)
	if err != nil {
		s.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// shell runs a script after the env file, without any variable of AWS but those.
func (s *stackTest) shell(script string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "bash", "-eu", "-c", ". "+s.envFile()+"\n"+script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// ids are the process ids of the servers.
func (s *stackTest) ids() string {
	s.Helper()
	var ids []string
	for _, server := range s.servers() {
		b, err := os.ReadFile(filepath.Join(s.dir, server.Name+".pid"))
		if err != nil {
			s.Fatal(err)
		}
		ids = append(ids, string(b))
	}
	return strings.Join(ids, "")
}

// portsAreFree checks that nobody serves any more, and that nothing is left but data and logs.
func (s *stackTest) portsAreFree() {
	s.Helper()
	for _, addr := range []string{s.minio, s.aws} {
		l, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", addr)
		if err != nil {
			s.Errorf("%v", err)
			continue
		}
		l.Close()
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*.pid")); len(left) > 0 {
		s.Errorf("left: %v", left)
	}
	if _, err := os.Stat(s.envFile()); !errors.Is(err, os.ErrNotExist) {
		s.Errorf("the env file is left: %v", err)
	}
}

// Scripts, for a shell that has the env file.
const (
	s3  = `curl -sS -o /dev/null -w '%{http_code} ' --aws-sigv4 "aws:amz:$AWS_REGION:s3" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" `
	ddb = `curl -sS --aws-sigv4 "aws:amz:$AWS_REGION:dynamodb" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -H 'Content-Type: application/x-amz-json-1.0' "$AWS_ENDPOINT_URL/" `
	// putTwice is a conditional write, twice, into the bucket that SILTSTONE_BUCKET names.
	putTwice = `bucket=$AWS_ENDPOINT_URL_S3/${SILTSTONE_BUCKET##*/}
for try in 1 2; do ` + s3 + `-X PUT -d silt -H 'X-Amz-Content-Sha256: UNSIGNED-PAYLOAD' -H 'If-None-Match: *' $bucket/key; done`
	makeTable = ddb + `-H 'X-Amz-Target: DynamoDB_20120810.CreateTable' -d '{"TableName": "siltstone", "BillingMode": "PAY_PER_REQUEST",
 "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}]}' >/dev/null
` + ddb + `-H 'X-Amz-Target: DynamoDB_20120810.PutItem' -d '{"TableName": "siltstone", "Item": {"p": {"S": "silt"}}}'`
	getItem = ddb + `-H 'X-Amz-Target: DynamoDB_20120810.GetItem' -d '{"TableName": "siltstone", "Key": {"p": {"S": "silt"}}}'`
)

// TestUpDown is a day with the stack: up, used, up, down, down, and the data is
// there at the next up.
func TestUpDown(t *testing.T) {
	s := newStackTest(t)
	out := s.must("up")
	if !strings.Contains(out, s.minio) || !strings.Contains(out, s.aws) || !strings.Contains(out, s.envFile()) {
		t.Errorf("up says %q", out)
	}
	if got := s.shell(putTwice); got != "200 412 " {
		t.Errorf("two conditional writes: %q", got)
	}
	s.shell(makeTable)
	if got := s.shell("echo $SILTSTONE_BUCKET $SILTSTONE_COORDINATOR"); got != "minio://"+s.minio+"/siltstone dynamodb://siltstone?region=us-east-1&endpoint=http://"+s.aws+"\n" {
		t.Errorf("the stores are %q", got)
	}
	if env := s.must("env"); env != s.shell("cat "+s.envFile()) {
		t.Errorf("env prints %q", env)
	}

	ids := s.ids()
	if out := s.must("up"); !strings.Contains(out, "as it did before") || s.ids() != ids {
		t.Errorf("up twice says %q; processes %q, then %q", out, ids, s.ids())
	}
	if out := s.must("down"); strings.Count(out, "has ended") != 2 {
		t.Errorf("down says %q", out)
	}
	s.portsAreFree()
	if out := s.must("down"); out != "" {
		t.Errorf("down twice says %q", out)
	}

	s.must("up")
	if got := s.shell(putTwice); got != "412 412 " {
		t.Errorf("the object after a restart: %q", got)
	}
	if got := s.shell(getItem); !strings.Contains(got, `"silt"`) {
		t.Errorf("the item after a restart: %s", got)
	}
}

// TestUpAfterACrash: what still runs goes on, what does not is started.
func TestUpAfterACrash(t *testing.T) {
	s := newStackTest(t)
	s.must("up")
	before := strings.SplitAfter(s.ids(), "\n")
	minio, err := servers.ReadProcess(filepath.Join(s.dir, "minio.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(minio.ID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for minio.Running() {
		if t.Context().Err() != nil {
			t.Fatal("it does not end")
		}
	}
	s.must("up")
	if after := strings.SplitAfter(s.ids(), "\n"); after[0] == before[0] || after[1] != before[1] {
		t.Errorf("processes %q, then %q", before, after)
	}
	if got := s.shell(putTwice); got != "200 412 " {
		t.Errorf("two conditional writes: %q", got)
	}
}

// TestUpWhereAnotherListens: the error says who is in the way, and nothing is
// left running.
func TestUpWhereAnotherListens(t *testing.T) {
	s := newStackTest(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.aws)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.call("up")
	if !errors.Is(err, servers.ErrAddressInUse) || !strings.Contains(err.Error(), s.aws) {
		t.Errorf("%v", err)
	}
	l.Close()
	s.portsAreFree()
}

// TestUpThatCannotEnd: where the last step fails, what was started is ended.
func TestUpThatCannotEnd(t *testing.T) {
	s := newStackTest(t)
	if err := os.Mkdir(s.envFile()+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.call("up"); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("%v", err)
	}
	s.portsAreFree()
}

// TestTogether: of two calls at once one is told to wait.
func TestTogether(t *testing.T) {
	s := &stackTest{t, stack{dir: t.TempDir(), minio: "127.0.0.1:1", aws: "127.0.0.1:1"}}
	unlock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, command := range []string{"up", "down"} {
		if _, err := s.call(command); !errors.Is(err, syscall.EWOULDBLOCK) || !strings.Contains(err.Error(), "another make up") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestWrongCalls(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{nil, "usage:"},
		{[]string{"sideways"}, "usage:"},
		{[]string{"up", "now"}, `takes no "now"`},
		{[]string{"up", "--port", "1"}, "-port"},
	} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), tt.args, &out, &errs); !errors.Is(err, errUsage) || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%q: %v, %q", tt.args, err, errs.String())
		}
	}
}
