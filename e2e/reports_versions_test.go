package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// frameOf is a request as it stands on the wire, of any key, version and body.
func frameOf(key, version int16, correlation int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(2+2+4+2+len(body)))
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = binary.BigEndian.AppendUint16(b, 0xffff) // no client id
	return append(b, body...)
}

// apiVersions asks as a client of some name.
func apiVersions(name, version string) *kmsg.ApiVersionsRequest {
	q := kmsg.NewPtrApiVersionsRequest()
	q.ClientSoftwareName, q.ClientSoftwareVersion = name, version
	return q
}

// wantUsable makes sure that a connection still serves.
func (w *wire) wantUsable() {
	w.t.Helper()
	resp := ask[*kmsg.ApiVersionsResponse](w, 3, apiVersions("reports", "1.0"))
	if resp.ErrorCode != 0 || len(resp.ApiKeys) == 0 {
		w.t.Errorf("ApiVersions v3: %s, %d keys", errorName(resp.ErrorCode), len(resp.ApiKeys))
	}
	if all := w.metadata(); len(all.Brokers) != 1 {
		w.t.Errorf("Metadata: %d brokers", len(all.Brokers))
	}
}

// TestReport07Newer: ApiVersions newer than ours is answered as v0 with what
// we have, whatever it looks like, and the connection goes on.
// (streamnative/kop#176, KIP-511)
func TestReport07Newer(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	newest := ask[*kmsg.ApiVersionsResponse](w, 3, apiVersions("reports", "1.0"))
	for _, version := range []int16{127, 6, math.MaxInt16, -1, math.MinInt16} {
		for name, body := range map[string][]byte{
			"as v3":            {0, 2, 'x', 2, '1', 0},
			"empty":            nil,
			"of another shape": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			"long":             make([]byte, 10_000),
		} {
			w.sent++
			w.write(frameOf(18, version, w.sent, body...))
			q := kmsg.NewPtrApiVersionsRequest()
			q.SetVersion(0)
			resp, _ := w.receive(q).(*kmsg.ApiVersionsResponse)
			if errorName(resp.ErrorCode) != "UNSUPPORTED_VERSION" || len(resp.ApiKeys) != len(newest.ApiKeys) {
				t.Errorf("v%d, %s: %s, %d keys of %d", version, name, errorName(resp.ErrorCode), len(resp.ApiKeys), len(newest.ApiKeys))
			}
			own := slices.IndexFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == 18 })
			if own < 0 || resp.ApiKeys[own].MinVersion != 0 || resp.ApiKeys[own].MaxVersion < 3 {
				t.Errorf("v%d, %s: ApiVersions is not among %+v", version, name, resp.ApiKeys)
			}
			w.wantUsable()
		}
	}
	// A client that does not wait for the answer before it asks again.
	w.sent += 2
	older := frameOf(18, 0, w.sent)
	w.write(append(frameOf(18, 127, w.sent-1), older...))
	for _, want := range []string{"UNSUPPORTED_VERSION", ""} {
		q := kmsg.NewPtrApiVersionsRequest()
		q.SetVersion(0)
		resp, _ := w.receive(q).(*kmsg.ApiVersionsResponse)
		if errorName(resp.ErrorCode) != want {
			t.Errorf("at once: %q, want %q", errorName(resp.ErrorCode), want)
		}
	}
}

// TestReport07Unknown: an API or a version that is not served, or bytes that
// are no request, close their connection and nothing else.
func TestReport07Unknown(t *testing.T) {
	s := start(t, t.TempDir())
	other := s.dial(t)
	other.wantUsable()
	frames := map[string][]byte{
		"API 999":                   frameOf(999, 0, 1),
		"API -1":                    frameOf(-1, 0, 1),
		"API 32767":                 frameOf(math.MaxInt16, math.MaxInt16, 1),
		"an API between brokers":    frameOf(int16(kmsg.LeaderAndISR), 0, 1),
		"Fetch v3":                  frameOf(int16(kmsg.Fetch), 3, 1),
		"Fetch v127":                frameOf(int16(kmsg.Fetch), 127, 1),
		"Fetch v-1":                 frameOf(int16(kmsg.Fetch), -1, 1),
		"ListOffsets v0":            frameOf(int16(kmsg.ListOffsets), 0, 1),
		"Produce v14":               frameOf(int16(kmsg.Produce), 14, 1),
		"Metadata v127":             frameOf(int16(kmsg.Metadata), 127, 1),
		"Metadata without its body": frameOf(int16(kmsg.Metadata), 12, 1),
		"ApiVersions v3, no body":   frameOf(18, 3, 1),
		"a length of 0":             {0, 0, 0, 0},
		"a length of -1":            {0xff, 0xff, 0xff, 0xff},
		"a length of 2 GiB":         {0x7f, 0xff, 0xff, 0xff, 0, 18, 0, 3},
		"HTTP":                      []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":                       {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03},
	}
	for name, frame := range frames {
		t.Run(name, func(t *testing.T) {
			w := s.dial(t)
			w.wantUsable() // and not only as the first request
			w.write(frame)
			w.wantClosed()
			s.dial(t).wantUsable()
		})
	}
	other.wantUsable()
	if s.kcat(t, nil, "-L"); strings.Contains(s.errors(), "panic") {
		t.Errorf("the server says:\n%s", s.errors())
	}
}

