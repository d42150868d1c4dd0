// Package gateway is the HTTP door: one http.Handler. So far it tells whether
// the process lives and is ready, and shows its metrics; records come with the
// gateway's own contract. It runs nothing: the server that it is given to does.
package gateway

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Agent is what the gateway asks of the process behind it.
type Agent interface {
	// Ready is nil when requests can be served, else why they cannot.
	Ready() error
}

// Options are what a Handler needs.
type Options struct {
	Agent   Agent
	Metrics prometheus.Gatherer
}

// New returns the handler of
//
//	GET /healthy   200 while the process answers at all
//	GET /ready     200 when it serves, 503 with the reason while it does not
//	GET /metrics   Prometheus text or OpenMetrics
//
// HEAD is answered wherever GET is. Errors have the body of Error.
func New(o Options) http.Handler {
	mux := http.NewServeMux()
	get(mux, "/healthy", healthy)
	get(mux, "/ready", ready(o.Agent))
	get(mux, "/metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, Error{Number: http.StatusNotFound, Code: "not_found", Message: "there is nothing at " + r.URL.Path})
	})
	return noStore(mux)
}

// get registers h for GET and HEAD, and answers other methods with 405.
func get(mux *http.ServeMux, path string, h http.HandlerFunc) {
	mux.HandleFunc("GET "+path, h) // HEAD too
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, http.StatusMethodNotAllowed, Error{Number: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: path + " answers GET and HEAD, not " + r.Method})
	})
}

func healthy(w http.ResponseWriter, _ *http.Request) { writeText(w, "healthy\n") }

func ready(a Agent) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := a.Ready(); err != nil {
			w.Header().Set("Retry-After", "1")
			writeError(w, http.StatusServiceUnavailable, Error{Number: 50003, Code: "not_ready", Message: err.Error(), Retriable: true})
			return
		}
		writeText(w, "ready\n")
	}
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// noStore keeps caches from storing what holds for this moment only.
func noStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
