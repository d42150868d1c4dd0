package tcp

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// counting is a handler that counts messages.
type counting struct {
	up   chan struct{}
	want int
	all  chan struct{}
}

func (c *counting) Up(siltstone.Incarnation)         { close(c.up) }
func (c *counting) Down(siltstone.Incarnation, bool) {}
func (c *counting) Received(siltstone.Incarnation, peer.Lane, []byte) {
	if c.want--; c.want == 0 {
		close(c.all)
	}
}

// BenchmarkBulk sends messages of 16 KiB, in two pieces, from one transport to another.
func BenchmarkBulk(b *testing.B) {
	const size = 16 << 10
	ctx, cancel := context.WithCancel(context.Background())
	run := func(self siltstone.Incarnation, h peer.Handler) (*Transport, chan error) {
		tr, err := New(Options{Self: self, Secret: testSecret, Listener: listen(b, "127.0.0.1:0"), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- tr.Run(ctx, h) }()
		return tr, ended
	}
	to := &counting{want: b.N, all: make(chan struct{})}
	from := &counting{up: make(chan struct{})}
	other, otherEnded := run(2, to)
	tr, ended := run(1, from)
	tr.Reach([]peer.Peer{{Incarnation: 2, Address: other.Listener.Addr().String()}})
	<-from.up
	head, body := make([]byte, 100), bytes.Repeat([]byte{7}, size-100)
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for !tr.Send(2, peer.Bulk, head, body) {
			runtime.Gosched()
		}
	}
	<-to.all
	b.StopTimer()
	cancel()
	for _, e := range []chan error{ended, otherEnded} {
		if err := <-e; err != nil {
			b.Error(err)
		}
	}
}
