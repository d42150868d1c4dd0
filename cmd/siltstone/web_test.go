package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	coordinator "github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/gateway"
	bucket "github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

// pipes is a listener for connections in memory, which live in virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	end    func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.end(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// webRig is the HTTP server of an agent, with its stores in memory.
type webRig struct {
	t       *testing.T
	port    *pipes
	engine  *agent.Agent
	logged  *strings.Builder
	stop    context.CancelFunc
	stopped chan error // serveHTTP's
}

// inWeb runs a test of a server whose agent is ready.
func inWeb(t *testing.T, test func(t *testing.T, w *webRig)) {
	synctest.Test(t, func(t *testing.T) {
		w := startWeb(t)
		running, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.engine.Run(running) }()
		<-w.engine.Ready()
		test(t, w)
		w.stop()
		end()
		if err := errors.Join(<-w.stopped, <-ended); err != nil {
			t.Error(err)
		}
	})
}

// startWeb serves an agent that does not run yet.
func startWeb(t *testing.T) *webRig {
	t.Helper()
	logged := &strings.Builder{}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(logged, t.Output()), nil))
	engine, err := agent.New(agent.Options{
		Coordinator: coordinator.New(), Alone: true, Bucket: bucket.New(), Cluster: siltstone.ClusterID{7}, Incarnation: 7, Rand: rand.Uint64, Log: log,
		Flush: agent.Flush{Eager: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	door, err := newGateway(&forwarder{Agent: engine}, log, prometheus.NewRegistry(), gateway.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	server := newWeb(door, log)
	w := &webRig{t: t, port: newPipes(), engine: engine, logged: logged, stopped: make(chan error, 1)}
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() { w.stopped <- serveHTTP(ctx, server, w.port) }()
	return w
}

// dial opens a connection and sends something on it.
func (w *webRig) dial(text string) net.Conn {
	w.t.Helper()
	mine, theirs := net.Pipe()
	w.port.conns <- theirs
	w.t.Cleanup(func() { mine.Close() })
	if text == "" {
		return mine // it may be closed by now
	}
	if _, err := io.WriteString(mine, text); err != nil {
		w.t.Fatal(err)
	}
	return mine
}

// request is one without a body, or with one of text.
func request(method, path, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
}

// answer is the next one on a connection.
func answer(c net.Conn) (status int, body string, err error) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// ask sends a request on a connection of its own, and wants an answer.
func (w *webRig) ask(method, path, body string, status int, contains string) {
	w.t.Helper()
	c := w.dial(request(method, path, body))
	defer c.Close()
	got, text, err := answer(c)
	if err != nil || got != status || !strings.Contains(text, contains) {
		w.t.Errorf("%s %s: %d %s, %v; want %d with %q", method, path, got, text, err, status, contains)
	}
}

// TestWeb: what is served is the agent, ready or not.
func TestWeb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWeb(t)
		w.ask("GET", "/healthy", "", 200, "healthy")
		w.ask("GET", "/ready", "", 503, "not_ready")
		w.stop()
		if err := <-w.stopped; err != nil {
			t.Error(err)
		}
	})
	inWeb(t, func(_ *testing.T, w *webRig) {
		const topic = "/api/v1/topics/t"
		w.ask("GET", "/ready", "", 200, "ready")
		w.ask("PUT", topic, `{"partitions":1}`, 201, `"name":"t"`)
		w.ask("POST", topic+"/partitions/0/records", "a record", 200, `"base_offset":0`)
		w.ask("GET", topic+"/partitions/0/records", "", 200, `"value":"a record"`)
		w.ask("GET", "/metrics", "", 200, `siltstone_gateway_requests_total{route="partition_records",status="2xx"} 2`)
	})
}

// TestWebTimes: what takes too long ends, and a long poll does not.
func TestWebTimes(t *testing.T) {
	const records = "/api/v1/topics/t/partitions/0/records"
	for _, tt := range []struct {
		name, text string
		status     int // 0: the connection is closed
		takes      time.Duration
	}{
		{"nothing comes", "", 0, headerTime},
		{"headers do not end", "GET /ready HTTP/1.1\r\nHost: h\r\n", 0, headerTime},
		{"a body does not end", request("POST", records, "a")[:len(request("POST", records, "a"))-1], 408, bodyTime},
		{"a long poll", request("GET", records+"?wait=100", ""), 200, 25 * time.Second},
		{"a long poll with a body", request("GET", records+"?wait=25", "x"), 200, 25 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWeb(t, func(t *testing.T, w *webRig) {
				w.ask("PUT", "/api/v1/topics/t", `{"partitions":1}`, 201, "")
				begin := time.Now()
				status, text, err := answer(w.dial(tt.text))
				if took := time.Since(begin); took != tt.takes || status != tt.status || (err == nil) != (status != 0) {
					t.Errorf("%d %s, %v after %v; want %d after %v", status, text, err, took, tt.status, tt.takes)
				}
			})
		})
	}
}

