package main

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestTurnAway: who comes before there is a server is not kept waiting, and who
// comes after is served.
func TestTurnAway(t *testing.T) {
	port, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	come := func() net.Conn {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", port.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	a := &turnAway{port: port}
	a.start()
	a.start()
	for range 3 {
		conn := come()
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read %d, %v", n, err)
		}
		_ = conn.Close()
	}
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	a.start() // too late
	conn := come()
	defer conn.Close()
	served, err := port.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if served.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Errorf("served %s, not %s", served.RemoteAddr(), conn.LocalAddr())
	}
}
