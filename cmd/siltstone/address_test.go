package main

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]address{
		"127.0.0.1:9092": {"127.0.0.1", 9092}, ":9092": {"", 9092}, "[::1]:0": {"::1", 0}, "silt:65535": {"silt", 65535},
		"9092": {}, "localhost": {}, "localhost:": {}, "": {}, "localhost:65536": {}, "localhost:-1": {}, "localhost:http": {}, "::1:9092": {},
	} {
		got, err := parseAddress("kafka", text)
		if got != want || (err != nil) != (want == address{}) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, ok := range map[string]bool{
		"silt.example.org:9092": true, "10.1.2.3:1": true, "[::1]:9092": true,
		"silt.example.org": false, ":9092": false, "silt:0": false, "0.0.0.0:9092": false, "[::]:9092": false,
	} {
		if a, err := parseAdvertised("advertise", text); (err == nil) != ok || ok && a.String() != text {
			t.Errorf("advertised, %q: %v, %v", text, a, err)
		}
	}
}

// TestAddressesOfAListener: where clients of other machines, and of this one,
// are to come.
func TestAddressesOfAListener(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ip         net.IP
		told, here string
	}{
		{net.IPv6zero, name + ":9092", "127.0.0.1:9092"},
		{net.IPv4zero, name + ":9092", "127.0.0.1:9092"},
		{net.IPv4(10, 1, 2, 3), "10.1.2.3:9092", "10.1.2.3:9092"},
		{net.IPv6loopback, "[::1]:9092", "[::1]:9092"},
	} {
		at := &net.TCPAddr{IP: tt.ip, Port: 9092}
		if got := advertised(at).String(); got != tt.told {
			t.Errorf("%v: clients are told %s, want %s", at, got, tt.told)
		}
		if got := fromHere(at); got != tt.here {
			t.Errorf("%v: from here %s, want %s", at, got, tt.here)
		}
	}
}

// TestGreeting: it says where clients are told to come, where that is elsewhere.
func TestGreeting(t *testing.T) {
	d := server{kafkaAddr: "127.0.0.1:0", httpAddr: "127.0.0.1:0"}
	p, err := d.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for _, told := range []address{advertised(p.kafka.Addr()), {"silt.example.org", 9092}} {
		var out strings.Builder
		greet(&out, "/data", p, told)
		elsewhere := strings.Contains(out.String(), "\nKafka clients are told to come to silt.example.org:9092 (--advertise)\n")
		if first := "siltstone dev serves Kafka on " + p.kafka.Addr().String(); !strings.HasPrefix(out.String(), first) || elsewhere != (told.host == "silt.example.org") {
			t.Errorf("%v: %s", told, out.String())
		}
		if !strings.Contains(out.String(), " topic create hello --kafka "+p.kafka.Addr().String()+"\n") {
			t.Errorf("what to try: %s", out.String())
		}
	}
}