// TestWebIdle: a connection that is not used is closed, and one whose answer
// nobody reads.
func TestWebIdle(t *testing.T) {
	inWeb(t, func(t *testing.T, w *webRig) {
		c := w.dial(request("GET", "/healthy", ""))
		if status, text, err := answer(c); status != 200 {
			t.Fatal(status, text, err)
		}
		begin := time.Now()
		if n, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begin) != idleTime {
			t.Errorf("%d bytes, %v after %v", n, err, time.Since(begin))
		}
		for late, read := range map[time.Duration]bool{replyTime - time.Second: true, replyTime + time.Second: false} {
			c := w.dial(request("GET", "/healthy", ""))
			time.Sleep(late)
			if status, text, err := answer(c); (status == 200) != read {
				t.Errorf("read after %v: %d %s, %v", late, status, text, err)
			}
		}
	})
}

// TestWebMost: connections beyond so many are closed, which is logged once,
// until others are.
func TestWebMost(t *testing.T) {
	inWeb(t, func(t *testing.T, w *webRig) {
		conns := make([]net.Conn, maxWebConnections)
		for i := range conns {
			conns[i] = w.dial("")
		}
		begin := time.Now()
		for range 3 {
			if n, err := w.dial("").Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begin) != 0 {
				t.Errorf("%d bytes, %v after %v", n, err, time.Since(begin))
			}
		}
		conns[7].Close()
		synctest.Wait()
		if n := strings.Count(w.logged.String(), "too many HTTP connections"); n != 1 {
			t.Errorf("%d warnings in %s", n, w.logged)
		}
		w.ask("GET", "/healthy", "", 200, "healthy")
	})
}

// TestWebStops: who waits is told, what is appended ends, idle connections are
// closed, and who does not end is left.
func TestWebStops(t *testing.T) {
	inWeb(t, func(t *testing.T, w *webRig) {
		w.ask("PUT", "/api/v1/topics/t", `{"partitions":1}`, 201, "")
		waiting, idle := w.dial(request("GET", "/api/v1/topics/t/partitions/0/records?wait=20", "")), w.dial(request("GET", "/healthy", ""))
		if status, text, err := answer(idle); status != 200 {
			t.Fatal(status, text, err)
		}
		synctest.Wait()
		begin := time.Now()
		w.stop()
		if status, text, err := answer(waiting); status != 503 || !strings.Contains(text, "stopping") {
			t.Errorf("%d %s, %v", status, text, err)
		}
		if n, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
		err := <-w.stopped
		if took := time.Since(begin); err != nil || took >= drainTime {
			t.Errorf("%v after %v", err, took)
		}
		w.stopped <- nil // for who waits for it
	})
	synctest.Test(t, func(t *testing.T) {
		release, cause := make(chan struct{}), make(chan error, 1)
		stubborn := func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			cause <- context.Cause(r.Context())
			<-release
		}
		w := &webRig{t: t, port: newPipes(), stopped: make(chan error, 1)}
		ctx, stop := context.WithCancel(t.Context())
		go func() { w.stopped <- serveHTTP(ctx, &http.Server{Handler: http.HandlerFunc(stubborn)}, w.port) }()
		w.dial(request("GET", "/", ""))
		synctest.Wait()
		begin := time.Now()
		stop()
		if err := <-cause; !errors.Is(err, gateway.ErrStopping) {
			t.Errorf("cancelled with %v", err)
		}
		if err := <-w.stopped; err != nil || time.Since(begin) != drainTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		close(release)
	})
}

// TestWebPort: a port that fails is an error.
func TestWebPort(t *testing.T) {
	port := newPipes()
	port.end()
	if err := serveHTTP(t.Context(), &http.Server{Handler: http.NotFoundHandler()}, port); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
