package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

const recordsOf = "/api/v1/topics/t/partitions/0/records"

// pageOf is the body of a read.
type pageOf struct {
	ID       string `json:"topic_id"`
	Start    int64  `json:"start_offset"`
	Next     int64  `json:"next_offset"`
	High     int64  `json:"high_watermark"`
	LogStart int64  `json:"log_start_offset"`
	Records  []struct {
		Offset    int64
		Timestamp *int64
		Key       *string
		Value     json.RawMessage
		Base64    *string `json:"value_base64"`
	}
}

func (r reply) page() (p pageOf) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.ok().body), &p); err != nil {
		r.t.Fatalf("%s: %v", r.body, err)
	}
	if r.header.Get("Next-Offset") != fmt.Sprint(p.Next) || r.header.Get("High-Watermark") != fmt.Sprint(p.High) ||
		r.header.Get("Up-To-Date") != fmt.Sprint(p.Next == p.High) {
		r.t.Errorf("%v and %s", r.header, r.body)
	}
	return p
}

func (p pageOf) offsets() (all []int64) {
	for _, r := range p.Records {
		all = append(all, r.Offset)
	}
	return all
}

// TestRead: from an offset on there are the records of data, whatever batches
// they are in, and next_offset passes over all else.
func TestRead(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, "0", "1", "2"))
	f.put(topic, 0, marker(t))                             // 3
	f.put(topic, 2, batchOf(t, batch.Zstd, 0, "6", "7"))   // 4 and 5 are missing
	f.put(topic, 0, batchOf(t, batch.LZ4, 0, "8"))         //
	f.put(topic, 0, marker(t))                             // 9
	f.put(topic, 0, batchOf(t, batch.Gzip, 0, "10", "11")) //
	f.put(topic, 0, marker(t))                             // 12
	tests := []struct {
		query       string
		offsets     []int64
		start, next int64
	}{
		{"", []int64{0, 1, 2, 6, 7, 8, 10, 11}, 0, 13},
		{"?offset=earliest", []int64{0, 1, 2, 6, 7, 8, 10, 11}, 0, 13},
		{"?offset=2", []int64{2, 6, 7, 8, 10, 11}, 2, 13},
		{"?offset=3", []int64{6, 7, 8, 10, 11}, 3, 13},
		{"?offset=5&limit=1", []int64{6}, 5, 7},
		{"?offset=7", []int64{7, 8, 10, 11}, 7, 13},
		{"?offset=8&limit=1", []int64{8}, 8, 10},
		{"?limit=3", []int64{0, 1, 2}, 0, 6},
		{"?limit=4", []int64{0, 1, 2, 6}, 0, 7},
		{"?max_bytes=1", []int64{0}, 0, 1},
		{"?max_bytes=150", []int64{0, 1}, 0, 2},
		{"?offset=12", nil, 12, 13},
		{"?offset=13", nil, 13, 13},
		{"?offset=latest", nil, 13, 13},
		{"?timestamp=1001", []int64{1, 2, 6, 7, 8, 10, 11}, 1, 13},
		{"?timestamp=5000", nil, 13, 13},
		{"?isolation=read_uncommitted&offset=11", []int64{11}, 11, 13},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			p := f.do("GET", recordsOf+tt.query, "").page()
			if diff := cmp.Diff(tt.offsets, p.offsets()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if p.Start != tt.start || p.Next != tt.next || p.High != 13 || p.ID != topic.ID.String() {
				t.Errorf("%+v", p)
			}
			for _, r := range p.Records {
				if string(r.Value) != fmt.Sprintf(`"%d"`, r.Offset) || r.Timestamp == nil {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	if f.log.released != f.log.fetches || f.log.fetches == 0 {
		t.Errorf("%d fetches, %d released", f.log.fetches, f.log.released)
	}
}

// TestReadAll follows next_offset, one record a time.
func TestReadAll(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	for range 3 {
		f.put(topic, 1, batchOf(t, batch.Snappy, 0, "a", "b"))
		f.put(topic, 0, marker(t))
	}
	var got []int64
	for next := int64(0); next < 12; {
		p := f.do("GET", fmt.Sprintf("%s?offset=%d&limit=1", recordsOf, next), "").page()
		if p.Next <= next {
			t.Fatalf("from %d to %d", next, p.Next)
		}
		next = p.Next
		got = append(got, p.offsets()...)
	}
	if diff := cmp.Diff([]int64{1, 2, 5, 6, 9, 10}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadEncodings: nothing is lost, whatever the bytes are.
func TestReadEncodings(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	b := batch.NewBuilder(batch.None, 0)
	for _, r := range []batch.Record{
		{Timestamp: 5, Key: []byte("k\"\\\n\x01<é"), Value: []byte(`{"a": 1}`), Headers: []batch.RecordHeader{header("h", []byte("v")), header("h", nil)}},
		{Timestamp: batch.NoTimestamp, Key: nil, Value: nil},
		{Timestamp: 5, Key: []byte{}, Value: []byte("\xff")},
		{Timestamp: 5, Key: []byte("1"), Value: []byte(" null\n"), Headers: []batch.RecordHeader{header("\xff", []byte("v")), header("h", []byte("\xff"))}},
		{Timestamp: 5, Key: []byte("1 2"), Value: []byte("\"\xff\"")},
		{Timestamp: 5, Key: []byte("[1,\n2]"), Value: []byte{}},
	} {
		b.Append(r)
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	f.put(topic, 0, built)
	for encoding, want := range map[string]string{
		"utf8": `{"offset":0,"timestamp":5,"key":"k\"\\\n\u0001<é","value":"{\"a\": 1}","headers":[["h","v"],["h",null]]}
{"offset":1,"timestamp":-1,"key":null,"value":null,"headers":[]}
{"offset":2,"timestamp":5,"key":"","value":null,"value_base64":"/w==","headers":[]}
{"offset":3,"timestamp":5,"key":"1","value":" null\n","headers":[{"name":null,"name_base64":"/w==","value":"v"},{"name":"h","value":null,"value_base64":"/w=="}]}
{"offset":4,"timestamp":5,"key":"1 2","value":null,"value_base64":"Iv8i","headers":[]}
{"offset":5,"timestamp":5,"key":"[1,\n2]","value":"","headers":[]}
`,
		"json": `{"offset":0,"timestamp":5,"key":null,"key_base64":"ayJcCgE8w6k=","value":{"a":1},"headers":[["h","v"],["h",null]]}
{"offset":1,"timestamp":-1,"key":null,"value":null,"headers":[]}
{"offset":2,"timestamp":5,"key":null,"key_base64":"","value":null,"value_base64":"/w==","headers":[]}
{"offset":3,"timestamp":5,"key":1,"value":null,"value_base64":"IG51bGwK","headers":[{"name":null,"name_base64":"/w==","value":"v"},{"name":"h","value":null,"value_base64":"/w=="}]}
{"offset":4,"timestamp":5,"key":null,"key_base64":"MSAy","value":null,"value_base64":"Iv8i","headers":[]}
{"offset":5,"timestamp":5,"key":[1,2],"value":null,"value_base64":"","headers":[]}
`,
		"base64": `{"offset":0,"timestamp":5,"key":"ayJcCgE8w6k=","value":"eyJhIjogMX0=","headers":[["h","dg=="],["h",null]]}
{"offset":1,"timestamp":-1,"key":null,"value":null,"headers":[]}
{"offset":2,"timestamp":5,"key":"","value":"/w==","headers":[]}
{"offset":3,"timestamp":5,"key":"MQ==","value":"IG51bGwK","headers":[{"name":null,"name_base64":"/w==","value":"dg=="},["h","/w=="]]}
{"offset":4,"timestamp":5,"key":"MSAy","value":"Iv8i","headers":[]}
{"offset":5,"timestamp":5,"key":"WzEsCjJd","value":"","headers":[]}
`,
	} {
		t.Run(encoding, func(t *testing.T) {
			got := f.do("GET", recordsOf+"?encoding="+encoding, "", "Accept", "text/html, application/x-ndjson, */*;q=0.1").ok()
			if diff := cmp.Diff(want, got.body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.header.Get("Content-Type") != typeLines || got.header.Get("Next-Offset") != "6" || got.header.Get("Up-To-Date") != "true" {
				t.Errorf("%v", got.header)
			}
			// The same in one document.
			var lines []json.RawMessage
			for line := range strings.Lines(want) {
				lines = append(lines, json.RawMessage(line))
			}
			var p struct{ Records []json.RawMessage }
			if err := json.Unmarshal([]byte(f.do("GET", recordsOf+"?encoding="+encoding, "").ok().body), &p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines, p.Records, cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(trim(a), trim(b)) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, "0", "1"))
	f.put(topic, 0, batchOf(t, batch.None, 0, "2"))
	f.log.partition(siltstone.TopicPartition{Topic: topic.ID}).start = 2
	gone := f.do("GET", recordsOf+"?offset=1", "")
	gone.want(410, 41001, "offset 1, of a log from 2 to 3")
	beyond := f.do("GET", recordsOf+"?offset=4", "")
	beyond.want(416, 41601, "offset 4, of a log from 2 to 3")
	for _, r := range []reply{gone, beyond} {
		if !strings.Contains(r.body, `"details":{"high_watermark":3,"log_start_offset":2}`) {
			t.Errorf("%s", r.body)
		}
	}
	if p := f.do("GET", recordsOf, "").page(); p.Start != 2 || p.LogStart != 2 || len(p.Records) != 1 {
		t.Errorf("%+v", p)
	}
	for query, contains := range map[string]string{
		"offset=-1": "offset", "offset=x": "offset", "offset=1&timestamp=1": "both", "timestamp=-1": "timestamp", "timestamp=now": "timestamp",
		"limit=0": "limit", "max_bytes=0": "max_bytes", "wait=-1": "wait", "wait=NaN": "wait", "wait=5s": "wait",
		"encoding=avro": "encoding", "isolation=none": "isolation", "offset=": "offset", "offset=end": "earliest, latest or an integer",
	} {
		f.do("GET", recordsOf+"?"+query, "").want(400, 40001, contains)
	}
	for err, number := range map[error]int{
		siltstone.ErrNotLeader: 50303, siltstone.ErrUnavailable: 50302, siltstone.ErrCorrupt: 50002, siltstone.ErrUnknownPartition: 40402,
	} {
		f.log.fail = func(siltstone.TopicPartition) error { return err }
		f.do("GET", recordsOf+"?offset=2", "").want(number/100, number, err.Error())
		f.do("GET", recordsOf, "").want(number/100, number, err.Error())
	}
}

// TestReadDamaged: what is damaged in the store is no fault of the reader's.
func TestReadDamaged(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	bad := batchOf(t, batch.Zstd, 0, strings.Repeat("a", 100))
	clear(bad[batch.HeaderBytes:])
	f.put(topic, 0, bad)
	f.do("GET", recordsOf, "").want(500, 50002, "offset 0")
	if f.log.released != 1 {
		t.Errorf("%d released", f.log.released)
	}
}

// TestReadCompressed compresses as it is asked to, and only then.
func TestReadCompressed(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, strings.Repeat("a", 5000)))
	plain := f.do("GET", recordsOf, "").ok()
	for accept, want := range map[string]string{
		"gzip": "gzip", "br, gzip;q=0.5": "gzip", "zstd": "zstd", "gzip, zstd": "zstd", "gzip, zstd;q=0.9": "gzip", "*": "zstd",
		"zstd;q=0, *": "gzip", "gzip;q=0": "", "br": "", "identity": "", "gzip;q=0, zstd;q=0, *": "",
	} {
		for range 2 { // the second time with a compressor that was used
			got := f.do("GET", recordsOf, "", "Accept-Encoding", accept).ok()
			if coding := got.header.Get("Content-Encoding"); coding != want || !strings.Contains(got.header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s: %v", accept, got.header)
			}
			if size := got.header.Get("Content-Length"); size != strconv.Itoa(len(got.body)) {
				t.Errorf("%s: %s bytes are said, %d came", accept, size, len(got.body))
			}
			if got := decompressed(t, want, got.body); got != plain.body {
				t.Errorf("%s: %q", accept, got)
			}
		}
	}
	f.put(topic, 0, batchOf(t, batch.None, 0, "small"))
	if got := f.do("GET", recordsOf+"?offset=1", "", "Accept-Encoding", "gzip").ok(); got.header.Get("Content-Encoding") != "" {
		t.Errorf("%v", got.header)
	}
}

// TestReadNotCompressed: what does not become smaller, or has no memory, goes
// out as it is.
func TestReadNotCompressed(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.BodyBytes, l.MemoryBytes = 1000, 40_000 }))
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, strings.Repeat("a", 30_000)))
	got := f.do("GET", recordsOf, "", "Accept-Encoding", "zstd")
	if len(got.page().Records) != 1 || got.header.Get("Content-Encoding") != "" {
		t.Errorf("%v", got.header)
	}
	noise := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for _, c := range codings {
		if _, ok := c.compress([][]byte{noise}, len(noise)); ok {
			t.Errorf("%s: noise became smaller", c.name)
		}
	}
}

func decompressed(t *testing.T, coding, body string) string {
	t.Helper()
	open, err := decompressor(strings.Fields(coding))
	if err != nil || open == nil {
		return body
	}
	plain, done, err := open(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPartition shows how far a partition reaches, and what was there when.
func TestPartition(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	f.put(topic, 0, batchOf(t, batch.None, 0, "0", "1"))
	f.put(topic, 0, batchOf(t, batch.None, 0, "2"))
	f.log.partition(siltstone.TopicPartition{Topic: topic.ID}).start = 2
	got := f.do("GET", "/api/v1/topics/t/partitions/0", "").ok()
	want := fmt.Sprintf(`{"topic_id":%q,"partition":0,"log_start_offset":2,"last_stable_offset":3,"high_watermark":3,"leader_epoch":7}`+"\n", topic.ID)
	if got.body != want || got.header.Get("ETag") != `"3"` {
		t.Errorf("%s, ETag %s, want %s", got.body, got.header.Get("ETag"), want)
	}
	if head := f.do("HEAD", "/api/v1/topics/t/partitions/0", "").ok(); head.header.Get("ETag") != `"3"` {
		t.Errorf("%v", head.header)
	}
	for query, want := range map[string]string{
		"?timestamp=1001": `{"offset":1,"timestamp":1001,"leader_epoch":7}`,
		"?timestamp=2000": `{"offset":null,"timestamp":null,"leader_epoch":null}`,
	} {
		if got := f.do("GET", "/api/v1/topics/t/partitions/0/offset"+query, "").ok(); got.body != want+"\n" {
			t.Errorf("%s: %s", query, got.body)
		}
	}
	f.do("GET", "/api/v1/topics/t/partitions/0/offset", "").want(400, 40001, "timestamp")
	f.do("GET", "/api/v1/topics/t/partitions/0/offset?timestamp=x", "").want(400, 40001, "timestamp")
	f.log.fail = func(siltstone.TopicPartition) error { return siltstone.ErrNotLeader }
	f.do("GET", "/api/v1/topics/t/partitions/0", "").want(503, 50303, "")
	f.do("GET", "/api/v1/topics/t/partitions/0/offset?timestamp=5", "").want(503, 50303, "")
}
