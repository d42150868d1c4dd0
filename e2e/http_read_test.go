package e2e

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// webRecord is a record as a read gives it.
type webRecord struct {
	Offset      int64
	Timestamp   *int64
	Key, Value  json.RawMessage
	KeyBase64   *string `json:"key_base64"`
	ValueBase64 *string `json:"value_base64"`
	Headers     []json.RawMessage
}

// plain is the record that is meant.
func (r webRecord) plain(t *testing.T, encoding string) plain {
	t.Helper()
	p := plain{Offset: r.Offset, Key: bytesOf(t, encoding, r.Key, r.KeyBase64), Value: bytesOf(t, encoding, r.Value, r.ValueBase64)}
	of := encoding
	if of == "json" {
		of = "utf8"
	}
	for _, h := range r.Headers {
		var pair []json.RawMessage
		if json.Unmarshal(h, &pair) == nil && len(pair) == 2 {
			p.Headers = append(p.Headers, kgo.RecordHeader{Key: string(bytesOf(t, "utf8", pair[0], nil)), Value: bytesOf(t, of, pair[1], nil)})
			continue
		}
		var object struct {
			Name, Value json.RawMessage
			NameBase64  *string `json:"name_base64"`
			ValueBase64 *string `json:"value_base64"`
		}
		if err := json.Unmarshal(h, &object); err != nil {
			t.Fatal(err)
		}
		p.Headers = append(p.Headers, kgo.RecordHeader{
			Key: string(bytesOf(t, "utf8", object.Name, object.NameBase64)), Value: bytesOf(t, of, object.Value, object.ValueBase64),
		})
	}
	return p
}

func (p plain) String() string { return string(p.Value) }

// bytesOf is what a field stands for.
func bytesOf(t *testing.T, encoding string, field json.RawMessage, inBase64 *string) []byte {
	t.Helper()
	text := inBase64
	switch {
	case text != nil:
		if string(field) != "null" {
			t.Errorf("%s beside base64", field)
		}
		encoding = "base64"
	case string(field) == "null":
		return nil
	case encoding == "json":
		return field
	default:
		text = new(string)
		if err := json.Unmarshal(field, text); err != nil {
			t.Fatalf("%s: %v", field, err)
		}
	}
	if encoding == "utf8" {
		return []byte(*text)
	}
	b, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		t.Fatalf("%s: %v", *text, err)
	}
	return b
}

// TestHTTPRead: what franz-go wrote, in each codec, is read whole in each
// encoding, from memory and from the disk.
func TestHTTPRead(t *testing.T) {
	s := start(t, t.TempDir())
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	headers := []kgo.RecordHeader{{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}, {Key: "", Value: []byte("ü")}, {Key: "\xff", Value: every}}
	var want []plain
	for _, key := range [][]byte{nil, {}, []byte("k"), every, []byte("null"), []byte(`{"a":[1,"2"]}`)} {
		for _, value := range [][]byte{nil, {}, []byte("text \\\"\n\x00 ü"), every, []byte("null"), []byte(`{"a":[1.0,"2"]}`), []byte("\xed\xa0\x80")} {
			want = append(want, plain{int64(len(want)), key, value, headers})
		}
	}
	for codec, opt := range franzCodecs {
		s.makeTopic(t, codec, `{"partitions":1}`)
		var records []*kgo.Record
		for _, p := range want {
			records = append(records, &kgo.Record{Topic: codec, Key: p.Key, Value: p.Value, Headers: p.Headers, Timestamp: time.UnixMilli(1e12 + p.Offset)})
		}
		if err := s.franz(t, kgo.ProducerBatchCompression(opt)).ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		for codec := range franzCodecs {
			for _, encoding := range []string{"utf8", "json", "base64"} {
				path := recordsOf(codec, 0) + "?encoding=" + encoding
				s.wantWeb(t, s.fetch(t, path).page().Records, encoding, want)
				s.wantWeb(t, s.fetch(t, path+"&offset=17", "Accept", webLines).lines(), encoding, want[17:])
			}
		}
	})
}

