package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/localstack/servers"
)

func ask(t *testing.T, method, url, body string) (status int, reply string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(b)
}

// TestProxy is a proxy as a process runs it: faults come over the second port.
func TestProxy(t *testing.T) {
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "silt") }))
	t.Cleanup(store.Close)
	listen, control := servers.FreeAddr(t), servers.FreeAddr(t)
	ctx, stop := context.WithCancel(t.Context())
	stdout, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"proxy", "--listen", listen, "--control", control, "--upstream", store.URL}, out, io.Discard)
		ended <- err
		out.CloseWithError(err)
	}()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, listen) || !strings.Contains(line, control) {
		t.Fatalf("%q, %v", line, err)
	}
	if status, body := ask(t, "GET", "http://"+listen+"/b/k", ""); status != 200 || body != "silt" {
		t.Errorf("%d, %q", status, body)
	}
	if status, body := ask(t, "PUT", "http://"+control+"/faults", `[{"action": "answer", "error": {"status": 503, "code": "SlowDown"}}]`); status != 200 {
		t.Errorf("%d, %q", status, body)
	}
	if status, body := ask(t, "GET", "http://"+listen+"/b/k", ""); status != 503 {
		t.Errorf("%d, %q", status, body)
	}
	if status, body := ask(t, "GET", "http://"+control+"/requests", ""); status != 200 || !strings.HasPrefix(body, `{"GetObject":[`) {
		t.Errorf("%d, %q", status, body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped, it says %v", err)
	}
}

func TestProxyErrors(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(taken.Close)
	addr := strings.TrimPrefix(taken.URL, "http://")
	for says, args := range map[string][]string{
		"in use":   {"--listen", addr, "--control", servers.FreeAddr(t)},
		"upstream": {"--upstream", "https://127.0.0.1"},
	} {
		err := run(t.Context(), append([]string{"proxy"}, args...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestCompose: the stores of the compose file are those of the env file.
func TestCompose(t *testing.T) {
	b, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var env strings.Builder
	if err := run(t.Context(), []string{"env"}, &env, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ compose, env string }{
		{"MINIO_ROOT_USER: " + servers.AccessKey, "AWS_ACCESS_KEY_ID=" + servers.AccessKey},
		{"MINIO_ROOT_PASSWORD: " + servers.SecretKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey},
		{`["127.0.0.1:9000:9000"]`, "AWS_ENDPOINT_URL_S3=http://127.0.0.1:9000"},
		{`["127.0.0.1:4566:4566"]`, "AWS_ENDPOINT_URL=http://127.0.0.1:4566"},
		{"mkdir -p /data/" + servers.BucketName + " ", "minio://127.0.0.1:9000/" + servers.BucketName},
	} {
		if !strings.Contains(string(b), tt.compose) || !strings.Contains(env.String(), tt.env) {
			t.Errorf("the compose file has to have %q, and the env file %q", tt.compose, tt.env)
		}
	}
}
