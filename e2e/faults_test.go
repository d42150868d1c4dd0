package e2e

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/siltstone-io/siltstone/localstack/faultproxy"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

// What a store may do to an agent, and what that must look like.
const (
	mostRequests = 20  // a second, to a store that refuses everything
	steadyRate   = 500 // records a second, before and after a fault
	// unreadyWithin is by when an agent says that it cannot serve: an upload
	// that is not answered is given 10 seconds.
	unreadyWithin = 14 * time.Second
	readyWithin   = 20 * time.Second
)

// storeFault is what happens to the requests to one store, or to both.
type storeFault struct {
	name   string
	bucket []faultproxy.Fault
	table  []faultproxy.Fault
	// outage: the store refuses everything, so the agent is not ready, and sends
	// little. unready: it must say so at some time, as something is refused always.
	outage, unready bool
}

func answering(e *faultproxy.Error) faultproxy.Fault {
	return faultproxy.Fault{Action: faultproxy.Answer, Error: e}
}

func only(f faultproxy.Fault, operations ...string) faultproxy.Fault {
	f.Operations = operations
	return f
}

func share(of float64, f faultproxy.Fault) faultproxy.Fault {
	f.Share = of
	return f
}

// storeFaults are cases 28, 30 and 32 of the field reports, and their kinds.
func storeFaults() []storeFault {
	type faults = []faultproxy.Fault
	dropped, unanswered := faultproxy.Fault{Action: faultproxy.DropReply}, faultproxy.Fault{Action: faultproxy.BlackHole}
	return []storeFault{
		{name: "bucket, replies of writes lost", bucket: faults{only(share(0.5, dropped), "PutObject")}},
		{name: "bucket, slow down", bucket: faults{answering(faultproxy.SlowDown)}, outage: true},
		{name: "bucket, slow down sometimes", bucket: faults{share(0.3, answering(faultproxy.SlowDown))}},
		{name: "bucket, credentials expired", bucket: faults{answering(faultproxy.ExpiredToken)}, outage: true},
		{name: "bucket, clock skewed", bucket: faults{answering(faultproxy.TimeTooSkewed)}, outage: true},
		{name: "bucket, no answers", bucket: faults{unanswered}, outage: true},
		{name: "bucket, reads denied", bucket: faults{only(answering(faultproxy.AccessDenied), "GetObject", "HeadObject")}, unready: true},
		{name: "bucket, writes denied", bucket: faults{only(answering(faultproxy.AccessDenied), "PutObject")}, unready: true},
		{name: "bucket, bodies cut", bucket: faults{
			{Action: faultproxy.CutUpload, Method: http.MethodPut, Share: 0.3}, {Action: faultproxy.CutReply, Method: http.MethodGet, Share: 0.3},
		}},
		{name: "bucket, slow", bucket: faults{{DelayMs: 700}}},
		{name: "table, replies of writes lost", table: faults{only(share(0.3, dropped), "PutItem")}},
		{name: "table, throttled", table: faults{answering(faultproxy.Throttled)}, outage: true},
		{name: "table, throttled sometimes", table: faults{share(0.3, answering(faultproxy.Throttled))}},
		{name: "table, credentials expired", table: faults{answering(faultproxy.TokenExpired)}, outage: true},
		{name: "table, errors", table: faults{answering(faultproxy.InternalServer)}, outage: true},
		{name: "table, no answers", table: faults{unanswered}, outage: true},
		{name: "table, writes denied", table: faults{only(answering(faultproxy.AccessDenied), "PutItem")}, unready: true},
		{name: "table, slow", table: faults{{DelayMs: 200}}},
		{name: "both, slow down", bucket: faults{answering(faultproxy.SlowDown)}, table: faults{answering(faultproxy.Throttled)}, outage: true},
	}
}

