package e2e

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// socketAttacks are of those who hardly speak Kafka.
var socketAttacks = []attack{
	{"half open", func(t *testing.T, a *attacker) { a.many(t, 1500, nil) }},
	{"a byte a second", func(t *testing.T, a *attacker) {
		frame := formatter.AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 1)
		conns := a.many(t, 1500, frame[:4])
		a.every(time.Second, func(i int) {
			for _, conn := range conns {
				_, _ = conn.Write(frame[4+i%8 : 5+i%8])
			}
		})
	}},
	{"a length and no more", func(t *testing.T, a *attacker) {
		// A fourth of what there is for requests, if it counted before it came.
		a.many(t, 500, []byte{0x01, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1})
	}},
	{"TLS, HTTP and noise", func(t *testing.T, a *attacker) {
		random := rand.New(rand.NewPCG(1, 1))
		a.every(5*time.Millisecond, func(i int) {
			conn, err := a.open()
			if err != nil {
				return
			}
			defer conn.Close()
			hello := [][]byte{
				{0x16, 0x03, 0x01, 0x02, 0x00, 0x01},
				[]byte("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"),
				{0xff, 0xff, 0xff, 0xff},
				{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 9},
				noise(random, 1000),
			}[i%5]
			_, _ = conn.Write(hello)
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = conn.Read(make([]byte, 1))
		})
	}},
	{"more connections than there may be", func(t *testing.T, a *attacker) {
		for i := 0; ; i++ {
			conn, err := a.open()
			if err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
			if i >= 2000 && isClosed(conn) {
				break
			}
			if i == 2100 {
				t.Fatalf("%d connections are open", i)
			}
		}
		a.every(time.Millisecond, func(int) {
			if conn, err := a.open(); err == nil {
				conn.Close()
			}
		})
	}},
	{"counts in tiny frames", func(t *testing.T, a *attacker) {
		var conn net.Conn
		random := rand.New(rand.NewPCG(1, 2))
		a.every(2*time.Millisecond, func(int) {
			if conn == nil {
				conn, _ = a.open()
				if conn == nil {
					return
				}
			}
			key := kmsg.Key(random.IntN(76))
			b := []byte{0, 0, 0, 40, 0, byte(key), 0, byte(random.IntN(14)), 0, 0, 0, 1, 0xff, 0xff}
			b = append(b, noise(random, 30)...)
			binary.BigEndian.PutUint32(b[14+random.IntN(26):], 1<<31-1)
			_, err := conn.Write(b)
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, readErr := conn.Read(make([]byte, 1<<10)); err != nil || readErr != nil {
				conn.Close()
				conn = nil
			}
		})
	}},
}

// isClosed says whether the server has closed a connection at once.
func isClosed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	timeout, ok := err.(net.Error) //nolint:errorlint // as it comes from the connection
	return err != nil && !(ok && timeout.Timeout())
}

func noise(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}
