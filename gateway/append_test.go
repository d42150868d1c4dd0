package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// plain is a record as it must be stored; nil and empty differ.
type plain struct {
	Key, Value []byte
	Headers    []batch.RecordHeader
}

func plains(records []batch.Record) (all []plain) {
	for _, r := range records {
		all = append(all, plain{r.Key, r.Value, r.Headers})
	}
	return all
}

func header(name string, value []byte) batch.RecordHeader {
	return batch.RecordHeader{Key: []byte(name), Value: value}
}

// TestAppend: the bytes that are stored are those that were meant.
func TestAppend(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	tests := []struct {
		name, kind, query, body string
		headers                 []string
		want                    []plain
	}{
		{"text", typeJSON, "", `{"records":[{"key":"k","value":"v"},{"value":""},{"key":"","value":null},{"key":null,"value":"null"}]}`, nil,
			[]plain{{b("k"), b("v"), nil}, {nil, b(""), nil}, {b(""), nil, nil}, {nil, b("null"), nil}}},
		{"space and order", typeJSON, "", " \n{ \"encoding\" : \"utf8\" ,\t\"records\" : [ { \"value\" : \"a,]}\\\"\" , \"key\" : \"\\\\\" } ] }\n ", nil,
			[]plain{{b(`\`), b(`a,]}"`), nil}}},
		{"encoding comes last", typeJSON, "", `{"records":[{"value":"AAH/"}],"encoding":"base64"}`, nil,
			[]plain{{nil, b("\x00\x01\xff"), nil}}},
		{"escapes", typeJSON, "", `{"records":[{"value":"\b\f\n\r\t\/\u0000\u00e9\ud83d\ude00😀"}]}`, nil,
			[]plain{{nil, b("\b\f\n\r\t/\x00é😀😀"), nil}}},
		{"json is kept as it is", typeJSON, "", `{"encoding":"json","records":[{"key":7,"value":{"b":1.00,"a":[1, 2],"b":null}},{"key":"k","value":"s"},{"value":null},{"value":-1e5},{"value":true}]}`, nil,
			[]plain{{b("7"), b(`{"b":1.00,"a":[1, 2],"b":null}`), nil}, {b(`"k"`), b(`"s"`), nil}, {nil, nil, nil}, {nil, b("-1e5"), nil}, {nil, b("true"), nil}}},
		{"headers", typeJSON, "", `{"records":[{"value":"v","headers":[["a","1"],["a",null],["",""],{"name":"b","value_base64":"/w=="},{"name_base64":"/g==","value":"x"}]}]}`, nil,
			[]plain{{nil, b("v"), []batch.RecordHeader{header("a", b("1")), header("a", nil), header("", b("")), header("b", b("\xff")), header("\xfe", b("x"))}}}},
		{"headers of json are text", typeJSON, "", `{"encoding":"json","records":[{"value":1,"headers":[["a","1"]]},{"value":2}]}`, nil,
			[]plain{{nil, b("1"), []batch.RecordHeader{header("a", b("1"))}}, {nil, b("2"), nil}}},
		{"headers of base64", typeJSON, "", `{"encoding":"base64","records":[{"value":"","headers":[["a","/w=="]]}]}`, nil,
			[]plain{{nil, b(""), []batch.RecordHeader{header("a", b("\xff"))}}}},
		{"a field in base64", typeJSON, "", `{"records":[{"key":null,"key_base64":"/w==","value_base64":"","value":null}]}`, nil,
			[]plain{{b("\xff"), b(""), nil}}},
		{"lines", typeLines, "", "{\"value\":\"a\"}\r\n\n  {\"key\":\"k\",\"value\":null}  ", nil,
			[]plain{{nil, b("a"), nil}, {b("k"), nil, nil}}},
		{"as they were read", typeLines, "", `{"partition":0,"offset":7,"timestamp":null,"key":"k","value":null,"value_base64":"/w==","headers":[]}` + "\n" + `{"value":"a","offset":null,"partition":null}`, nil,
			[]plain{{b("k"), b("\xff"), nil}, {nil, b("a"), nil}}},
		{"lines of json", typeLines + "; charset=UTF-8", "?encoding=json", `{"value":{"a":1}}`, nil,
			[]plain{{nil, b(`{"a":1}`), nil}}},
		{"encoding in the URL", typeJSON, "?encoding=base64", `{"records":[{"value":"AA=="}]}`, nil,
			[]plain{{nil, b("\x00"), nil}}},
		{"raw", "text/plain; charset=latin-1", "", "\xff\x00 as it is", []string{"Record-Key", "k", "Record-Header-B", "2", "Record-Header-A-b", "1", "Record-Header-B", "3"},
			[]plain{{b("k"), b("\xff\x00 as it is"), []batch.RecordHeader{header("content-type", b("text/plain; charset=latin-1")), header("a-b", b("1")), header("b", b("2")), header("b", b("3"))}}}},
		{"raw without a type", "", "", "", nil, []plain{{nil, b(""), nil}}},
		{"raw with an empty key", "image/png", "", "x", []string{"Record-Key", ""},
			[]plain{{b(""), b("x"), []batch.RecordHeader{header("content-type", b("image/png"))}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t)
			topic := f.create("t", 1)
			headers := tt.headers
			if tt.kind != "" {
				headers = append(headers, "Content-Type", tt.kind)
			}
			before := time.Now().UnixMilli()
			got := f.do("POST", "/api/v1/topics/t/partitions/0/records"+tt.query, tt.body, headers...).ok()
			records := f.stored(topic, 0)
			if diff := cmp.Diff(tt.want, plains(records)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			for _, r := range records {
				if r.Timestamp < before || r.Timestamp > time.Now().UnixMilli() {
					t.Errorf("timestamp %d", r.Timestamp)
				}
			}
			if want := fmt.Sprintf("%q", fmt.Sprint(len(tt.want))); got.header.Get("ETag") != want || f.batches(topic, 0) != 1 {
				t.Errorf("ETag %s, want %s; %d batches", got.header.Get("ETag"), want, f.batches(topic, 0))
			}
		})
	}
}

// TestAppendRefused: what is wrong is said of the record that it is in, and
// nothing is appended.
func TestAppendRefused(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	tests := []struct {
		name, kind, body string
		status, number   int
		contains         string
	}{
		{"cut off", typeJSON, `{"records":[`, 400, 40003, "not JSON"},
		{"empty", typeJSON, ``, 400, 40003, "not JSON"},
		{"more than one", typeJSON, `{"records":[{"value":"a"}]} {}`, 400, 40003, "not JSON"},
		{"no UTF-8", typeJSON, "{\"records\":[{\"value\":\"\xff\"}]}", 400, 40003, "UTF-8, at byte 22"},
		{"too deep", typeJSON, `{"records":[{"value":` + deep, 400, 40003, ""},
		{"an array", typeJSON, `[{"value":"a"}]`, 422, 42206, "not an object like"},
		{"no records", typeJSON, `{}`, 422, 42206, "records"},
		{"records are null", typeJSON, `{"records":null}`, 422, 42206, "records"},
		{"none", typeJSON, `{"records":[]}`, 422, 42206, "no records"},
		{"no lines", typeLines, "\n \n", 422, 42206, "no records"},
		{"unknown field", typeJSON, `{"records":[{"value":"a"}],"acks":1}`, 422, 42206, `"acks" is no field of the body, which has records`},
		{"twice", typeJSON, `{"records":[{"value":"a"}],"records":[]}`, 422, 42206, "twice"},
		{"encoding", typeJSON, `{"encoding":"avro","records":[{"value":"a"}]}`, 400, 40001, "avro"},
		{"a record that is none", typeJSON, `{"records":[{"value":"a"},7]}`, 422, 42206, "record 1: "},
		{"no value", typeJSON, `{"records":[{"key":"a"}]}`, 422, 42206, "record 0: it has no value"},
		{"unknown field of a record", typeJSON, `{"records":[{"value":"a"},{"value":"b","Value":"c"}]}`, 422, 42206, `record 1: "Value" is no field of a record, which has value, key`},
		{"field twice", typeJSON, `{"records":[{"value":"a","v\u0061lue":"b"}]}`, 422, 42206, `record 0: "value" is given twice`},
		{"both encodings", typeJSON, `{"records":[{"value":"a","value_base64":"AA=="}]}`, 422, 42206, "record 0: both value and value_base64"},
		{"a number as text", typeJSON, `{"records":[{"value":5}]}`, 422, 42206, "record 0: value is not a string; JSON as it is goes with the encoding json"},
		{"half a surrogate", typeJSON, `{"records":[{"value":"\ud83d"}]}`, 422, 42206, "record 0: value: half"},
		{"half a surrogate, then another", typeJSON, `{"records":[{"value":"\ud83d\u0041"}]}`, 422, 42206, "half"},
		{"the second half", typeJSON, `{"records":[{"value":"\ude00\ud83d"}]}`, 422, 42206, "half"},
		{"base64", typeJSON, `{"encoding":"base64","records":[{"value":""},{"value":"***"}]}`, 422, 42206, "record 1: value is not base64"},
		{"base64 on lines", typeJSON, `{"encoding":"base64","records":[{"value":"AA\n=="}]}`, 422, 42206, "not base64"},
		{"base64 with spare bits", typeJSON, `{"encoding":"base64","records":[{"value":"AB=="}]}`, 422, 42206, "not base64"},
		{"an object as base64", typeJSON, `{"encoding":"base64","records":[{"value":{}}]}`, 422, 42206, "not a string"},
		{"timestamp", typeJSON, `{"records":[{"value":"a","timestamp":1.5}]}`, 422, 42206, "timestamp is not an integer"},
		{"timestamp before 1970", typeJSON, `{"records":[{"value":"a","timestamp":-2}]}`, 422, 42206, "timestamp is -2, which is less than -1"},
		{"offset", typeLines, `{"value":"a","offset":"1"}`, 422, 42206, "record 0: offset is not an integer"},
		{"a topic's name", typeLines, `{"value":"a","topic":"t"}`, 422, 42206, `record 0: "topic" is no field`},
		{"a long name", typeLines, `{"value":"a","` + strings.Repeat("x", 5000) + `":"t"}`, 422, 42206, strings.Repeat("x", 100) + "…\" is no field"},
		{"header of another name", typeJSON, `{"records":[{"value":"a","headers":[{"key":"a"}]}]}`, 422, 42206, "of a header, which has name"},
		{"timestamp far ahead", typeJSON, `{"records":[{"value":"a"},{"value":"a","timestamp":9000000000000}]}`, 422, 42216, "record 1: "},
		{"another partition", typeJSON, `{"records":[{"value":"a"},{"value":"a","partition":0}]}`, 422, 42206, "record 1: it is for partition 0"},
		{"headers", typeJSON, `{"records":[{"value":"a","headers":{"a":"b"}}]}`, 422, 42206, "headers are not an array"},
		{"header of three", typeJSON, `{"records":[{"value":"a","headers":[["a","b"],["a","b","c"]]}]}`, 422, 42206, "header 1: "},
		{"header without a name", typeJSON, `{"records":[{"value":"a","headers":[[null,"b"]]}]}`, 422, 42206, "no name"},
		{"header of a number", typeJSON, `{"records":[{"value":"a","headers":[7]}]}`, 422, 42206, "pair"},
		{"a line", typeLines, "{\"value\":\"a\"}\n\n{\"value\":", 400, 40003, "record 1: "},
		{"two on a line", typeLines, `{"value":"a"}{"value":"b"}`, 400, 40003, "at byte 14; a line is one record, whole"},
		{"what curl sends", "application/x-www-form-urlencoded", `{"records":[]}`, 415, 41501, "Content-Type: application/json"},
		{"another API", "application/vnd.kafka.json.v2+json", `{"records":[]}`, 415, 41501, "/api/v1"},
		{"latin-1", "application/json; charset=iso-8859-1", `{}`, 415, 41501, "UTF-8"},
		{"a type that is none", "text/", `x`, 400, 40001, "Content-Type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t)
			topic := f.create("t", 2)
			f.do("POST", "/api/v1/topics/t/partitions/1/records", tt.body, "Content-Type", tt.kind).want(tt.status, tt.number, tt.contains)
			if f.batches(topic, 1) != 0 {
				t.Error("something was appended")
			}
		})
	}
	f := start(t)
	f.create("t", 1)
	const url = "/api/v1/topics/t/partitions/0/records"
	f.post(url+"?encoding=utf8", `{"encoding":"json","records":[{"value":"a"}]}`).want(400, 40001, "not that of the URL")
	f.do("POST", url+"?encoding=utf8", "x").want(400, 40001, "raw record")
	f.do("POST", url, "x", "Record-Timestamp", "5").want(400, 40001, "Record-Timestamp")
	f.do("POST", url, "x", "Record-Key", "a", "Record-Key", "b").want(400, 40001, "more than one Record-Key")
	f.post(url, `{"records":[{"value":"a"}]}`, "Record-Key", "a").want(400, 40001, "Record-Key is of a raw record")
	f.do("POST", url, `{"value":"a"}`, "Content-Type", typeLines, "Record-Header-A", "b").want(400, 40001, "another Content-Type")
	f.post("/api/v1/topics/no%2Fne/records", `{"records":[{"value":"a"}]}`).want(404, 40401, "no such topic: no/ne; PUT /api/v1/topics/no%2Fne makes it")
	f.post(url, `{"records":[{"value":"a"}]}`, "Sec-Fetch-Site", "cross-site").want(403, 40303, "another site")
	f.do("POST", url, "x", "Origin", "https://example.org").want(403, 40303, "another site")
	f.do("POST", url, "x", "Sec-Fetch-Site", "same-origin").ok()
}

// TestAppendCompacted: a record without a key is refused at once, and a
// tombstone is none.
func TestAppendCompacted(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1, "cleanup.policy", "compact")
	f.post("/api/v1/topics/t/records", `{"records":[{"key":"k","value":"v"},{"value":"v"}]}`).want(422, 42206, "record 1: ")
	f.post("/api/v1/topics/t/records", `{"records":[{"key":null,"value":"v"}]}`).want(422, 42206, "record 0: ")
	f.do("POST", "/api/v1/topics/t/records", "v").want(422, 42206, "record 0: ")
	if f.batches(topic, 0) != 0 {
		t.Fatal("something was appended")
	}
	f.post("/api/v1/topics/t/records", `{"records":[{"key":"k","value":null}]}`).ok()
	if got := f.stored(topic, 0); len(got) != 1 || got[0].Value != nil {
		t.Errorf("%+v", got)
	}
}

// TestAppendTopic: records go where they are sent, else by their keys as
// Kafka's clients send them, else together; each partition gets one batch.
func TestAppendTopic(t *testing.T) {
	random := uint64(5)
	f := start(t, func(o *Options) { o.Random = func() uint64 { return random } })
	topic := f.create("t", 4)
	got := f.post("/api/v1/topics/t/records", `{"records":[{"value":"sticky"},{"value":"given","partition":3,"key":"foobar"},{"value":"k","key":"foobar"},
		{"value":"sticky too"},{"value":"empty","key":""},{"value":"given too","partition":3}]}`).ok()
	var want [4][]string
	byKey, byEmpty := partitionOf([]byte("foobar"), 4), partitionOf(nil, 4)
	want[5%4] = append(want[5%4], "sticky")
	want[3] = append(want[3], "given")
	want[byKey] = append(want[byKey], "k")
	want[5%4] = append(want[5%4], "sticky too")
	want[byEmpty] = append(want[byEmpty], "empty")
	want[3] = append(want[3], "given too")
	var answer appended
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, values := range want {
		var stored []string
		for _, r := range f.stored(topic, int32(p)) {
			stored = append(stored, string(r.Value))
		}
		if diff := cmp.Diff(values, stored); diff != "" {
			t.Errorf("partition %d (-want +got):\n%s", p, diff)
		}
		if len(values) == 0 {
			continue
		}
		if f.batches(topic, int32(p)) != 1 {
			t.Errorf("partition %d: %d batches", p, f.batches(topic, int32(p)))
		}
		if r := answer.Results[n]; r.Partition != int32(p) || r.Base != 0 || r.Next != siltstone.Offset(len(values)) {
			t.Errorf("result %+v", r)
		}
		n++
	}
	if n != len(answer.Results) || got.header.Get("ETag") != "" || len(f.log.appends) != 1 {
		t.Errorf("%s, ETag %q, %d appends", got.body, got.header.Get("ETag"), len(f.log.appends))
	}
	f.post("/api/v1/topics/t/records", `{"records":[{"value":"a"},{"value":"a","partition":4}]}`).want(404, 40402, "record 1: ")
}

// TestAppendTimesOut: what was not safe in time says what it waited for.
func TestAppendTimesOut(t *testing.T) {
	const said = "timed out before it was safe"
	f := start(t, func(o *Options) { o.Agent = agentState{err: errors.New("no space left on device")} })
	f.create("t", 1)
	f.log.fail = func(siltstone.TopicPartition) error { return siltstone.ErrTimedOut }
	f.do("POST", recordsOf, "x").want(504, 50401, said+"; the server is not ready: no space left on device")
	f = start(t)
	f.create("t", 1)
	f.log.fail = func(siltstone.TopicPartition) error { return siltstone.ErrTimedOut }
	got := f.do("POST", recordsOf, "x")
	if got.want(504, 50401, said); strings.Contains(got.body, "not ready") {
		t.Errorf("%s", got.body)
	}
}

// TestPartitioner has the values of Kafka's own tests.
func TestPartitioner(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

// TestAppendTimes: the topic's rules for timestamps hold.
func TestAppendTimes(t *testing.T) {
	f := start(t)
	created := f.create("created", 1)
	stamped := f.create("stamped", 1, "message.timestamp.type", "LogAppendTime")
	body := fmt.Sprintf(`{"records":[{"value":"a","timestamp":%d},{"value":"b","timestamp":-1},{"value":"c","timestamp":null}]}`, 7)
	before := time.Now().UnixMilli()
	got := f.post("/api/v1/topics/created/partitions/0/records", body).ok()
	records := f.stored(created, 0)
	if records[0].Timestamp != 7 || records[1].Timestamp != batch.NoTimestamp || records[2].Timestamp < before || timestampOf(t, got) != records[2].Timestamp {
		t.Errorf("%s, %+v", got.body, records)
	}
	got = f.post("/api/v1/topics/stamped/partitions/0/records", body).ok()
	for _, r := range f.stored(stamped, 0) {
		if r.Timestamp < before || r.Timestamp != timestampOf(t, got) {
			t.Errorf("%s, %+v", got.body, r)
		}
	}
}

func timestampOf(t *testing.T, r reply) int64 {
	t.Helper()
	var a appended
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || len(a.Results) != 1 {
		t.Fatalf("%s: %v", r.body, err)
	}
	return a.Results[0].Timestamp
}

// TestAppendCompresses: a topic's own codec is what is stored, and its limit is
// of the stored batch.
func TestAppendCompresses(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1, "compression.type", "zstd", "max.message.bytes", "2000")
	value := strings.Repeat("a", 5000)
	f.post("/api/v1/topics/t/partitions/0/records", `{"records":[{"value":"`+value+`"}]}`).ok()
	if got := f.stored(topic, 0); len(got) != 1 || string(got[0].Value) != value {
		t.Errorf("%d records", len(got))
	}
	f.create("plain", 1, "max.message.bytes", "2000")
	got := f.post("/api/v1/topics/plain/partitions/0/records", `{"records":[{"value":"a"},{"value":"`+value+`"}]}`)
	if got.want(413, 41303, "max.message.bytes is 2000"); !strings.Contains(got.body, `"max_bytes":2000`) {
		t.Errorf("%s", got.body)
	}
	f.post("/api/v1/topics/plain/partitions/0/records", `{"records":[{"value":"`+value[:1950]+`"}]}`).want(413, 41303, "batch of 20")
}

// TestAppendFails: partitions fail each by itself, and no success hides it.
func TestAppendFails(t *testing.T) {
	f := start(t)
	f.create("t", 3)
	const both = `{"records":[{"value":"a","partition":0},{"value":"b","partition":2}]}`
	f.log.fail = func(tp siltstone.TopicPartition) error {
		if tp.Partition == 2 {
			return siltstone.ErrTimedOut
		}
		return nil
	}
	got := f.post("/api/v1/topics/t/records", both)
	var a struct {
		Results []appendResult
		Errors  []struct {
			Partition int32
			Number    int `json:"error_code"`
			Retriable bool
			Message   string
		}
	}
	if err := json.Unmarshal([]byte(got.body), &a); err != nil || got.status != http.StatusMultiStatus {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	if len(a.Results) != 1 || a.Results[0].Partition != 0 || len(a.Errors) != 1 || a.Errors[0].Partition != 2 ||
		a.Errors[0].Number != 50401 || !a.Errors[0].Retriable || a.Errors[0].Message == "" {
		t.Errorf("%s", got.body)
	}
	f.post("/api/v1/topics/t/partitions/2/records", `{"records":[{"value":"a"}]}`).want(504, 50401, "")
	f.log.fail = func(siltstone.TopicPartition) error { return siltstone.ErrNotLeader }
	got = f.post("/api/v1/topics/t/records", both)
	if got.want(503, 50303, ""); !strings.Contains(got.body, `"errors":[{"partition":0,`) {
		t.Errorf("%s", got.body)
	}
	f.log.fail, f.log.refuse = nil, siltstone.ErrTooLarge
	f.post("/api/v1/topics/t/records", both).want(413, 41303, "")
}
