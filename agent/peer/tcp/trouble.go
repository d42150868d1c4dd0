package tcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"

	"github.com/siltstone-io/siltstone"
)

// Why there is no connection.
var (
	errSecret    = errors.New("the other end does not know the cluster's secret")
	errAnother   = errors.New("another incarnation")
	errVersion   = errors.New("another version of the protocol")
	errMalformed = errors.New("not the protocol of peers")
	errCrowded   = errors.New("too many connections in their handshake")
)

// refused says whether the peer is not where it was, and will not be again.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errAnother)
}

// hungUp says whether the other end has ended a handshake, and knows why.
func hungUp(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// class is the label of an error, and whether somebody has to change something.
func class(err error) (label string, fault bool) {
	classes := []struct {
		err   error
		label string
		fault bool
	}{
		{syscall.ECONNREFUSED, "refused", false},
		{errAnother, "incarnation", false},
		{siltstone.ErrForeign, "cluster", true},
		{errSecret, "secret", true},
		{errVersion, "version", true},
		{errMalformed, "malformed", true},
		{errCrowded, "crowded", true},
		{context.DeadlineExceeded, "timeout", false},
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.label, c.fault
		}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "timeout", false
	}
	return "other", false
}

// failed counts a failure, and logs it where it is news.
func (t *Transport) failed(who string, err error) {
	label, fault := class(err)
	t.metrics.failures.WithLabelValues(label).Inc()
	if !t.troubles.news(who, label) {
		return
	}
	level := slog.LevelInfo
	if fault {
		level = slog.LevelWarn
	}
	t.Log.Log(context.Background(), level, "no connection with a peer", "peer", who, "reason", label, "err", err)
}

// troubles remembers what was said in the log, so that it is said once for each
// peer until it changes.
type troubles struct {
	mu   sync.Mutex
	last map[string]string
}

func (t *troubles) news(who, label string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[who] == label {
		return false
	}
	if t.last == nil || len(t.last) >= 1000 { // strangers are peers too
		t.last = map[string]string{}
	}
	t.last[who] = label
	return true
}

func (t *troubles) forget(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, who)
}
