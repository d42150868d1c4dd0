package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// greet says what runs where, and what to try next.
func greet(w io.Writer, dir string, p ports, advertise address) {
	command, at := commandName(), ""
	kafkaHere, httpHere := fromHere(p.kafka.Addr()), fromHere(p.http.Addr())
	if kafkaHere != defaultKafka {
		at = " --kafka " + kafkaHere
	}
	fmt.Fprintf(w, "siltstone dev serves Kafka on %s, HTTP on %s; its data is in %s\n", p.kafka.Addr(), p.http.Addr(), dir)
	if advertise.String() != p.kafka.Addr().String() {
		fmt.Fprintf(w, "Kafka clients are told to come to %s (--advertise)\n", advertise)
	}
	fmt.Fprintf(w, `
Try, in another terminal:
  %[1]s topic create hello%[2]s
  echo 'hello, silt' | %[1]s produce hello%[2]s
  %[1]s consume hello --exit%[2]s
  kcat -b %[3]s -C -t hello -e
  curl http://%[4]s/metrics

Ctrl-C stops it; the data stays.
`, command, at, kafkaHere, httpHere)
}

// fromHere is an address for a client on this machine, where a server listens
// on all of its addresses.
func fromHere(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return address{"127.0.0.1", int32(tcp.Port)}.String()
	}
	return addr.String()
}

// commandName is how this program was called.
func commandName() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/siltstone"
	}
	return os.Args[0]
}
