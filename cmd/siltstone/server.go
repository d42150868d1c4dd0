package main

import (
	"log/slog"

	"github.com/spf13/pflag"
)

// server are the flags that dev and agent have in common.
type server struct {
	kafkaAddr, httpAddr string
	advertise           string // none: as it listens
	pprofAddr           string // none: no profiles
	logLevel            string
	memory              string
}

const defaultHTTP = "127.0.0.1:8080"

func (s *server) register(f *pflag.FlagSet) {
	f.StringVar(&s.kafkaAddr, "kafka", defaultKafka, "`address` for Kafka's protocol")
	f.StringVar(&s.advertise, "advertise", "", "`address` that Kafka clients are told to come to (default: that of --kafka, and for 0.0.0.0 this machine's name)")
	f.StringVar(&s.httpAddr, "http", defaultHTTP, "`address` for HTTP: records and topics (docs/http.md), /healthy, /ready, /metrics")
	f.StringVar(&s.pprofAddr, "pprof", "", "`address` for Go's profiles, at /debug/pprof/ (default none)")
	f.StringVar(&s.memory, "memory", defaultMemory, "most `bytes` of memory that it may have, as 512MiB or 4GiB")
	f.StringVar(&s.logLevel, "log-level", "warn", "least `level` of what is logged: debug, info, warn or error")
}

// serverSettings is what the flags say that are more than a name.
type serverSettings struct {
	level     slog.Level
	memory    memory
	advertise address // zero: not given
	zone      string  // empty: none
}

// check refuses flags that cannot be, before anything is opened.
func (s *server) check() (c serverSettings, err error) {
	if c.level.UnmarshalText([]byte(s.logLevel)) != nil {
		return c, usagef("--log-level is debug, info, warn or error, not %q", s.logLevel)
	}
	flags := map[address]string{}
	for _, a := range []struct{ flag, addr string }{{"kafka", s.kafkaAddr}, {"http", s.httpAddr}, {"pprof", s.pprofAddr}} {
		if a.addr == "" && a.flag == "pprof" {
			continue
		}
		at, err := parseAddress(a.flag, a.addr)
		if err != nil {
			return c, err
		}
		if other, taken := flags[at]; taken && at.port != 0 {
			return c, usagef("--%s and --%s are both %s: they need an address each", other, a.flag, a.addr)
		}
		flags[at] = a.flag
	}
	if s.advertise != "" {
		if c.advertise, err = parseAdvertised("advertise", s.advertise); err != nil {
			return c, err
		}
	}
	c.memory, err = parseMemory(s.memory)
	return c, err
}