// TestFaults: whatever a store does to an agent, that goes on running, says
// whether it can serve, and does not storm the store. Once the fault is over all
// goes on as before, and what was acknowledged is there, once.
func TestFaults(t *testing.T) {
	for _, f := range storeFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			b := besiege(t)
			b.wantRate(t, "before")
			b.restart(t)
			b.suffer(t, &f)
			b.wantRate(t, "after")
			b.k.admin.end() // what it knows is looked at now
			b.k.end(t)
		})
	}
}

// proxies are fault proxies before both stores.
type proxies struct {
	bucket, table *faultproxy.Proxy
	minio, aws    string // their addresses
}

func newProxies(t *testing.T) (p proxies) {
	t.Helper()
	beginStores(t)
	p.bucket, p.minio = newProxy(t, stores.minio)
	p.table, p.aws = newProxy(t, stores.aws)
	return p
}

// cluster begins one behind the proxies.
func (p *proxies) cluster(t *testing.T, dir string, flags ...string) *storesOf {
	t.Helper()
	return newCluster(t, dir, p.minio, p.aws, flags...)
}

// begin has the stores behave like that, and counts requests from now on.
func (p *proxies) begin(t *testing.T, f *storeFault) {
	t.Helper()
	if err := errors.Join(p.bucket.Set(f.bucket...), p.table.Set(f.table...)); err != nil {
		t.Fatal(err)
	}
	p.bucket.ResetCounts()
	p.table.ResetCounts()
}

func (p *proxies) heal() {
	_ = p.bucket.Set()
	_ = p.table.Set()
}

// requests are those since begin, by store and second.
func (p *proxies) requests() map[string][]int {
	return map[string][]int{"bucket": p.bucket.PerSecond(), "table": p.table.PerSecond()}
}

// besieged is a server behind fault proxies, and its clients.
type besieged struct {
	proxies
	k *killing
}

// besiege starts a server on a cluster of its own.
func besiege(t *testing.T) *besieged {
	t.Helper()
	b := &besieged{proxies: newProxies(t)}
	dir := filepath.Join(t.TempDir(), "data")
	b.cluster(t, dir)
	b.k = newKilling(t, start(t, dir), 1, 40*time.Millisecond, 250*time.Millisecond)
	b.k.admin.begin(t, b.k.s)
	return b
}

