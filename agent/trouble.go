package agent

import (
	"fmt"
	"sync"
)

// trouble is what the workers cannot get done at the moment: the agent is not
// ready while there is any.
type trouble struct {
	mu  sync.Mutex
	now map[string]error
}

// note says whether the trouble is new.
func (t *trouble) note(what string, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil {
		t.now = map[string]error{}
	}
	_, known := t.now[what]
	t.now[what] = err
	return !known
}

func (t *trouble) clear(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.now, what)
}

// stalled notes an append to a ledger that does not get through.
func (a *Agent) stalled(ledger string, err error) {
	what := "append to " + ledger
	if err == nil {
		a.trouble.clear(what)
		return
	}
	a.trouble.note(what, err)
}

// String is one of the troubles, or empty.
func (t *trouble) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := ""
	for what, err := range t.now {
		if s := fmt.Sprintf("%s: %v", what, err); first == "" || s < first {
			first = s
		}
	}
	return first
}
