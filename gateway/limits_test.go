package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// endless is a body without an end that counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	e.read += len(p)
	return len(p), nil
}

// TestBodyTooLarge is told before the body is read: at once where its length
// is said, else as soon as it is passed.
func TestBodyTooLarge(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.BodyBytes = 10_000 }))
	f.create("t", 1)
	said := httptest.NewRequestWithContext(t.Context(), "POST", recordsOf, nil)
	body := &endless{}
	said.Body, said.ContentLength = io.NopCloser(body), 90<<20
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, said)
	reply{t, w.Code, w.Result().Header, w.Body.String()}.want(413, 41302, "94371840 bytes, and 10000")
	if body.read > 0 {
		t.Errorf("%d bytes were read", body.read)
	}
	f.doWith(t.Context(), "POST", recordsOf, body).want(413, 41302, "more than 10000")
	if body.read > 10_001 {
		t.Errorf("%d bytes were read", body.read)
	}
	f.do("PUT", "/api/v1/topics/x", strings.Repeat(" ", topicBytes+1)).want(413, 41302, "")
	f.do("POST", recordsOf, strings.Repeat("a", 10_000)).ok()
}

func TestTooManyRecords(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.Records = 3 }))
	f.create("t", 1)
	lines := strings.Repeat(`{"value":"a"}`+"\n", 3)
	f.do("POST", recordsOf, lines, "Content-Type", typeLines).ok()
	f.do("POST", recordsOf, lines+lines, "Content-Type", typeLines).want(413, 41302, "more than 3 records")
	headers := strings.Repeat(`["",""],`, maxHeaders) + `["",""]`
	f.post(recordsOf, `{"records":[{"value":"a","headers":[`+headers+`]}]}`).want(422, 42206, "more than 1000 headers")
}

func compressed(t testing.TB, encoding string, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBodyCompressed: bodies come compressed, and a bomb stays in its bound.
func TestBodyCompressed(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			f := start(t, limits(func(l *Limits) { l.BodyBytes = 100_000 }))
			topic := f.create("t", 1)
			good := compressed(t, encoding, []byte(`{"records":[{"value":"a"}]}`))
			post := func(body []byte) reply { return f.post(recordsOf, string(body), "Content-Encoding", encoding) }
			post(good).ok()
			if got := f.stored(topic, 0); len(got) != 1 || string(got[0].Value) != "a" {
				t.Errorf("%+v", got)
			}
			post(compressed(t, encoding, make([]byte, 50<<20))).want(413, 41302, "more than 100000")
			post(good[:len(good)-3]).want(400, 40003, "decompressed")
			post(append(good, "garbage"...)).want(400, 40003, "decompressed")
			post([]byte("garbage of some length")).want(400, 40003, "")
			post(nil).want(400, 40003, "")
			made := f.do("PUT", "/api/v1/topics/u", string(compressed(t, encoding, []byte(`{"partitions":2}`))), "Content-Encoding", encoding)
			if u := made.topic(201); u.Partitions != 2 {
				t.Errorf("%+v", u)
			}
			f.do("PUT", "/api/v1/topics/v", string(compressed(t, encoding, make([]byte, 50<<20))), "Content-Encoding", encoding).want(413, 41302, "more than 65536")
		})
	}
	f := start(t)
	f.create("t", 1)
	f.post(recordsOf, "{}", "Content-Encoding", "br").want(415, 41501, "br")
	f.post(recordsOf, "{}", "Content-Encoding", "gzip, zstd").want(415, 41501, "one at a time")
	f.post(recordsOf, `{"records":[{"value":"a"}]}`, "Content-Encoding", "identity").ok()
}

// TestMemory: what requests hold together is bounded, and given back.
func TestMemory(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture, _ siltstone.TopicPartition) {
		body := strings.Repeat("a", 90_000)
		hold := make(chan struct{})
		f.log.hold = hold
		done := make(chan reply)
		go func() { done <- f.do("POST", recordsOf, body) }()
		synctest.Wait()
		f.do("POST", recordsOf, body).want(503, 50305, "memory")
		f.post(recordsOf, body, "Content-Encoding", "gzip").want(400, 40003, "")
		close(hold)
		(<-done).ok()
		f.do("POST", recordsOf, body).ok()
		if m := f.do("GET", "/metrics", "").ok().body; !strings.Contains(m, "siltstone_gateway_request_memory_bytes 0\n") {
			t.Errorf("memory is still held: %s", m)
		}
	}, limits(func(l *Limits) { l.BodyBytes, l.MemoryBytes = 100_000, 600_000 }))
}