func newProxy(t *testing.T, upstream string) (p *faultproxy.Proxy, addr string) {
	t.Helper()
	p, err := faultproxy.New(faultproxy.Options{Upstream: "http://" + upstream, Seed: rand.Uint64(), Secret: servers.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, server.Listener.Addr().String()
}

// wantRate wants all clients to make progress, and enough records a second to tell.
func (b *besieged) wantRate(t *testing.T, when string) {
	t.Helper()
	b.k.awaitProgress(t)
	acked := func() (n int) {
		for _, of := range b.k.journal.progress() {
			n += of
		}
		return n
	}
	before, begin := acked(), time.Now()
	<-time.After(time.Duration(count(3, 20)) * time.Second)
	rate := float64(acked()-before) / time.Since(begin).Seconds()
	t.Logf("%s: %.0f records a second", when, rate)
	if rate < steadyRate {
		t.Errorf("%.0f records a second %s", rate, when)
	}
}

// restart lets all that was written be in the bucket only.
func (b *besieged) restart(t *testing.T) {
	t.Helper()
	b.k.admin.end()
	b.k.s.stop(t)
	b.k.restart(t)
	b.k.admin.begin(t, b.k.s)
}

// suffer has the stores behave like that for a while.
func (b *besieged) suffer(t *testing.T, f *storeFault) {
	t.Helper()
	reader, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { b.readFromStart(reader, t) })
	b.begin(t, f)
	var unreadyAt, readyAt time.Duration
	why := ""
	begin, lasts := time.Now(), time.Duration(count(18, 180))*time.Second
	for tick := time.NewTicker(100 * time.Millisecond); time.Since(begin) < lasts; <-tick.C {
		status, reason := b.ready(t)
		switch at := time.Since(begin); {
		case status != http.StatusOK && unreadyAt == 0:
			unreadyAt, why = at, reason
		case status == http.StatusOK && unreadyAt > 0 && f.outage:
			t.Fatalf("ready %v into an outage, as it was not after %v (%s)", at, unreadyAt, why)
		}
	}
	requests := b.requests()
	b.heal()
	healed := time.Now()
	eventually(t, "ready again", func() bool { status, _ := b.ready(t); return status == http.StatusOK })
	readyAt = time.Since(healed)
	stop()
	reading.Wait()
	t.Logf("not ready after %v (%s), ready %v after the fault; requests by second: %v", unreadyAt, why, readyAt, requests)
	if (f.outage || f.unready) && (unreadyAt == 0 || unreadyAt > unreadyWithin) {
		t.Errorf("not ready after %v: %s", unreadyAt, why)
	}
	if readyAt > readyWithin {
		t.Errorf("ready only %v after the fault", readyAt)
	}
	for store, faults := range map[string][]faultproxy.Fault{"bucket": f.bucket, "table": f.table} {
		// What is under way when a store begins to refuse is in the first second.
		for second, n := range requests[store] {
			if f.outage && len(faults) > 0 && second > 0 && n > mostRequests {
				t.Errorf("%d requests to the %s in second %d", n, store, second)
			}
		}
	}
}

// ready asks whether the server is; it must answer.
func (b *besieged) ready(t *testing.T) (status int, reason string) {
	t.Helper()
	b.k.s.wantAlive(t)
	status, reason = b.k.s.get(t, "/ready")
	return status, strings.TrimSpace(reason)
}

// readFromStart reads a topic from its start, again and again.
func (b *besieged) readFromStart(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		cl := b.k.s.franz(t, kgo.ConsumeTopics(eagerTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		for once.Err() == nil {
			cl.PollFetches(once)
		}
		cancel()
		cl.Close()
	}
}

// TestFaultAtStart: an agent that starts while a store refuses everything waits
// for it, tells clients to come again, asks little, and serves once it can.
func TestFaultAtStart(t *testing.T) {
	for _, f := range storeFaults() {
		if !f.outage {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			p := newProxies(t)
			dir := t.TempDir()
			p.cluster(t, dir)
			s := start(t, dir)
			s.cli(t, "", "topic", "create", "numbers")
			s.write(t, "numbers", 0, 100)
			s.stop(t)
			p.begin(t, &f)
			addrs := freeAddrs(t, 2)
			s = startUnready(t, dir, serverCommand(t, dir, "--kafka", addrs[0], "--http", addrs[1]))
			s.kafka, s.http = addrs[0], addrs[1]
			eventually(t, "it listens", func() bool {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.http)
				if err == nil {
					_ = conn.Close()
				}
				return err == nil
			})
			begin := time.Now()
			for tick := time.NewTicker(250 * time.Millisecond); time.Since(begin) < time.Duration(count(11, 60))*time.Second; <-tick.C {
				s.wantAlive(t)
				if status, body := s.get(t, "/ready"); status != http.StatusServiceUnavailable || body == "" {
					t.Fatalf("/ready: %d %s", status, body)
				}
				if status, _ := s.get(t, "/healthy"); status != http.StatusOK {
					t.Fatalf("/healthy: %d", status)
				}
				if time.Since(begin) > 9*time.Second { // before, they are held
					s.turnsAway(t)
				}
			}
			for store, perSecond := range p.requests() {
				for second, n := range perSecond {
					if n > mostRequests {
						t.Errorf("%d requests to the %s in second %d: %v", n, store, second, perSecond)
					}
				}
			}
			p.heal()
			eventually(t, "ready", func() bool { status, _ := s.get(t, "/ready"); return status == http.StatusOK })
			s.wantNumbers(t, "numbers", 100)
			s.stop(t)
		})
	}
}

