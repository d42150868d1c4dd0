package gateway

import (
	"fmt"
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
	serve  func(*handler, http.ResponseWriter, *http.Request) error
}

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
	{"GET", topicPath + "/records", "records", nil, nil, notYet("reading all partitions with a cursor; read " + partitionPath + "/records")},
	{"GET", partitionPath, "partition", nil, nil, (*handler).showPartition},
	{"GET", partitionPath + "/offset", "offset", []string{"timestamp", "isolation"}, nil, (*handler).offsetForTime},
	{"POST", partitionPath + "/records", "partition_records", []string{"encoding"}, nil, (*handler).append},
	{"GET", partitionPath + "/records", "partition_records", readParams, []string{typeJSON, typeLines}, (*handler).read},
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
// are never ignored.
var (
	notYetHeaders = []string{
		"If-Match", "Fencing-Token", "Producer-Id", "Producer-Epoch", "Producer-Seq", "Idempotency-Key", "Last-Event-Id", "Authorization",
	}
	notYetParams = []string{"cursor", "until"}
)

func notYet(what string) func(*handler, http.ResponseWriter, *http.Request) error {
	return func(*handler, http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("%w: %s", errNotImplemented, what)
	}
}

// route registers everything.
func (h *handler) route(mux *http.ServeMux, plain map[string]http.HandlerFunc) {
	byPath := map[string]methods{}
	for i := range calls {
		c := &calls[i]
		if byPath[c.path] == nil {
			byPath[c.path] = methods{}
		}
		byPath[c.path][c.method] = h.call(c)
		if c.method == http.MethodGet {
			byPath[c.path][http.MethodHead] = byPath[c.path][c.method]
		}
	}
	for path, m := range byPath {
		at := slices.IndexFunc(calls, func(c call) bool { return c.path == path })
		mux.Handle(path, h.measured(calls[at].route, m))
	}
	for path, serve := range plain {
		mux.Handle(path, h.measured(strings.Trim(path, "/"), methods{http.MethodGet: serve, http.MethodHead: serve}))
	}
	for _, p := range notYetPaths {
		mux.Handle(p.path, h.measured("other", h.call(&call{serve: notYet(p.what)})))
	}
	mux.Handle("/", h.measured("other", http.HandlerFunc(nothing)))
}

// methods are those of one path; others are answered with 405.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if serve, ok := m[r.Method]; ok {
		serve(w, r)
		return
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	allow := strings.Join(names, ", ")
	w.Header().Set("Allow", allow)
	writeError(w, http.StatusMethodNotAllowed, Error{
		Number: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: r.URL.Path + " answers " + allow + ", not " + r.Method,
	})
}

func nothing(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, Error{Number: http.StatusNotFound, Code: "not_found", Message: "there is nothing at " + r.URL.Path})
}