// TestReadMemory: where there is no memory for all records of a reply there are
// fewer, and none is an error.
func TestReadMemory(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.BodyBytes, l.MemoryBytes = 1000, 30_000 }))
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, "small", strings.Repeat("a", 50_000)))
	if p := f.do("GET", recordsOf, "").page(); p.Next != 1 || len(p.Records) != 1 {
		t.Errorf("%+v", p)
	}
	f.do("GET", recordsOf+"?offset=1", "").want(503, 50305, "memory")
}

// TestReplyLimits: a reply ends after so many bytes, but has a record, unless
// nothing so large can be sent.
func TestReplyLimits(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.ReplyBytes, l.MostReplyBytes = 3000, 6000 }))
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, strings.Repeat("a", 2000), strings.Repeat("b", 5000), strings.Repeat("c", 7000), "d"))
	for offset, want := range []int64{1, 2} {
		if p := f.do("GET", recordsOf+"?max_bytes=100000&offset="+string(rune('0'+offset)), "").page(); p.Next != want || len(p.Records) != 1 {
			t.Errorf("from %d: next %d, %d records", offset, p.Next, len(p.Records))
		}
	}
	got := f.do("GET", recordsOf+"?offset=2", "")
	if got.want(413, 41301, "offset 2"); !strings.Contains(got.body, `"next_offset":3`) {
		t.Errorf("%s", got.body)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, run func(t *testing.T, f *fixture, topic siltstone.TopicPartition), change ...func(*Options)) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, change...)
		run(t, f, siltstone.TopicPartition{Topic: f.create("t", 1).ID})
	})
}

// TestLongPoll waits as long as it is asked to, at most as long as it may, and
// no longer than until there is a record.
func TestLongPoll(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture, tp siltstone.TopicPartition) {
		topic, _ := f.topics.Topics().Topic("t")
		took := func(ctx context.Context, query string, want time.Duration) pageOf {
			t.Helper()
			begin := time.Now()
			p := f.doWith(ctx, "GET", recordsOf+query, nil).page()
			if got := time.Since(begin); got != want {
				t.Errorf("%s took %v, want %v", query, got, want)
			}
			return p
		}
		took(t.Context(), "", 0)
		took(t.Context(), "?wait=1.5", 1500*time.Millisecond)
		took(t.Context(), "?wait=3600&offset=latest", 25*time.Second)
		deadline, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		took(deadline, "?wait=20", 8*time.Second) // a function has to answer before its end
		go func() {
			time.Sleep(2 * time.Second)
			f.put(topic, 0, marker(t)) // which is no record
			time.Sleep(2 * time.Second)
			f.put(topic, 0, batchOf(t, batch.None, 0, "a"))
		}()
		if p := took(t.Context(), "?wait=20", 4*time.Second); p.Next != 2 || len(p.Records) != 1 {
			t.Errorf("%+v", p)
		}
		f.put(topic, 0, marker(t))
		if p := took(t.Context(), "?wait=5&offset=2", 5*time.Second); p.Next != 3 || p.Start != 2 {
			t.Errorf("%+v", p)
		}
		_ = tp
	})
}

// TestStop: reads end when the server stops, and appends get a little time.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture, _ siltstone.TopicPartition) {
		ctx, stop := context.WithCancelCause(t.Context())
		replies := make(chan reply, 2)
		go func() { replies <- f.doWith(ctx, "GET", recordsOf+"?wait=20", nil) }()
		synctest.Wait()
		begin := time.Now()
		stop(ErrStopping)
		got := <-replies
		if got.want(503, 50301, "stopping"); got.header.Get("Connection") != "close" || time.Since(begin) != 0 {
			t.Errorf("%v after %v", got.header, time.Since(begin))
		}

		for _, decidedAfter := range []time.Duration{time.Second, 10 * time.Second} {
			hold := make(chan struct{})
			f.log.hold = hold
			ctx, stop := context.WithCancelCause(t.Context())
			go func() { replies <- f.doWith(ctx, "POST", recordsOf, strings.NewReader("x")) }()
			synctest.Wait()
			begin := time.Now()
			stop(ErrStopping)
			time.AfterFunc(decidedAfter, func() { close(hold) })
			got := <-replies
			if decidedAfter < 4*time.Second {
				got.ok()
			} else {
				got.want(503, 50301, "may yet be written")
			}
			if took := time.Since(begin); took != min(decidedAfter, 4*time.Second) {
				t.Errorf("it took %v", took)
			}
			<-hold
			synctest.Wait()
		}
	})
}

