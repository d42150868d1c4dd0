package main

import (
	"context"
	"net/http"
	"net/http/pprof"
	"time"
)

// servePprof serves Go's profiles until ctx ends, if an address was given. It
// has a port of its own: whoever may read metrics may not therefore make the
// process profile itself.
func servePprof(ctx context.Context, addr string) error {
	if addr == "" {
		return nil
	}
	l, err := listen(ctx, "pprof", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index) // and every profile by its name
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return serveHTTP(ctx, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, l)
}
