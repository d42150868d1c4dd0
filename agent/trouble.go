package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// trouble is what the workers cannot get done at the moment: the agent is not
// ready while there is any.
type trouble struct {
	mu   sync.Mutex
	now  map[string]problem
	said map[string]saying // by kind of trouble: the first word of it
}

// problem is why something does not get done.
type problem struct {
	err   error
	until time.Time // it is forgotten then; zero: only once it has got done
}

func (p problem) over() bool { return !p.until.IsZero() && !time.Now().Before(p.until) }

// saying is what the log was told of a kind of trouble.
type saying struct {
	at   time.Time
	open bool // that it began, and not that it is over
}

// sayAgain is how far apart the log is told that the same kind of trouble
// begins: a disk that is almost full refuses one object and takes the next.
const sayAgain = time.Minute

func kindOf(what string) string {
	kind, _, _ := strings.Cut(what, " ")
	return kind
}

// note says whether the log is to hear of it.
func (t *trouble) note(what string, p problem) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil {
		t.now, t.said = map[string]problem{}, map[string]saying{}
	}
	kind := kindOf(what)
	if last := t.said[kind]; !t.any(kind) && (last.at.IsZero() || time.Since(last.at) >= sayAgain) {
		t.said[kind], news = saying{at: time.Now(), open: true}, true
	}
	t.now[what] = p
	return news
}

// clear says whether the log is to hear that this kind of trouble is over.
func (t *trouble) clear(what string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.now[what]; !known {
		return false
	}
	delete(t.now, what)
	kind := kindOf(what)
	if last := t.said[kind]; last.open && !t.any(kind) {
		t.said[kind], news = saying{at: last.at}, true
	}
	return news
}

// any says whether there is trouble of a kind. The mutex is held.
func (t *trouble) any(kind string) bool {
	for what, p := range t.now {
		if kindOf(what) == kind && !p.over() {
			return true
		}
	}
	return false
}

// stalled notes an append to a ledger that does not get through, or has.
func (a *Agent) stalled(ledger string, err error) { a.troubled("append to "+ledger, err) }

// troubled notes what does not get through, or with no error that it has. The
// log is told of the kind alone: which of those that wait for the same object
// comes first is chance. Status names what is in trouble.
func (a *Agent) troubled(what string, err error) {
	switch {
	case err == nil && a.trouble.clear(what):
		a.opts.Log.Warn("the stores answer again", "what", kindOf(what))
	case err != nil && a.trouble.note(what, problem{err: err}):
		a.opts.Log.Warn("a store does not answer; trying again", "what", kindOf(what), "err", err)
	}
}

// readTrouble is how long the agent is not ready after a read of an object that
// failed, if nobody has read one since: it reads for clients, not to find out.
const readTrouble = 10 * time.Second

// heard notes whether the bucket answers a read.
func (a *Agent) heard(err error) {
	const what = "read objects"
	switch {
	case err == nil || errors.Is(err, bucket.ErrNotFound):
		a.troubled(what, nil)
	case errors.Is(err, siltstone.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
		if a.trouble.note(what, problem{err, time.Now().Add(readTrouble)}) {
			a.opts.Log.Warn("a store does not answer; readers try again", "what", kindOf(what), "err", err)
		}
	}
}

// String is one of the troubles, or empty.
func (t *trouble) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := ""
	for what, p := range t.now {
		if s := fmt.Sprintf("%s: %v", what, p.err); !p.over() && (first == "" || s < first) {
			first = s
		}
	}
	return first
}