func (s *server) wantWeb(t *testing.T, records []webRecord, encoding string, want []plain) {
	t.Helper()
	var got []plain
	for _, r := range records {
		got = append(got, r.plain(t, encoding))
		if r.Timestamp == nil || *r.Timestamp != 1e12+r.Offset {
			t.Errorf("timestamp of offset %d", r.Offset)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", encoding, diff)
	}
}

// lines are the records of an answer in lines.
func (r webReply) lines() (all []webRecord) {
	r.t.Helper()
	if kind := r.want(200).header.Get("Content-Type"); kind != webLines {
		r.t.Errorf("the answer is %s", kind)
	}
	for line := range strings.Lines(r.body) {
		var one webRecord
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

// TestHTTPQueries: a read begins and ends where it is told to.
func TestHTTPQueries(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)
	cl := s.franz(t)
	for i := range 10 { // in batches of their own, and of two
		var two []*kgo.Record
		for j := range 1 + i%2 {
			two = append(two, &kgo.Record{Topic: "t", Value: make([]byte, 1000), Timestamp: time.UnixMilli(1e12 + int64(10*i+j))})
		}
		if err := cl.ProduceSync(t.Context(), two...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	admin := s.admin(t)
	defer admin.Close()
	if _, err := admin.DeleteRecords(t.Context(), kadm.OffsetsFromRecords(kgo.Record{Topic: "t", Offset: 2, LeaderEpoch: -1})); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]struct{ start, records, next int64 }{
		"":                                    {3, 12, 15},
		"offset=earliest":                     {3, 12, 15},
		"offset=earliest&limit=1":             {3, 1, 4},
		"offset=4":                            {4, 11, 15},
		"offset=4&limit=3":                    {4, 3, 7},
		"offset=14":                           {14, 1, 15},
		"offset=15":                           {15, 0, 15},
		"offset=latest":                       {15, 0, 15},
		"timestamp=1000000000020":             {3, 12, 15},
		"timestamp=1000000000031":             {5, 10, 15},
		"timestamp=1000000000032":             {6, 9, 15},
		"timestamp=1000000000032&limit=2":     {6, 2, 8},
		"timestamp=0":                         {3, 12, 15},
		"timestamp=9000000000000":             {15, 0, 15},
		"max_bytes=1":                         {3, 1, 4},
		"max_bytes=3000&encoding=utf8":        {3, 1, 4}, // a NUL takes six bytes
		"max_bytes=5000&encoding=base64":      {3, 3, 6},
		"max_bytes=999999999&limit=999999999": {3, 12, 15},
		"isolation=read_uncommitted&offset=9": {9, 6, 15},
		"wait=0.05&offset=15":                 {15, 0, 15},
	} {
		p := s.fetch(t, recordsOf("t", 0)+"?"+query).page()
		if p.Start != want.start || int64(len(p.Records)) != want.records || p.Next != want.next || p.High != 15 || p.LogStart != 3 {
			t.Errorf("%s: from %d, %d records, next %d; want %+v", query, p.Start, len(p.Records), p.Next, want)
		}
	}
	const limits = `"details":{"high_watermark":15,"log_start_offset":3}`
	s.fetch(t, recordsOf("t", 0)+"?offset=2").wantError(410, 41001, "offset 2").want(410, limits)
	s.fetch(t, recordsOf("t", 0)+"?offset=16").wantError(416, 41601, "offset 16").want(416, limits)
	s.fetch(t, recordsOf("t", 0)+"?offset=end").wantError(400, 40001, "earliest, latest or an integer")
	s.fetch(t, "/api/v1/topics/t/partitions/0").want(200, `"partition":0,"log_start_offset":3,"last_stable_offset":15,"high_watermark":15,"leader_epoch":`)
	s.fetch(t, "/api/v1/topics/t/partitions/0/offset?timestamp=1000000000032").want(200, `{"offset":6,"timestamp":1000000000040,`)
	s.fetch(t, "/api/v1/topics/t/partitions/0/offset?timestamp=9000000000000").want(200, `{"offset":null,"timestamp":null,`)
	head := s.web(t, "HEAD", "/api/v1/topics/t/partitions/0", nil).want(200)
	if head.header.Get("ETag") != `"15"` || head.body != "" {
		t.Errorf("%v", head.header)
	}
}

// TestHTTPLongPoll: who waits is woken by an append, of HTTP and of Kafka. The
// second comes once the first poll has ended: did both end when their time is
// over, the second would have nothing.
func TestHTTPLongPoll(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":2}`)
	polls := make(chan webPage, 2)
	for p := range 2 {
		go func() {
			var page webPage
			if status, body := s.get(t, recordsOf("t", p)+"?offset=0&wait=25"); status != 200 || json.Unmarshal([]byte(body), &page) != nil {
				t.Errorf("%d %s", status, body)
			}
			polls <- page
		}()
	}
	eventually(t, "both wait", func() bool {
		_, metrics := s.get(t, "/metrics")
		return strings.Contains(metrics, `siltstone_gateway_requests_in_flight{route="partition_records"} 2`)
	})
	s.post(t, recordsOf("t", 1), `{"records":[{"value":"by HTTP"}]}`).wantAppended(1, 0, 1)
	first := <-polls
	s.cli(t, "by Kafka\n", "produce", "t", "-p", "0")
	second := <-polls
	for want, p := range map[string]webPage{"by HTTP": first, "by Kafka": second} {
		if len(p.Records) != 1 || p.Next != 1 || p.Records[0].plain(t, "utf8").String() != want {
			t.Errorf("%+v, want %s", p, want)
		}
	}
}
