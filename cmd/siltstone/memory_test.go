package main

import (
	"strings"
	"testing"
)

func TestMemoryFlag(t *testing.T) {
	for flag, want := range map[string]memory{"1GiB": 1 << 30, "512MiB": 512 << 20, "200MB": 200_000_000, "134217728": 128 << 20} {
		if got, err := parseMemory(flag); err != nil || got != want {
			t.Errorf("%s is %d, %v", flag, got, err)
		}
	}
	for flag, want := range map[string]string{"": "not a size", "much": "not a size", "-1GiB": "not a size", "100MiB": "128MiB at least", "16EiB": "not a size"} {
		if _, err := parseMemory(flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", flag, err, want)
		}
	}
}

// TestMemoryShares: together they leave something, and each part takes its own.
func TestMemoryShares(t *testing.T) {
	for _, m := range []memory{leastMemory, 256 << 20, 1 << 30, 64 << 30} {
		a, k := m.agent(wholeLocally), m.kafka()
		const idleConnection = 20 << 10
		all := a.Unflushed + a.Answers + a.Cache + a.Tail +
			k.MemoryBytes + k.MemoryBytes/8 + k.FrameBytes + k.AnswerBytes + k.Connections*idleConnection + m.gateway().MemoryBytes
		if all > int(m)*19/20 || all < int(m)/2 {
			t.Errorf("the shares of %d MiB come to %d", m>>20, all>>20)
		}
	}
}
