package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// address is where a server is reached.
type address struct {
	host string
	port int32
}

func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// parseAddress refuses what is not host:port.
func parseAddress(flag, addr string) (address, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return address{}, usagef("--%s %q is not an address like %s", flag, addr, defaultKafka)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return address{}, usagef("--%s %q: the port is a number from 0 to 65535, not %s", flag, addr, port)
	}
	return address{host, int32(n)}, nil
}

// parseAdvertised refuses also what no client could come to.
func parseAdvertised(flag, addr string) (address, error) {
	a, err := parseAddress(flag, addr)
	if err == nil && (a.host == "" || a.port == 0 || net.ParseIP(a.host).IsUnspecified()) {
		err = usagef("--%s %q is no address that anybody can come to, like %s", flag, addr, defaultKafka)
	}
	return a, err
}

// advertised is where clients are told to come: where this machine listens, or
// where that is all of its addresses, to it by its name.
func advertised(listening net.Addr) address {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok {
		return address{host: listening.String()}
	}
	a := address{tcp.IP.String(), int32(tcp.Port)}
	if name, err := os.Hostname(); err == nil && tcp.IP.IsUnspecified() {
		a.host = name
	}
	return a
}

// ports are what a server listens on. Connections wait there until something serves them.
type ports struct{ kafka, http, pprof net.Listener } // pprof nil: no profiles

func (s *server) listen(ctx context.Context) (p ports, err error) {
	for _, l := range []struct {
		port       *net.Listener
		flag, addr string
	}{{&p.kafka, "kafka", s.kafkaAddr}, {&p.http, "http", s.httpAddr}, {&p.pprof, "pprof", s.pprofAddr}} {
		if l.addr == "" {
			continue
		}
		if *l.port, err = listen(ctx, l.flag, l.addr); err != nil {
			p.close()
			return p, err
		}
	}
	return p, nil
}

// close is for those that nobody came to serve; a second one does nothing.
func (p ports) close() {
	for _, l := range []net.Listener{p.kafka, p.http, p.pprof} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// listen opens a port; its errors say which flag chooses another.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop that one, or choose another address with --%s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s is not allowed to you: choose a port of 1024 or above with --%s", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is not an address of this machine: choose another with --%s", addr, flag)
	}
	return nil, fmt.Errorf("--%s %s: %w", flag, addr, err)
}
