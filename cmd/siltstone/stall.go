package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// stallTick is how often a command looks whether what it waits for has come.
	stallTick = time.Second
	// Where it has not, for so long after the first look, the command says why,
	// and after longStall, where it does not know, that it waits.
	shortStall, longStall = 2 * time.Second, 5 * time.Second
)

// stall says once what a command waits for, where that should have come: a
// server is away, or cannot do what it is asked.
type stall struct {
	heard hearsay
	say   func(why string)
	since time.Time // zero: it goes on
	said  bool
}

// moved is for something that has come.
func (s *stall) moved() {
	s.since = time.Time{}
	s.heard.listen(false)
}

// tick is for a look at which nothing has come.
func (s *stall) tick() {
	switch {
	case s.said:
		return
	case s.since.IsZero():
		s.since = time.Now()
		s.heard.listen(true)
		return
	}
	why, waited := s.heard.last(), time.Since(s.since)
	if why != "" && waited >= shortStall || waited >= longStall {
		s.said = true
		s.heard.listen(false)
		s.say(why)
	}
}

// sayOn prints what is waited for, with why, beside a line of progress.
func sayOn(w io.Writer, waitsFor, whyNot string) func(why string) {
	return func(why string) {
		begin := ""
		if isTerminal(w) {
			begin = "\r\x1b[K"
		}
		fmt.Fprintf(w, "%ssiltstone: waiting for %s, until Ctrl-C: %s\n", begin, waitsFor, cmp.Or(why, whyNot))
	}
}

// hearsay is what a client's log says of its failures, as long as somebody
// listens: it tries again whatever a server answers, and tells nothing else.
type hearsay struct {
	listening atomic.Bool
	why       atomic.Pointer[string]
}

func (h *hearsay) listen(on bool) {
	if h.listening.Swap(on) && !on {
		h.why.Store(nil)
	}
}

// last is the newest failure, or empty.
func (h *hearsay) last() string {
	if why := h.why.Load(); why != nil {
		return *why
	}
	return ""
}

// note takes a failure that is not in the log.
func (h *hearsay) note(err error) {
	if h.listening.Load() && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		h.why.Store(new(err.Error()))
	}
}

// Level is kgo.Logger's.
func (h *hearsay) Level() kgo.LogLevel {
	if h.listening.Load() {
		return kgo.LogLevelDebug
	}
	return kgo.LogLevelNone
}

// refused finds a server's answer in what is logged of a produce request that
// is sent again. Where a release of the client logs it in another way, nothing is found.
var refused = regexp.MustCompile(`retrying@-?\d+,\d+\(([^)]+)\)`)

// Log is kgo.Logger's. Errors for debugging are none, such as the end of a
// connection that was idle.
func (h *hearsay) Log(level kgo.LogLevel, _ string, keyvals ...any) {
	for _, v := range keyvals {
		switch v := v.(type) {
		case error:
			if level <= kgo.LogLevelInfo {
				h.note(v)
			}
		case string:
			if m := refused.FindStringSubmatch(v); m != nil {
				h.note(errors.New(m[1]))
			}
		}
	}
}
