package faultproxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// Action is what becomes of a request, beside its delay.
type Action string

const (
	// Pass only delays.
	Pass Action = ""
	// Answer answers with Fault.Error; the store sees nothing of the request.
	Answer Action = "answer"
	// DropReply lets the store do what it is asked, and closes the connection
	// in place of its answer.
	DropReply Action = "drop-reply"
	// CutReply sends half of the body of the store's answer, then closes the
	// connection. An answer without a body passes.
	CutReply Action = "cut-reply"
	// CutUpload sends half of the request's body to the store, then closes both
	// connections. A request without a body passes.
	CutUpload Action = "cut-upload"
	// BlackHole takes the request and never answers; the store sees nothing of it.
	BlackHole Action = "black-hole"
	// StripConditions removes If-None-Match and If-Match, and signs anew: a
	// store that does not know conditional writes. It needs Options.Secret, and
	// a payload that is not signed in chunks.
	StripConditions Action = "strip-conditions"
)

var actions = []Action{Pass, Answer, DropReply, CutReply, CutUpload, BlackHole, StripConditions}

// Error is what a store answers with. The body has the form of S3, or of
// DynamoDB where the request is one of DynamoDB's.
type Error struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
}

// Errors of both stores, by their codes.
var (
	SlowDown       = &Error{http.StatusServiceUnavailable, "SlowDown"}
	InternalError  = &Error{http.StatusInternalServerError, "InternalError"}
	ExpiredToken   = &Error{http.StatusForbidden, "ExpiredToken"} // S3 itself says 400, others 403
	AccessDenied   = &Error{http.StatusForbidden, "AccessDenied"}
	TimeTooSkewed  = &Error{http.StatusForbidden, "RequestTimeTooSkewed"}
	Throttled      = &Error{http.StatusBadRequest, "ProvisionedThroughputExceededException"}
	TokenExpired   = &Error{http.StatusBadRequest, "ExpiredTokenException"}
	InternalServer = &Error{http.StatusInternalServerError, "InternalServerError"}
)

// Fault says which requests suffer, how often, and what. Of the requests that
// match all of the first three, it takes every one, unless Every, Share or Times
// are set; they may be set together.
type Fault struct {
	Operations []string `json:"operations,omitempty"` // as Operation names them
	Method     string   `json:"method,omitempty"`
	PathPrefix string   `json:"path_prefix,omitempty"` // with the bucket: /bucket/folder/

	Every int     `json:"every,omitempty"` // the nth, the 2nth, ...
	Share float64 `json:"share,omitempty"` // of 1, by the proxy's seed
	Times int     `json:"times,omitempty"` // so many, and no more

	DelayMs int    `json:"delay_ms,omitempty"` // before the store sees it
	Action  Action `json:"action,omitempty"`
	Error   *Error `json:"error,omitempty"` // of Answer
}

func (f *Fault) validate() error {
	switch {
	case !slices.Contains(actions, f.Action):
		return fmt.Errorf("action %q is none of %q", f.Action, actions)
	case (f.Action == Answer) != (f.Error != nil):
		return errors.New("an error goes with the action answer, and with no other")
	case f.Error != nil && (f.Error.Status < 400 || f.Error.Status > 599 || f.Error.Code == ""):
		return fmt.Errorf("error %+v: the status is 400 to 599, and there is a code", *f.Error)
	case f.Action == Pass && f.DelayMs == 0:
		return errors.New("a fault has an action or a delay")
	case f.Every < 0 || f.Times < 0 || f.DelayMs < 0 || f.Share < 0 || f.Share > 1:
		return errors.New("every, times and delay are not below 0, and share is of 1")
	}
	return nil
}

func (f *Fault) matches(r *http.Request, operation string) bool {
	return (len(f.Operations) == 0 || slices.Contains(f.Operations, operation)) &&
		(f.Method == "" || f.Method == r.Method) &&
		strings.HasPrefix(r.URL.Path, f.PathPrefix)
}

// rule is a fault at work. Its fields are the proxy's mutex's.
type rule struct {
	Fault
	random  *rand.Rand
	matched int
	taken   int
}

// takes says whether a request that matches suffers.
func (r *rule) takes() bool {
	r.matched++
	if r.Every > 0 && r.matched%r.Every != 0 ||
		r.Times > 0 && r.taken == r.Times ||
		r.Share > 0 && r.random.Float64() >= r.Share {
		return false
	}
	r.taken++
	return true
}
