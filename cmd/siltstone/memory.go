package main

import (
	"math"
	"runtime/debug"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/gateway"
	"github.com/siltstone-io/siltstone/kafka"
)

// memory is how many bytes of memory a server may have, by --memory. It divides them
// among its parts, which keep within theirs whatever clients do, and leaves the
// rest to what is stored of topics and groups, and to Go, whose collector works
// the harder the nearer all is to the whole. docs/limits.md has the shares.
type memory uint64

const (
	defaultMemory = "1GiB"
	leastMemory   = 128 << 20
	// connectionBytes is the share of a connection: some 20 KiB where it does
	// nothing, and as much again of answers that are not read yet.
	connectionBytes = 128 << 10
)

func parseMemory(flag string) (memory, error) {
	n, err := humanize.ParseBytes(flag)
	switch {
	case err != nil || n > math.MaxInt64:
		return 0, usagef("--memory %q is not a size like %s or 512MiB", flag, defaultMemory)
	case n < leastMemory:
		return 0, usagef("--memory %s is too little: give it %s at least", flag, strings.ReplaceAll(humanize.IBytes(leastMemory), " ", ""))
	}
	return memory(n), nil
}

// limit tells Go, which does not count the program and what is mapped of the
// database's file.
func (m memory) limit() { debug.SetMemoryLimit(int64(m - m/16)) }

func (m memory) share(of int) int { return int(m / memory(of)) }

// wholeLocally is up to what size objects are read whole from a local disk,
// which does not charge for requests.
const wholeLocally = 1 << 20

func (m memory) agent(wholeBytes int) agent.Memory {
	return agent.Memory{
		Unflushed: m.share(8), Answers: m.share(16), Cache: m.share(16), Tail: m.share(32), Whole: wholeBytes,
	}
}

func (m memory) kafka() kafka.Limits {
	return kafka.Limits{
		MemoryBytes: m.share(4), FrameBytes: min(100<<20, m.share(10)), AnswerBytes: m.share(16),
		Connections: m.share(connectionBytes),
	}
}

func (m memory) gateway() gateway.Limits {
	return gateway.Limits{MemoryBytes: m.share(16), BodyBytes: min(10<<20, m.share(96))}
}
