package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

const (
	// serversVariable is where servers are found that no flag names.
	serversVariable = "SILTSTONE_KAFKA"
	kafkaPort       = "9092"
)

// seeds are the servers that the flag names, or else the environment, or else
// the default.
func (c *client) seeds() ([]string, error) {
	from, list := "--kafka", c.servers
	if set := os.Getenv(serversVariable); set != "" && !c.given() {
		from, list = serversVariable, set
	}
	servers, err := parseServers(list)
	if err != nil {
		return nil, usagef("%s: %w", from, err)
	}
	return servers, nil
}

// parseServers reads servers with commas between.
func parseServers(list string) (servers []string, err error) {
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue // as after a last comma
		}
		server, err := parseServer(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not an address like %s: %w", s, defaultKafka, err)
		}
		servers = append(servers, server)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%q names no address like %s", list, defaultKafka)
	}
	return servers, nil
}

// parseServer reads host:port, or a host alone.
func parseServer(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil { // there is no port, or an IPv6 address without one
		host, port = s, kafkaPort
		if inner, ok := strings.CutPrefix(s, "["); ok {
			host = strings.TrimSuffix(inner, "]")
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("a port is a number from 1 to 65535, not %q", port)
	}
	if _, wrong := netip.ParseAddr(host); wrong != nil {
		switch _, err := strconv.Atoi(host); {
		case err == nil:
			return "", errors.New("that is no host")
		case strings.ContainsAny(host, ":/@[] \t"):
			return "", fmt.Errorf("%q is no host", host)
		}
	}
	return net.JoinHostPort(host, port), nil
}
