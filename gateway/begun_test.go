package gateway

import (
	"errors"
	"testing"
)

// TestNotBegun: an agent that does not know yet what there is does not say that
// there is nothing; what is wrong with the call itself it says at once.
func TestNotBegun(t *testing.T) {
	f := start(t, func(o *Options) { o.Agent = agentState{starting: errors.New("another agent is active")} })
	for _, path := range []string{"/api/v1/topics", "/api/v1/topics/t", "/api/v1/topics/t/partitions/0/records"} {
		f.do("GET", path, "").want(503, 50302, "another agent is active")
	}
	f.do("PUT", "/api/v1/topics/t", "").want(503, 50302, "another agent is active")
	f.do("GET", "/api/v1/topics?nosuch=1", "").want(400, 40001, "nosuch")
}
