package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// manyWeb is a little less than the connections that there may be.
const manyWeb = 900

// webAttacks are on the HTTP port.
var webAttacks = []attack{
	{"headers that do not end", func(t *testing.T, a *attacker) {
		conns := a.many(t, manyWeb, []byte("GET /ready HTTP/1.1\r\nHost: h\r\nX-"))
		a.every(time.Second, func(int) {
			for _, conn := range conns {
				_, _ = conn.Write([]byte("a"))
			}
		})
	}},
	{"bodies that do not end", func(t *testing.T, a *attacker) {
		conns := a.many(t, manyWeb, rawPost("", 2_000_000, strings.Repeat("a", 10_000)))
		a.every(500*time.Millisecond, func(i int) {
			for _, conn := range conns[i%9*100:][:100] {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
				_, _ = conn.Write(make([]byte, 10_000))
			}
		})
	}},
	{"long polls", func(t *testing.T, a *attacker) {
		a.many(t, manyWeb, fmt.Appendf(nil, "GET %s?offset=latest&wait=25 HTTP/1.1\r\nHost: h\r\n\r\n", recordsOf("attacked", 1)))
	}},
	{"more connections than there may be", func(t *testing.T, a *attacker) {
		a.many(t, 1000, nil)
		a.every(5*time.Millisecond, func(int) { _, _ = a.open() })
	}},
	{"bombs", func(t *testing.T, a *attacker) {
		bombs := [][]byte{
			webBomb(t, "gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
			webBomb(t, "zstd", func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
		}
		a.every(500*time.Millisecond, func(i int) {
			if conn, err := a.open(); err == nil {
				_, _ = conn.Write(bombs[i%len(bombs)])
			}
		})
	}},
	{"costly bodies", func(t *testing.T, a *attacker) {
		const size = 2_500_000
		bodies := []string{
			strings.Repeat("[", size),
			`{"records":[` + strings.Repeat(`{"value":""},`, size/13) + `{"value":""}]}`,
			`{"records":[{"value":"","headers":[` + strings.Repeat(`["",""],`, size/8) + `["",""]]}]}`,
			`{"records":[{"value":"` + strings.Repeat(`\u0000`, size/6) + `"}]}`,
			`{"records":[{"value":"","` + strings.Repeat("\x7f", size) + `":1}]}`,
			`{"encoding":"` + strings.Repeat(`\"`, size/2) + `","records":[]}`,
		}
		a.every(500*time.Millisecond, func(i int) {
			if conn, err := a.open(); err == nil {
				body := bodies[i%len(bodies)]
				_, _ = conn.Write(rawPost("Content-Type: application/json\r\n", len(body), body))
			}
		})
	}},
	{"large replies, nothing read", func(t *testing.T, a *attacker) {
		a.server.large(t, a.server.dial(t))
		a.every(100*time.Millisecond, func(i int) {
			if conn, err := a.open(); err == nil {
				fmt.Fprintf(conn, "GET %s?offset=%d&max_bytes=4194304&encoding=%s HTTP/1.1\r\nHost: h\r\nAccept-Encoding: %s\r\n\r\n",
					recordsOf("large", 0), i%300, []string{"utf8", "base64"}[i%2], []string{"identity", "gzip", "zstd"}[i%3])
			}
		})
	}},
}

// rawPost is an append of some length, and what of it is sent.
func rawPost(headers string, length int, sent string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n%s", recordsOf("attacked", 0), headers, length, sent)
}

// webBomb is an append that becomes 300 MB.
func webBomb(t *testing.T, coding string, compress func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var body bytes.Buffer
	z := compress(&body)
	for range 300 {
		if _, err := z.Write(make([]byte, 1_000_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return rawPost("Content-Encoding: "+coding+"\r\n", body.Len(), body.String())
}

// TestHTTPHostile is TestHostile on the HTTP port: the server keeps within its
// memory, a client of Kafka is served as before, and HTTP is once the attack is over.
func TestHTTPHostile(t *testing.T) {
	manyFiles(t)
	dir := t.TempDir()
	s := startCommand(t, dir, serverCommand(t, dir, "--memory", hostileMemory))
	s.makeTopic(t, "attacked", `{"partitions":2}`)
	memory := s.watchMemory(t)
	well := s.wellBehaved(t)
	for _, a := range webAttacks {
		t.Run(a.name, func(t *testing.T) {
			memory.peak.Store(0)
			well.undisturbed(t, func() *attacker {
				by := &attacker{server: s, address: s.http}
				by.ctx, by.cancel = context.WithCancel(t.Context())
				a.begin(t, by)
				return by
			})
			t.Logf("%d MiB at most", memory.peak.Load()>>20)
			if peak := memory.peak.Load(); peak > hostileBound {
				t.Errorf("%d MiB were resident, of %d", peak>>20, hostileBound>>20)
			}
			well.wantNoErrors(t)
			eventually(t, "HTTP is served", func() bool {
				resp, err := webClient.Get("http://" + s.http + "/healthy")
				if err != nil {
					return false
				}
				resp.Body.Close()
				return resp.StatusCode == http.StatusOK
			})
		})
	}
	eventually(t, "no memory is held", func() bool {
		return strings.Contains(s.fetch(t, "/metrics").body, "siltstone_gateway_request_memory_bytes 0\n")
	})
}
