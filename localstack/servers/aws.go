package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
)

const maxReplyBytes = 64 << 10

// AWS is an emulator of AWS (ministack, which serves what LocalStack serves at
// its port) with its state in a folder of dir. It writes the state when it is
// stopped; one that is killed has forgotten it.
func AWS(dir, addr string) Server {
	host, port, _ := net.SplitHostPort(addr)
	return Server{
		Name: "aws",
		Addr: addr,
		// Its own command listens on all addresses. Without workers it is one process.
		Argv: []string{installed("aws/bin/python"), "-m", "hypercorn", "--bind", addr, "--workers", "0", "--keep-alive", "75", "ministack.app:app"},
		Env: []string{
			"MINISTACK_HOST=" + host, "GATEWAY_PORT=" + port, "MINISTACK_REGION=" + Region,
			"PERSIST_STATE=1", "STATE_DIR=" + filepath.Join(dir, "aws"),
			"IOT_MTLS_ENABLED=0", "SFTP_ENABLED=0", // which listen on ports of their own
			"DOCKER_HOST=unix:///nowhere", // containers of others are none of its business
		},
		Check: func(ctx context.Context) error { return checkAWS(ctx, addr) },
	}
}

// checkAWS asks for the list of tables. Nobody checks the signature.
func checkAWS(ctx context.Context, addr string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+AccessKey+"/20260101/"+Region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxReplyBytes))
	if err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK || !strings.Contains(string(body), `"TableNames"`) {
		return fmt.Errorf("ListTables: %s: %.200s", reply.Status, body)
	}
	return nil
}
