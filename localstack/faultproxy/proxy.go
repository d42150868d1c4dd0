// Package faultproxy is an HTTP proxy before an object store or DynamoDB that
// does to requests what networks and stores do, when a test says so: it delays,
// refuses, loses answers after the store has done what was asked, and cuts
// bodies. It counts the requests that come. What it leaves alone reaches the
// store as it came, host name included, so that its signature holds.
//
// A Proxy is an http.Handler: serve it with net/http/httptest in a test, or as a
// process with `go run ./localstack proxy`, which has Control on a second port.
package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Options of a Proxy.
type Options struct {
	Upstream string // the store: http://127.0.0.1:9000
	Seed     uint64 // of Fault.Share
	Secret   string // the secret key of whoever signs; for StripConditions
}

// Proxy forwards requests to a store, but for those that its faults take. All
// methods may be called from anywhere, at any time.
type Proxy struct {
	opts    Options
	to      *url.URL
	reverse *httputil.ReverseProxy
	counts  *counts

	mu    sync.Mutex
	rules []*rule
}

// New makes a proxy without faults.
func New(o Options) (*Proxy, error) {
	to, err := url.Parse(o.Upstream)
	if err != nil {
		return nil, err
	}
	if to.Scheme != "http" || to.Host == "" || to.Path != "" {
		return nil, fmt.Errorf("upstream %q is not like http://127.0.0.1:9000", o.Upstream)
	}
	p := &Proxy{opts: o, to: to, counts: newCounts()}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: modifyReply,
		ErrorHandler:   abort,
		ErrorLog:       log.New(io.Discard, "", 0), // a cut body is meant
		FlushInterval:  -1,                         // half a body gets out before the cut
		Transport: &http.Transport{
			DisableCompression:  true, // it would add a header, and undo the reply's
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     time.Minute,
		},
	}
	return p, nil
}

// Set replaces all faults. Where several take a request, their delays add up,
// and the action is the first one's that has one. Their counts begin anew.
func (p *Proxy) Set(faults ...Fault) error {
	rules := make([]*rule, 0, len(faults))
	for i, f := range faults {
		if err := f.validate(); err != nil {
			return fmt.Errorf("fault %d: %w", i+1, err)
		}
		if f.Action == StripConditions && p.opts.Secret == "" {
			return fmt.Errorf("fault %d: %s needs the secret key", i+1, f.Action)
		}
		rules = append(rules, &rule{Fault: f, random: rand.New(rand.NewPCG(p.opts.Seed, uint64(i)))})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = rules
	return nil
}

// Taken is how many requests each fault has taken, in the order of Set.
func (p *Proxy) Taken() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := make([]int, 0, len(p.rules))
	for _, r := range p.rules {
		taken = append(taken, r.taken)
	}
	return taken
}

// Requests is how many requests came since ResetCounts, of some operations or,
// if none is named, of all.
func (p *Proxy) Requests(operations ...string) int { return total(p.counts.perSecond(operations)) }

// PerSecond is Requests by seconds since ResetCounts, up to the last request.
func (p *Proxy) PerSecond(operations ...string) []int { return p.counts.perSecond(operations) }

// ResetCounts sets the counts of requests to 0.
func (p *Proxy) ResetCounts() { p.counts.reset() }

// suffering is what becomes of one request.
type suffering struct {
	delay  time.Duration
	action Action
	err    *Error
}

func (p *Proxy) judge(r *http.Request, operation string) suffering {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s suffering
	for _, rule := range p.rules {
		if !rule.matches(r, operation) || !rule.takes() {
			continue
		}
		s.delay += time.Duration(rule.DelayMs) * time.Millisecond
		if s.action == Pass {
			s.action, s.err = rule.Action, rule.Error
		}
	}
	return s
}

type actionKey struct{}

// ServeHTTP is one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := Operation(r)
	p.counts.add(operation)
	s := p.judge(r, operation)
	if s.delay > 0 && !wait(r.Context(), s.delay) {
		panic(http.ErrAbortHandler)
	}
	switch s.action {
	case Answer:
		// A client that is still sending would meet a closed connection, not the answer.
		_, _ = io.Copy(io.Discard, r.Body)
		s.err.write(w, r)
		return
	case BlackHole:
		_, _ = io.Copy(io.Discard, r.Body) // without it the server does not see that the client is gone
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case CutUpload:
		r.Body = cutInHalf(r.Body, r.ContentLength)
	case StripConditions:
		r = r.Clone(r.Context())
		if err := stripConditions(r, p.opts.Secret); err != nil {
			http.Error(w, err.Error(), http.StatusNotImplemented)
			return
		}
	}
	if s.action != CutUpload && keepBody(r) != nil {
		panic(http.ErrAbortHandler)
	}
	p.reverse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actionKey{}, s.action)))
}

// keepBody reads a small body before it is sent on. Where a store answers as soon
// as it has it all, the transport may not have seen its end yet, and would break
// off the reply.
func keepBody(r *http.Request) error {
	const small = 1 << 20
	if r.ContentLength <= 0 || r.ContentLength > small {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// rewrite addresses a request to the store, and changes nothing else of it.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = p.to.Scheme, p.to.Host
	r.Out.Host = r.In.Host
}

var errDropped = errors.New("reply dropped")

func modifyReply(reply *http.Response) error {
	switch reply.Request.Context().Value(actionKey{}) {
	case DropReply:
		_, _ = io.Copy(io.Discard, reply.Body) // the store is done with it
		return errDropped
	case CutReply:
		return cutReply(reply)
	}
	return nil
}

// abort closes the client's connection: what was asked, and what came of it,
// stays unknown to it.
func abort(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