// TestReport07Names: a client's name of the wrong form is its request's fault
// alone. (redpanda-data/console#390)
func TestReport07Names(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	long := strings.Repeat("x", 20_000)
	for _, tt := range []struct {
		name, version string
		want          string
	}{
		{"apache-kafka-java", "4.4.0", ""},
		{"confluent-kafka-python", "v2.0.2-librdkafka-2.0.2", ""},
		{"x", "1", ""},
		{long, "1", ""},
		{"Redpanda Console", "v2.0", "INVALID_REQUEST"},
		{"x", "1 2", "INVALID_REQUEST"},
		{"", "1", "INVALID_REQUEST"},
		{"x", "", "INVALID_REQUEST"},
		{"x ", "1", "INVALID_REQUEST"},
		{"-x", "1", "INVALID_REQUEST"},
		{"x.", "1", "INVALID_REQUEST"},
		{"x_y", "1", "INVALID_REQUEST"},
		{"x\n", "1", "INVALID_REQUEST"},
		{"é", "1", "INVALID_REQUEST"},
		{"\x00", "1", "INVALID_REQUEST"},
		{"\xff\xfe", "1", "INVALID_REQUEST"},
		{long + " ", "1", "INVALID_REQUEST"},
	} {
		for version := int16(3); version <= 5; version++ {
			if resp := ask[*kmsg.ApiVersionsResponse](w, version, apiVersions(tt.name, tt.version)); errorName(resp.ErrorCode) != tt.want {
				t.Errorf("v%d, %.20q %q: %q, want %q", version, tt.name, tt.version, errorName(resp.ErrorCode), tt.want)
			}
		}
		w.wantUsable()
	}
}

// TestReport07Advertised: every version of every API that is listed can be
// asked and is answered, in a form that a client can read to its last byte.
func TestReport07Advertised(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	for _, k := range ask[*kmsg.ApiVersionsResponse](w, 3, apiVersions("reports", "1.0")).ApiKeys {
		for version := k.MinVersion; version <= k.MaxVersion; version++ {
			q := kmsg.RequestForKey(k.ApiKey)
			q.SetVersion(version)
			if p, ok := q.(*kmsg.ProduceRequest); ok {
				p.Acks = -1
			}
			if a, ok := q.(*kmsg.ApiVersionsRequest); ok {
				a.ClientSoftwareName, a.ClientSoftwareVersion = "reports", "1.0"
			}
			w.send(q)
			w.receive(q)
		}
	}
	w.wantUsable()
}

// TestReport07OldClients: clients that know no more than an older Kafka's
// versions connect, write and read.
func TestReport07OldClients(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	for i, v := range []*kversion.Versions{
		kversion.V0_11_0(), kversion.V1_0_0(), kversion.V2_0_0(), kversion.V2_4_0(), kversion.V2_8_0(),
		kversion.V3_0_0(), kversion.V3_9_0(), kversion.V4_0_0(), kversion.V4_4_0(),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cl := s.franz(t, kgo.MaxVersions(v), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(int64(i))}}))
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Errorf("a client of Kafka %v writes: %v", v, err)
			continue
		}
		fetches := cl.PollFetches(ctx)
		if r := fetches.Records(); fetches.Err() != nil || len(r) != 1 || r[0].Offset != int64(i) || string(r[0].Value) != fmt.Sprint(i) {
			t.Errorf("a client of Kafka %v reads %v: %v", v, r, fetches.Err())
		}
		cl.Close()
	}
}
