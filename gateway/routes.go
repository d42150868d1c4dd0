package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A call is one method of one path.
type call struct {
	method string // GET is HEAD too
	path   string
	route  string   // its name in metrics
	params []string // of its query
	types  []string // of its replies; nil: JSON
	serve  serveFunc
}

// serveFunc answers a request, or says why it cannot.
type serveFunc func(*handler, http.ResponseWriter, *http.Request) error

const (
	topicPath     = "/api/v1/topics/{topic}"
	partitionPath = topicPath + "/partitions/{partition}"
)

// calls are all there is of the API.
var calls = []call{
	{"GET", "/api/v1/topics", "topics", []string{"limit", "after"}, nil, (*handler).listTopics},
	{"GET", topicPath, "topic", nil, nil, (*handler).showTopic},
	{"PUT", topicPath, "topic", nil, nil, (*handler).createTopic},
	{"DELETE", topicPath, "topic", nil, nil, (*handler).deleteTopic},
	{"POST", topicPath + "/records", "records", []string{"encoding"}, nil, (*handler).append},
	{"GET", topicPath + "/records", "records", readParams, recordTypes, notYet("reading all partitions with a cursor; read " + partitionPath + "/records")},
	{"GET", partitionPath, "partition", nil, nil, (*handler).showPartition},
	{"GET", partitionPath + "/offset", "offset", []string{"timestamp", "isolation"}, nil, (*handler).offsetForTime},
	{"POST", partitionPath + "/records", "partition_records", []string{"encoding"}, nil, (*handler).append},
	{"GET", partitionPath + "/records", "partition_records", readParams, recordTypes, (*handler).read},
}

// recordTypes are of replies with records.
var recordTypes = []string{typeJSON, typeLines}

// instead says which call is meant where a path is asked with a method that it
// does not have.
var instead = map[string]string{
	"/api/v1/topics":           "PUT " + topicPath + " makes a topic",
	topicPath:                  "PUT makes a topic, and POST " + topicPath + "/records appends to it",
	topicPath + "/records":     "POST appends",
	partitionPath:              "POST " + partitionPath + "/records appends",
	partitionPath + "/records": "POST appends",
}

// notYetPaths are those of the contract that are not served yet.
var notYetPaths = []struct{ path, what string }{
	{partitionPath + "/ranges/", "closed ranges of offsets"},
	{"/api/v1/groups", "groups over HTTP"},
	{"/api/v1/groups/", "groups over HTTP"},
	{"/v3/", "the REST proxy's v3"},
	{"/kafka/v3/", "the REST proxy's v3"},
	{"/consumers/", "the REST proxy's v2 consumers"},
	{"/topics", "the REST proxy's v2; see /api/v1/topics"},
	{"/topics/", "the REST proxy's v2; see /api/v1/topics"},
	{"/brokers", "the REST proxy's v2"},
	{"/v1/stream/", "durable streams"},
	{"/openapi.json", "a description of the API for programs"},
}

// notYetHeaders and notYetParams change what the contract's calls mean: they
// are never ignored. Headers stand as net/http writes them.
var (
	notYetHeaders = []string{
		"If-Match", "Fencing-Token", "Producer-Id", "Producer-Epoch", "Producer-Seq", "Idempotency-Key", "Last-Event-Id", "Authorization",
	}
	notYetParams = []string{"cursor", "until"}
)

func notYet(what string) serveFunc {
	return func(*handler, http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("%w: %s", errNotImplemented, what)
	}
}

// route registers everything.
func (h *handler) route(mux *http.ServeMux, plain map[string]http.HandlerFunc) {
	byPath := map[string]map[string]http.HandlerFunc{}
	for i := range calls {
		c := &calls[i]
		if byPath[c.path] == nil {
			byPath[c.path] = map[string]http.HandlerFunc{}
		}
		byPath[c.path][c.method] = h.call(c)
		if c.method == http.MethodGet {
			byPath[c.path][http.MethodHead] = byPath[c.path][c.method]
		}
	}
	for path, m := range byPath {
		at := slices.IndexFunc(calls, func(c call) bool { return c.path == path })
		mux.Handle(path, h.measured(calls[at].route, methods{m, instead[path]}))
	}
	for path, serve := range plain {
		m := map[string]http.HandlerFunc{http.MethodGet: serve, http.MethodHead: serve}
		mux.Handle(path, h.measured(strings.Trim(path, "/"), methods{m, ""}))
	}
	for _, p := range notYetPaths {
		mux.Handle(p.path, h.measured("other", h.answer(notYet(p.what))))
	}
	mux.Handle("/", h.measured("other", http.HandlerFunc(nothing)))
}

// methods are those of one path; others are answered with 405.
type methods struct {
	serve   map[string]http.HandlerFunc
	instead string // what the others are meant for
}

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if serve, ok := m.serve[r.Method]; ok {
		serve(w, r)
		return
	}
	allow := strings.Join(slices.Sorted(maps.Keys(m.serve)), ", ")
	message := r.URL.Path + " answers " + allow + ", not " + r.Method
	if m.instead != "" {
		message += "; " + m.instead
	}
	w.Header().Set("Allow", allow)
	writeError(w, http.StatusMethodNotAllowed, Error{Number: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: message})
}

func nothing(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, Error{
		Number: http.StatusNotFound, Code: "not_found",
		Message: "there is nothing at " + r.URL.Path + "; there are /api/v1/topics and what is below it, /healthy, /ready and /metrics",
	})
}