// turnsAway wants a Kafka client to be told at once that nobody is there.
func (s *server) turnsAway(t *testing.T) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("a client is not turned away: %v", err)
	}
}

// TestFaultAtStop: an agent that has to end with records that it could not
// write says so.
func TestFaultAtStop(t *testing.T) {
	p := newProxies(t)
	dir := t.TempDir()
	p.cluster(t, dir)
	s := start(t, dir)
	s.cli(t, "", "topic", "create", "t")
	p.begin(t, &storeFault{bucket: []faultproxy.Fault{answering(faultproxy.SlowDown)}})
	s.cli(t, lines(100, "%d"), "produce", "t", "--acks", "leader")
	code := s.terminate(t)
	if said := s.errors(); code != 1 || !strings.Contains(said, "could not be written out") || !strings.Contains(said, "SlowDown") {
		t.Errorf("code %d: %s", code, said)
	}
	p.heal()
	s = start(t, dir)
	s.cli(t, "on\n", "produce", "t")
	if out := s.cli(t, "", "consume", "t", "--exit"); out != "on\n" {
		t.Errorf("consumed %q", out)
	}
	s.stop(t)
	check(t, dir)
}

// TestFaultConditions is refused.
func TestFaultConditions(t *testing.T) {
	p := newProxies(t)
	dir := t.TempDir()
	p.cluster(t, dir)
	command := serverCommand(t, dir)
	p.begin(t, &storeFault{bucket: []faultproxy.Fault{{Action: faultproxy.StripConditions, Method: http.MethodPut}}})
	_, stderr, code := run(t, "", command.Args[1:]...)
	oneClearLine(t, "agent", stderr, code, "does not honour conditional writes")
}

// TestFaultUploads: where requests of uploads in parts are refused, nothing is
// acknowledged that is not there, and no upload is left unfinished.
func TestFaultUploads(t *testing.T) {
	p := newProxies(t)
	dir := t.TempDir()
	cluster := p.cluster(t, dir, "--flush-bytes", "16MiB", "--memory", "512MiB")
	cluster.remoteStores[1] += "?part-bytes=5242880"
	s := start(t, dir)
	const partitions = 16 // a batch of each is in one object
	s.createTopic(t, "t", partitions)
	s.stop(t)
	s = start(t, dir)
	records, size := count(45, 230), 900_000
	cl := s.franz(t, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(4*partitions))
	p.begin(t, &storeFault{bucket: []faultproxy.Fault{answering(faultproxy.ExpiredToken)}})
	time.AfterFunc(time.Duration(count(3, 30))*time.Second, func() {
		_ = p.bucket.Set(faultproxy.Fault{Operations: []string{"UploadPart"}, Every: 5, Action: faultproxy.Answer, Error: faultproxy.ExpiredToken})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	var mu sync.Mutex
	acked := map[place]byte{}
	for i := range records {
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(i + j)
		}
		cl.Produce(ctx, &kgo.Record{Topic: "t", Partition: int32(i % partitions), Value: value}, func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("record %d: %v", i, err)
				return
			}
			acked[place{r.Partition, r.Offset}] = byte(i)
		})
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if parts := p.bucket.Requests("UploadPart"); parts < 5 {
		t.Errorf("only %d parts", parts)
	}
	p.heal()
	s.stop(t)
	if left := unfinished(t); len(left) > 0 {
		t.Errorf("unfinished uploads: %v", left)
	}
	s = start(t, dir)
	for at, first := range acked {
		r := s.read(t, "t", at.partition, at.offset, 1)
		if r[0].Offset != at.offset || len(r[0].Value) != size || r[0].Value[0] != first || r[0].Value[size-1] != byte(int(first)+size-1) {
			t.Fatalf("%v does not have what was acknowledged", at)
		}
	}
	s.stop(t)
	check(t, dir)
}

// unfinished are uploads that MinIO holds the parts of.
func unfinished(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(program), "minio", ".minio.sys", "multipart", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