// TestClientGone: nothing is answered to who does not wait, and what the log
// has of an append stays the log's.
func TestClientGone(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture, _ siltstone.TopicPartition) {
		ctx, cancel := context.WithCancel(t.Context())
		replies := make(chan reply, 1)
		go func() { replies <- f.doWith(ctx, "GET", recordsOf+"?wait=20", nil) }()
		synctest.Wait()
		cancel()
		if got := <-replies; got.body != "" {
			t.Errorf("%+v", got)
		}
		f.log.hold = make(chan struct{})
		ctx, cancel = context.WithCancel(t.Context())
		go func() { replies <- f.doWith(ctx, "POST", recordsOf, strings.NewReader("x")) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-replies:
			t.Error("the request ended before the log was done with it")
		default:
		}
		close(f.log.hold)
		<-replies
		f.log.hold = nil
		if m := f.do("GET", "/metrics", "").ok().body; !strings.Contains(m, `siltstone_gateway_requests_total{route="partition_records",status="gone"} 1`) {
			t.Errorf("%s", m)
		}
	})
}

// slow is the body of a client that the server stopped waiting for.
type slow struct{}

func (slow) Read([]byte) (int, error) { return 0, &net.OpError{Op: "read", Err: timeout{}} }

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestBodySlow(t *testing.T) {
	f := start(t)
	f.create("t", 1)
	f.doWith(t.Context(), "POST", recordsOf, slow{}).want(408, 40801, "in time")
}

func TestOptions(t *testing.T) {
	f := start(t)
	whole := Options{Agent: agentState{}, Log: f.log, Topics: f.topics, Random: func() uint64 { return 1 }, Gatherer: f.registry}
	for name, change := range map[string]func(*Options){
		"an agent": func(o *Options) { o.Log = nil },
		"negative": func(o *Options) { o.Limits.ReplyBytes = -1 },
		"not fit":  func(o *Options) { o.Limits.BodyBytes, o.Limits.MemoryBytes = 1000, 4999 },
	} {
		o := whole
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(whole); err != nil {
		t.Error(err)
	}
}

// TestClassify: each error that a caller branches on has its status, and each
// number is of its status.
func TestClassify(t *testing.T) {
	for _, c := range classes {
		if c.number/100 != c.status {
			t.Errorf("%v: status %d and number %d", c.err, c.status, c.number)
		}
		if c.status == 503 && !c.retriable {
			t.Errorf("%v: 503 and not to be tried again", c.err)
		}
		status, e := classify(errors.Join(errors.New("beside"), c.err))
		if status != c.status || e.Number != c.number || e.Code != c.code || e.Message == "" {
			t.Errorf("%v: %d %+v", c.err, status, e)
		}
	}
	for err, want := range map[error]int{
		siltstone.ErrUnknownPartition: 40402, siltstone.ErrNotLeader: 50303, siltstone.ErrFencedEpoch: 50303, siltstone.ErrUnknownEpoch: 50303,
		siltstone.ErrTimedOut: 50401, siltstone.ErrTooLarge: 41303, siltstone.ErrUnavailable: 50302, siltstone.ErrCorrupt: 50002,
		siltstone.ErrNewerFormat: 50302, context.DeadlineExceeded: 50401, errors.New("anything"): 50001,
		batch.ErrTimestamp: 42216, batch.ErrTooLarge: 41303, batch.ErrInvalid: 42206, batch.ErrCorrupt: 50002,
	} {
		if status, e := classify(err); e.Number != want || status != want/100 {
			t.Errorf("%v: %d %+v, want %d", err, status, e, want)
		}
	}
	if status, _ := classify(errors.New("anything")); status != http.StatusInternalServerError {
		t.Errorf("status %d", status)
	}
}
