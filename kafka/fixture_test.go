package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/coordinator/topic/topictest"
)

// fixture is a server over fakes, behind a listener.
type fixture struct {
	t        testing.TB
	log      *fakeLog
	groups   *fakeGroups
	admin    *fakeAdmin
	topics   *topictest.Topics
	cluster  *fakeCluster
	server   *Server
	registry *prometheus.Registry
	listener net.Listener
	stop     context.CancelFunc
	served   chan error
}

// start starts a server on loopback.
func start(t testing.TB, change ...func(*fixture, *Options)) *fixture {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := startOn(t, l, change...)
	port := int32(l.Addr().(*net.TCPAddr).Port)
	f.cluster.set(func(c *fakeCluster) { c.info.Nodes[0].Port = port })
	return f
}

func startOn(t testing.TB, l net.Listener, change ...func(*fixture, *Options)) *fixture {
	t.Helper()
	f := &fixture{
		t: t, log: newFakeLog(), topics: topictest.New(), cluster: newFakeCluster(),
		registry: prometheus.NewRegistry(), listener: l, served: make(chan error, 1),
	}
	f.groups, f.admin = newFakeGroups(f.topics), &fakeAdmin{log: f.log, topics: f.topics}
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	o := Options{
		Log: f.log, Groups: f.groups, Admin: f.admin, Topics: f.topics, Cluster: f.cluster,
		Random: func() uint64 {
			mu.Lock()
			defer mu.Unlock()
			return random.Uint64()
		},
		Metrics: f.registry,
		Logger:  slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	for _, c := range change {
		c(f, &o)
	}
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.server = server
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f.stop = cancel
	go func() { f.served <- server.Serve(ctx, l) }()
	t.Cleanup(f.close)
	return f
}

// close stops the server and waits for it.
func (f *fixture) close() {
	if f.stop == nil {
		return
	}
	f.stop()
	f.stop = nil
	if err := <-f.served; err != nil {
		f.t.Errorf("Serve: %v", err)
	}
	f.groups.close()
}

// limits sets some of the server's.
func limits(set func(*Limits)) func(*fixture, *Options) {
	return func(_ *fixture, o *Options) { set(&o.Limits) }
}

// create makes a topic with settings given as name, value, name, value.
func (f *fixture) create(name string, partitions int32, settings ...string) *topic.Topic {
	f.t.Helper()
	n := topic.NewTopic{Name: name, ID: f.server.newTopicID(), Partitions: partitions, Replication: -1}
	for i := 0; i < len(settings); i += 2 {
		n.Configs = append(n.Configs, topic.Setting{Name: settings[i], Value: &settings[i+1]})
	}
	errs, err := decide(f.t.Context(), f.server, false, func(v *topic.View) (topic.Decision, []error) {
		return topic.Create(v, []topic.NewTopic{n})
	})
	if err := changeError(err, errs, 0); err != nil {
		f.t.Fatal(err)
	}
	made, ok := f.topics.Topics().Topic(name)
	if !ok {
		f.t.Fatalf("topic %s was not made", name)
	}
	return made
}

// client speaks raw requests over one connection.
type client struct {
	t    testing.TB
	conn net.Conn
	last int32 // correlation id
}

func (f *fixture) dial() *client {
	f.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(f.t.Context(), "tcp", f.listener.Addr().String())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return &client{t: f.t, conn: conn}
}

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("tests"))

// send sends a request at its version.
func (c *client) send(q kmsg.Request) {
	c.t.Helper()
	c.last++
	if _, err := c.conn.Write(formatter.AppendRequest(nil, q, c.last)); err != nil {
		c.t.Fatal(err)
	}
}

// frame reads one answer, or says how the connection ended.
func (c *client) frame() ([]byte, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.conn, b)
	return b, err
}

// receive reads the answer to a request; correlation ids come in order.
func (c *client) receive(q kmsg.Request, correlation int32) kmsg.Response {
	c.t.Helper()
	b, err := c.frame()
	if err != nil {
		c.t.Fatalf("%s v%d: %v", kmsg.NameForKey(q.Key()), q.GetVersion(), err)
	}
	return parse(c.t, q, b, correlation)
}

func parse(t testing.TB, q kmsg.Request, b []byte, correlation int32) kmsg.Response {
	t.Helper()
	if got := int32(binary.BigEndian.Uint32(b)); got != correlation {
		t.Fatalf("%s v%d: answer to request %d, want %d", kmsg.NameForKey(q.Key()), q.GetVersion(), got, correlation)
	}
	b = b[4:]
	if q.IsFlexible() && q.Key() != int16(kmsg.ApiVersions) {
		if b[0] != 0 {
			t.Fatalf("header with %d tags", b[0])
		}
		b = b[1:]
	}
	resp := q.ResponseKind()
	if err := resp.ReadFrom(b); err != nil {
		t.Fatalf("%s v%d: %v", kmsg.NameForKey(q.Key()), q.GetVersion(), err)
	}
	// Nothing may be left over: what it says, written again, is as long.
	if again := resp.AppendTo(nil); len(again) != len(b) {
		t.Fatalf("%s v%d: %d bytes, of which %d are the answer", kmsg.NameForKey(q.Key()), q.GetVersion(), len(b), len(again))
	}
	return resp
}

// ask sends a request at a version and reads its answer.
func ask[R kmsg.Response](c *client, version int16, q kmsg.Request) R {
	c.t.Helper()
	q.SetVersion(version)
	c.send(q)
	resp, ok := c.receive(q, c.last).(R)
	if !ok {
		c.t.Fatalf("%s is not answered by a %T", kmsg.NameForKey(q.Key()), resp)
	}
	return resp
}

// wantClosed waits for the server to close the connection, without an answer.
func (c *client) wantClosed() {
	c.t.Helper()
	if b, err := c.frame(); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !isReset(err) {
		c.t.Fatalf("%d bytes and %v, want the connection closed", len(b), err)
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// metric is the value of a gauge or counter.
func metric(m prometheus.Metric) float64 {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		panic(err)
	}
	return out.GetGauge().GetValue() + out.GetCounter().GetValue()
}
