package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// turnAway closes connections to a port whose server cannot begin yet: a client
// that is not answered waits for all of its timeout, and one that is turned
// away comes again soon. It may be ended before it is begun.
type turnAway struct {
	port net.Listener

	mu    sync.Mutex
	ended bool
	done  chan struct{} // nil: not begun
}

// deadlined is a listener that can be called off.
type deadlined interface{ SetDeadline(t time.Time) error }

// start begins it.
func (a *turnAway) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.done != nil {
		return
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		for {
			conn, err := a.port.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
}

// end leaves the port to who serves it.
func (a *turnAway) end() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.done == nil {
		return nil
	}
	port, ok := a.port.(deadlined)
	if !ok {
		return errors.New("a port that cannot be left")
	}
	if err := port.SetDeadline(time.Unix(1, 0)); err != nil {
		return err
	}
	<-a.done
	return port.SetDeadline(time.Time{})
}
