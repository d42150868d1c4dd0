package gateway

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a handler. Labels are closed sets: the routes of calls, and the
// first digits of statuses, or "gone" where the client did not wait.
type metrics struct {
	requests       *prometheus.CounterVec
	inFlight       *prometheus.GaugeVec
	seconds        *prometheus.HistogramVec
	received, sent prometheus.Counter
}

func newMetrics(r prometheus.Registerer, held *memory) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "siltstone_gateway_requests_total",
			Help: "HTTP requests that were answered, by route and class of status.",
		}, []string{"route", "status"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "siltstone_gateway_requests_in_flight",
			Help: "HTTP requests that are not answered yet, those that wait for records among them, by route.",
		}, []string{"route"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "siltstone_gateway_request_seconds",
			Help:    "Time from a request's headers to the end of its answer, waiting included, by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route"}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "siltstone_gateway_received_bytes_total",
			Help: "Bytes of bodies of requests, as they were sent.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "siltstone_gateway_sent_bytes_total",
			Help: "Bytes of bodies of answers, as they were sent.",
		}),
	}
	memoryHeld := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "siltstone_gateway_request_memory_bytes",
		Help: "Memory that requests hold, of the bound for it.",
	}, func() float64 { return float64(held.held.Load()) })
	if r != nil {
		r.MustRegister(m.requests, m.inFlight, m.seconds, m.received, m.sent, memoryHeld)
	}
	return m
}

// measured serves a route, and counts what it does.
func (h *handler) measured(route string, next http.Handler) http.Handler {
	seconds, inFlight := h.metrics.seconds.WithLabelValues(route), h.metrics.inFlight.WithLabelValues(route)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		inFlight.Inc()
		defer inFlight.Dec()
		m := &measuring{ResponseWriter: w}
		h.serve(next, m, r)
		seconds.Observe(time.Since(begin).Seconds())
		if r.Method != http.MethodHead { // whose body the server drops
			h.metrics.sent.Add(float64(m.bytes))
		}
		h.metrics.requests.WithLabelValues(route, m.class()).Inc()
	})
}

// serve serves, and outlives a panic. So does net/http, but it tells only the
// log that has what clients do wrong.
func (h *handler) serve(next http.Handler, m *measuring, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		h.logger.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		if m.status != 0 {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
		writeError(m, http.StatusInternalServerError, Error{Number: 50001, Code: "internal", Message: "a fault of the server; its log says more"})
	}()
	next.ServeHTTP(m, r)
}

// metricsPage answers with what a handler writes, made by a few at a time.
func (h *handler) metricsPage(page http.Handler) http.HandlerFunc {
	return h.answer(func(h *handler, w http.ResponseWriter, r *http.Request) error {
		made := &inMemory{ResponseWriter: w}
		if err := h.makeInTurn(page, made, r); err != nil {
			return err
		}
		hold := holding{of: &h.memory}
		defer hold.release()
		if err := hold.grow(made.body.Len()); err != nil {
			return err
		}
		w.Header().Add("Vary", "Accept-Encoding")
		h.writeBody(w, r, &hold, made.body.Bytes())
		return nil
	})
}

func (h *handler) makeInTurn(page http.Handler, made *inMemory, r *http.Request) error {
	if err := h.turn(r.Context()); err != nil {
		return err
	}
	defer h.turnOver()
	page.ServeHTTP(made, r)
	if made.failed {
		return fmt.Errorf("metrics: %s", made.body.String())
	}
	return nil
}

// inMemory keeps an answer.
type inMemory struct {
	http.ResponseWriter
	body   bytes.Buffer
	failed bool
}

func (m *inMemory) WriteHeader(status int)      { m.failed = status != http.StatusOK }
func (m *inMemory) Write(b []byte) (int, error) { return m.body.Write(b) }

// measuring notes what is answered.
type measuring struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// statusGone is of requests whose client did not wait. It is never sent.
const statusGone = -1

func gone(w http.ResponseWriter) {
	if m, ok := w.(*measuring); ok {
		m.status = statusGone
	}
}

func (m *measuring) class() string {
	switch m.status {
	case statusGone:
		return "gone"
	case 0: // the server says 200
		return "2xx"
	}
	return strconv.Itoa(m.status/100) + "xx"
}

func (m *measuring) WriteHeader(status int) {
	if m.status == 0 {
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *measuring) Write(b []byte) (int, error) {
	if m.status == 0 {
		m.status = http.StatusOK
	}
	n, err := m.ResponseWriter.Write(b)
	m.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (m *measuring) Unwrap() http.ResponseWriter { return m.ResponseWriter }
