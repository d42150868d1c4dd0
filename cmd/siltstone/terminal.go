package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// isTerminal says whether people may read along, or write.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// showProgress shows how far long work is, once it takes more than a moment,
// where w is a terminal. The returned func ends it and leaves the line empty.
func showProgress(w io.Writer, unit string, total int64, done func() int64) func() {
	if !isTerminal(w) || total <= 0 {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		begin, shown := time.Now(), false
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(w, "\r\x1b[K%s", progressLine(unit, done(), total, time.Since(begin)))
				shown = true
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

const progressEvery = 500 * time.Millisecond

// whileRead ends its context when the reader of a pipe goes away: a command
// that follows would otherwise learn it only from its next write.
func whileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	f, ok := w.(*os.File)
	if !ok {
		return ctx, cancel
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return ctx, cancel
	}
	fd := int32(f.Fd())
	go func() { // until the process ends
		for {
			gone := []unix.PollFd{{Fd: fd}} // an error needs not be asked for
			if n, err := unix.Poll(gone, -1); n > 0 {
				cancel()
				return
			} else if err != nil && err != unix.EINTR {
				return
			}
		}
	}()
	return ctx, cancel
}
