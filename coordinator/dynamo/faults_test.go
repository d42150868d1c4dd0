package dynamo_test

import (
	"errors"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/dynamo"
	"github.com/siltstone-io/siltstone/localstack/faultproxy"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

// What a caller does who keeps to the port's rules comes out right, whatever
// becomes of requests and replies on the way.
func TestFaults(t *testing.T) {
	store := "http://" + servers.ForTest(t, servers.AWS)
	for name, fault := range map[string]faultproxy.Fault{
		"replies lost, the writes done": {Every: 3, Action: faultproxy.DropReply},
		"replies cut":                   {Every: 3, Action: faultproxy.CutReply},
		"requests cut":                  {Every: 3, Action: faultproxy.CutUpload},
		"throttled":                     {Every: 3, Action: faultproxy.Answer, Error: faultproxy.Throttled},
		"errors of the server":          {Every: 3, Action: faultproxy.Answer, Error: faultproxy.InternalServer},
		"expired credentials":           {Every: 3, Action: faultproxy.Answer, Error: faultproxy.TokenExpired},
		"slow":                          {Every: 3, DelayMs: 20},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, err := faultproxy.New(faultproxy.Options{Upstream: store})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(proxy)
			t.Cleanup(server.Close)
			l := made(t, store)
			l.Endpoint = server.URL
			c := opened(t, l)
			if err := proxy.Set(fault); err != nil {
				t.Fatal(err)
			}
			appendThrough(t, c)
			countThrough(t, c)
			if taken := proxy.Taken()[0]; taken < 10 {
				t.Errorf("only %d requests have suffered", taken)
			}
		})
	}
}

// resend calls f until it is nil or another error than those that ask for it.
func resend(f func() error) error {
	for {
		err := f()
		if !errors.Is(err, coordinator.ErrUnknown) && !errors.Is(err, siltstone.ErrUnavailable) {
			return err
		}
	}
}

// appendThrough fills slots, each until it is settled, then trims some.
func appendThrough(t *testing.T, c *dynamo.Coordinator) {
	t.Helper()
	const n, floor = 20, 15
	var want []coordinator.Entry
	for seq := coordinator.Seq(1); seq <= n; seq++ {
		e := coordinator.Entry{Seq: seq, Nonce: coordinator.Nonce{byte(seq)}, Data: strconv.AppendUint(nil, uint64(seq), 10)}
		err := resend(func() error { return c.Append(t.Context(), "a", e) })
		if conflict, ok := errors.AsType[*coordinator.Conflict](err); err != nil && (!ok || conflict.Occupant.Nonce != e.Nonce) {
			t.Fatalf("append %d: %v", seq, err)
		}
		want = append(want, e)
	}
	read := func(after coordinator.Seq) (got []coordinator.Entry) {
		t.Helper()
		if err := resend(func() (err error) { got, err = c.Read(t.Context(), "a", after, n); return err }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(want, read(0)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := resend(func() error { return c.Trim(t.Context(), "a", floor) }); err != nil {
		t.Fatal(err)
	}
	var got coordinator.Seq
	if err := resend(func() (err error) { got, err = c.Floor(t.Context(), "a"); return err }); err != nil || got != floor {
		t.Errorf("floor %d, %v", got, err)
	}
	if diff := cmp.Diff(want[floor:], read(floor)); diff != "" {
		t.Errorf("entries above the floor (-want +got):\n%s", diff)
	}
}

// countThrough counts in a register. A put whose outcome is unknown has landed
// if its nonce is there; it is not made again before that is known.
func countThrough(t *testing.T, c *dynamo.Coordinator) {
	t.Helper()
	const n = 10
	var v coordinator.Value
	get := func() {
		t.Helper()
		if err := resend(func() (err error) { v, err = c.Get(t.Context(), "count"); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= n; {
		nonce := coordinator.Nonce{byte(i)}
		_, err := c.Put(t.Context(), "count", strconv.AppendInt(nil, int64(i), 10), v.Version, nonce)
		if _, conflict := errors.AsType[*coordinator.VersionConflict](err); err != nil && !conflict &&
			!errors.Is(err, coordinator.ErrUnknown) && !errors.Is(err, siltstone.ErrUnavailable) {
			t.Fatal(err)
		}
		if get(); v.Nonce == nonce {
			i++
		}
	}
	if string(v.Data) != strconv.Itoa(n) {
		t.Errorf("counted to %s, not %d", v.Data, n)
	}
}
