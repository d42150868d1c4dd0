// Package gateway is the HTTP door: one http.Handler, for an agent and for a
// function. It appends and reads records, shows and changes topics, and tells
// whether the process lives and is ready, and its metrics. docs/http.md is its
// contract for users.
//
// It keeps nothing between requests and runs nothing: the server that it is
// given to does. What requests hold in memory is bounded over all of them, and
// how long each may take; how long a body may be on its way, and how many
// connections there are, is the server's to bound.
package gateway

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// New returns the handler of the calls, and of
//
//	GET /healthy   200 while the process answers at all
//	GET /ready     200 when it serves, 503 with the reason while it does not
//	GET /metrics   Prometheus text or OpenMetrics
//
// HEAD is answered wherever GET is. Errors have the body of Error. A server
// that stops cancels its requests' contexts with the cause ErrStopping: reads
// end at once, appends in Limits.Drain.
func New(o Options) (http.Handler, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	h := newHandler(o)
	mux := http.NewServeMux()
	h.route(mux, map[string]http.HandlerFunc{
		"/healthy": healthy,
		"/ready":   h.ready,
		"/metrics": h.metricsPage(promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true, DisableCompression: true})),
	})
	return uncached(mux), nil
}

// uncached keeps caches from storing what holds for this moment only:
// redirects to a cleaner path, too, which are the mux's.
func uncached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func healthy(w http.ResponseWriter, _ *http.Request) { writeText(w, "healthy\n") }

func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	if err := h.agent.Ready(); err != nil {
		writeError(w, http.StatusServiceUnavailable, Error{Number: 50302, Code: "not_ready", Message: err.Error(), Retriable: true})
		return
	}
	writeText(w, "ready\n")
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text)
}
