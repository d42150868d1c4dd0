package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// stage is what HTTP clients see: that the server starts, until there is more to show.
type stage struct {
	play atomic.Pointer[http.Handler]
	why  atomic.Pointer[string] // it has not begun
}

func newStage() *stage {
	s := &stage{}
	s.waits("it starts")
	return s
}

func (s *stage) show(h http.Handler) { s.play.Store(&h) }

// waits says why there is nothing to show yet.
func (s *stage) waits(why string) { s.why.Store(&why) }

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := s.play.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == "/healthy" {
		fmt.Fprintln(w, "healthy")
		return
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, *s.why.Load())
}
