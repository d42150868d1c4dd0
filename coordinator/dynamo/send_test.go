package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

var (
	mine   = coordinator.Entry{Seq: 7, Nonce: coordinator.Nonce{1}, Data: []byte("mine")}
	theirs = coordinator.Entry{Seq: 7, Nonce: coordinator.Nonce{2}, Data: []byte("theirs")}
)

const (
	done  = `{"ConsumedCapacity":{"TableName":"table","CapacityUnits":3}}`
	taken = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"m","Item":` +
		`{"p":{"S":"l/a"},"s":{"B":"AAAAAAAAAAc="},"n":{"B":"AgAAAAAAAAAAAAAAAAAAAA=="},"d":{"B":"dGhlaXJz"}}}`
	takenBlank = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"m"}`
)

// What an append comes to, by what the store does with its requests.
func TestAppendOutcomes(t *testing.T) {
	ok := says(http.StatusOK, done)
	throttle := fails(http.StatusBadRequest, "ThrottlingException")
	for name, test := range map[string]struct {
		script   []reply
		requests int
		want     error             // nil: it has landed
		also     error             // that it is, too
		occupant coordinator.Entry // of a conflict
		refused  bool              // with an error that is nothing to branch on
	}{
		"done":     {script: []reply{ok}, requests: 1},
		"conflict": {script: []reply{says(400, taken)}, requests: 1, occupant: theirs},

		// It may have landed: it is not made again.
		"no answer":                      {script: []reply{unanswered, ok}, requests: 1, want: coordinator.ErrUnknown, also: errCut},
		"never an answer":                {script: []reply{hangs, ok}, requests: 1, want: coordinator.ErrUnknown, also: context.DeadlineExceeded},
		"done, the answer cut":           {script: []reply{cut(200, done), ok}, requests: 1, want: coordinator.ErrUnknown},
		"conflict, the answer cut":       {script: []reply{cut(400, taken), ok}, requests: 1, want: coordinator.ErrUnknown},
		"an error of the server":         {script: []reply{fails(500, "InternalServerError"), ok}, requests: 1, want: coordinator.ErrUnknown},
		"an error of the server, as 400": {script: []reply{fails(400, "InternalServerError"), ok}, requests: 1, want: coordinator.ErrUnknown},
		"unavailable":                    {script: []reply{fails(503, "ServiceUnavailable"), ok}, requests: 1, want: coordinator.ErrUnknown},
		"a proxy's 502":                  {script: []reply{says(502, "<html>"), ok}, requests: 1, want: coordinator.ErrUnknown},
		"a proxy's 403":                  {script: []reply{says(403, "<html>"), ok}, requests: 1, want: coordinator.ErrUnknown},
		"a proxy's 408":                  {script: []reply{fails(408, "RequestTimeout"), ok}, requests: 1, want: coordinator.ErrUnknown},
		"an error without a name":        {script: []reply{says(400, "{}"), ok}, requests: 1, want: coordinator.ErrUnknown},

		// It did not land, and is made again.
		"throttled":               {script: []reply{throttle, throttle, throttle, throttle, throttle, ok}, requests: 6},
		"over the table's rate":   {script: []reply{fails(400, "ProvisionedThroughputExceededException"), ok}, requests: 2},
		"over the account's rate": {script: []reply{fails(400, "RequestLimitExceeded"), ok}, requests: 2},
		"no connection":           {script: []reply{undialled, undialled, ok}, requests: 3},
		"no connection for long":  {script: []reply{undialled}, requests: 3, want: siltstone.ErrUnavailable, also: errCut},
		"the token has expired":   {script: []reply{fails(400, "ExpiredTokenException"), ok}, requests: 2},
		"no right to":             {script: []reply{fails(400, "AccessDeniedException")}, requests: 3, want: siltstone.ErrUnavailable},
		"a clock that is wrong":   {script: []reply{fails(400, "InvalidSignatureException"), ok}, requests: 2},

		// It never will.
		"not valid":           {script: []reply{fails(400, "ValidationException"), ok}, requests: 1, refused: true},
		"no table":            {script: []reply{fails(400, "ResourceNotFoundException"), ok}, requests: 1, want: ErrNoTable},
		"too many tables":     {script: []reply{fails(400, "LimitExceededException"), ok}, requests: 1, refused: true},
		"conflict with what?": {script: []reply{says(400, takenBlank), ok}, requests: 1, want: siltstone.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: test.script}
				err := over(t, f, Options{}).Append(t.Context(), "a", mine)
				conflict, isConflict := errors.AsType[*coordinator.Conflict](err)
				switch {
				case test.occupant.Data != nil:
					if !isConflict {
						t.Fatalf("%v, want a conflict", err)
					}
					if diff := cmp.Diff(test.occupant, conflict.Occupant); diff != "" {
						t.Errorf("occupant (-want +got):\n%s", diff)
					}
				case test.refused:
					if err == nil || isConflict || errors.Is(err, coordinator.ErrUnknown) || errors.Is(err, siltstone.ErrUnavailable) {
						t.Errorf("%v, want an error that is none of the sentinels", err)
					}
				case !errors.Is(err, test.want) || !errors.Is(err, test.also) && test.also != nil:
					t.Errorf("%v, want %v, %v", err, test.want, test.also)
				case errors.Is(err, coordinator.ErrUnknown) && !errors.Is(test.want, coordinator.ErrUnknown):
					t.Errorf("%v: it is known", err)
				}
				if len(f.sent) != test.requests {
					t.Errorf("%d requests, want %d", len(f.sent), test.requests)
				}
			})
		})
	}
}

// What may be made twice is made again, a few times.
func TestRepeatable(t *testing.T) {
	calls := map[string]func(context.Context, *Coordinator) error{
		"floor": func(ctx context.Context, c *Coordinator) error { _, err := c.Floor(ctx, "a"); return err },
		"read":  func(ctx context.Context, c *Coordinator) error { _, err := c.Read(ctx, "a", 0, 1); return err },
		"get":   func(ctx context.Context, c *Coordinator) error { _, err := c.Get(ctx, "k"); return err },
		"list":  func(ctx context.Context, c *Coordinator) error { _, err := c.List(ctx, "k"); return err },
		"trim":  func(ctx context.Context, c *Coordinator) error { return c.Trim(ctx, "a", 1) },
	}
	for name, call := range calls {
		for _, lose := range []reply{unanswered, cut(200, done), fails(500, "InternalServerError"), hangs} {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: []reply{lose, lose, says(200, `{}`)}}
				if err := call(t.Context(), over(t, f, Options{})); err != nil || len(f.sent) < 3 {
					t.Errorf("%s: %v after %d requests", name, err, len(f.sent))
				}
				for _, s := range f.sent {
					if (s.kind == "GetItem" || s.kind == "Query") && s.body["ConsistentRead"] != true {
						t.Errorf("%s: a %s that is not consistent", name, s.kind)
					}
				}
				f = &fake{script: []reply{lose}}
				err := call(t.Context(), over(t, f, Options{}))
				want := siltstone.ErrUnavailable
				if name == "trim" {
					want = coordinator.ErrUnknown
				}
				if !errors.Is(err, want) || name != "trim" && errors.Is(err, coordinator.ErrUnknown) || len(f.sent) != tries {
					t.Errorf("%s: %v after %d requests, want %v after %d", name, err, len(f.sent), want, tries)
				}
			})
		}
	}
}

// A put or delete of a register is as conditional as an append.
func TestRegisterOutcomes(t *testing.T) {
	for name, call := range map[string]func(*Coordinator) error{
		"put": func(c *Coordinator) error {
			_, err := c.Put(t.Context(), "k", nil, "", coordinator.Nonce{})
			return err
		},
		"delete": func(c *Coordinator) error { return c.Delete(t.Context(), "k", "v", coordinator.Nonce{}) },
	} {
		f := &fake{script: []reply{unanswered}}
		if err := call(over(t, f, Options{})); !errors.Is(err, coordinator.ErrUnknown) || len(f.sent) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(f.sent))
		}
		// A version that is no longer there, as the tombstone has expired.
		f = &fake{script: []reply{says(400, takenBlank)}}
		conflict, ok := errors.AsType[*coordinator.VersionConflict](call(over(t, f, Options{})))
		if !ok || conflict.Current.Version != "" {
			t.Errorf("%s: %+v, want a conflict with nothing", name, conflict)
		}
	}
}

// A caller that goes while it waits has not written; one that goes after it was
// sent may have.
func TestCallerGoes(t *testing.T) {
	for name, test := range map[string]struct {
		reply   reply
		unknown bool
		want    error
	}{
		"throttled": {fails(400, "ThrottlingException"), false, siltstone.ErrUnavailable},
		"dialling":  {func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, false, context.DeadlineExceeded},
		"sent":      {hangs, true, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				err := over(t, &fake{script: []reply{test.reply}}, Options{}).Append(ctx, "a", mine)
				if !errors.Is(err, test.want) || errors.Is(err, coordinator.ErrUnknown) != test.unknown {
					t.Errorf("%v, want %v; unknown is %v", err, test.want, test.unknown)
				}
			})
		})
	}
}

// Close does not wait for what only waits.
func TestCloseEndsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := over(t, &fake{script: []reply{fails(400, "ThrottlingException")}}, Options{})
		result := make(chan error)
		go func() { result <- c.Append(t.Context(), "a", mine) }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-result; !errors.Is(err, siltstone.ErrUnavailable) || errors.Is(err, coordinator.ErrUnknown) {
			t.Error(err)
		}
	})
}

// However many call, a store that refuses everything is left in peace, and is
// found again at once when it does not.
func TestPace(t *testing.T) {
	const callers, seconds = 50, 60
	for name, refusal := range map[string]reply{
		"throttled": fails(400, "ProvisionedThroughputExceededException"),
		"expired":   fails(400, "ExpiredTokenException"),
		"broken":    fails(500, "InternalServerError"),
		"not there": fails(400, "ResourceNotFoundException"),
		"gone":      undialled,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: []reply{refusal}}
				c := over(t, f, Options{})
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for ctx.Err() == nil {
							try, done := context.WithTimeout(ctx, 5*time.Second)
							_, _ = c.Floor(try, "a")
							done()
							time.Sleep(100 * time.Millisecond)
						}
					})
				}
				start := time.Now()
				time.Sleep(seconds * time.Second)
				f.mu.Lock()
				perSecond := make([]int, seconds)
				for _, s := range f.sent {
					perSecond[min(seconds-1, int(s.at.Sub(start)/time.Second))]++
				}
				f.script = []reply{says(200, `{}`)}
				f.mu.Unlock()
				// All are under way when it begins.
				if first := perSecond[0]; first > callers+20 {
					t.Errorf("%d requests in the first second", first)
				}
				if most, least := slices.Max(perSecond[1:]), slices.Min(perSecond[1:]); most > 20 || least < 1 {
					t.Errorf("%d to %d requests a second", least, most)
				}
				healed := time.Now()
				if _, err := c.Floor(t.Context(), "a"); err != nil || time.Since(healed) > time.Second {
					t.Errorf("after %v: %v", time.Since(healed), err)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// Requests that fail between others that do not are nobody's trouble but their own.
func TestPaceOfAFew(t *testing.T) {
	var p pace
	for range 10 * paceAfter {
		for range paceAfter - 1 {
			p.settle(false)
		}
		p.settle(true)
		if err := p.turn(t.Context(), nil); err != nil || p.take() != 0 {
			t.Fatal("the store counts as down")
		}
	}
}

// The counts are those of the bill.
func TestCounts(t *testing.T) {
	kib := coordinator.Entry{Seq: 1, Data: make([]byte, 1<<10)}
	for name, test := range map[string]struct {
		script []reply
		call   func(*Coordinator) error
		want   map[string]float64
	}{
		"as the store says": {
			[]reply{says(200, done)},
			func(c *Coordinator) error { return c.Append(t.Context(), "a", mine) },
			map[string]float64{"requests PutItem": 1, "write_units": 3},
		},
		"by size": {
			[]reply{says(200, `{}`)},
			func(c *Coordinator) error { return c.Append(t.Context(), "a", kib) },
			map[string]float64{"requests PutItem": 1, "write_units": 2},
		},
		"a floor that is not there": {
			[]reply{says(200, `{}`)},
			func(c *Coordinator) error { _, err := c.Floor(t.Context(), "a"); return err },
			map[string]float64{"requests GetItem": 1, "read_units": 1},
		},
		"a condition that fails": {
			[]reply{says(400, taken)},
			func(c *Coordinator) error { return c.Append(t.Context(), "a", kib) },
			map[string]float64{"requests PutItem": 1, "write_units": 2},
		},
		"no answer": {
			[]reply{unanswered},
			func(c *Coordinator) error { return c.Append(t.Context(), "a", mine) },
			map[string]float64{"requests PutItem": 1, "write_units": 1, "failures lost": 1},
		},
		"throttled, then done": {
			[]reply{fails(400, "ThrottlingException"), says(200, done)},
			func(c *Coordinator) error { return c.Append(t.Context(), "a", mine) },
			map[string]float64{"requests PutItem": 2, "write_units": 3, "failures throttled": 1},
		},
		"never sent": {
			[]reply{undialled},
			func(c *Coordinator) error { return c.Append(t.Context(), "a", mine) },
			map[string]float64{"failures unreached": 3},
		},
		"expired, then done": {
			[]reply{fails(400, "ExpiredTokenException"), says(200, `{}`)},
			func(c *Coordinator) error { _, err := c.Get(t.Context(), "k"); return err },
			map[string]float64{"requests GetItem": 2, "read_units": 1, "failures unauthorized": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			_ = test.call(over(t, &fake{script: test.script}, Options{Metrics: reg}))
			if diff := cmp.Diff(test.want, counted(t, reg)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Credentials that were refused are fetched anew.
func TestExpiredCredentialsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		note := func(r *http.Request) {
			keys = append(keys, r.Header.Get("Authorization")[:len("AWS4-HMAC-SHA256 Credential=key1")])
		}
		f := &fake{script: []reply{
			func(r *http.Request) (*http.Response, error) { note(r); return fails(400, "ExpiredTokenException")(r) },
			func(r *http.Request) (*http.Response, error) { note(r); return says(200, done)(r) },
		}}
		c := overCredentials(t, f, &countingCredentials{}, Options{})
		if err := c.Append(t.Context(), "a", mine); err != nil {
			t.Fatal(err)
		}
		want := []string{"AWS4-HMAC-SHA256 Credential=key1", "AWS4-HMAC-SHA256 Credential=key2"}
		if fmt.Sprint(keys) != fmt.Sprint(want) {
			t.Errorf("signed with %q, want %q", keys, want)
		}
	})
}

// A clock that is wrong by more than signatures allow is corrected by the
// store's, for the requests that follow too.
func TestWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead = 20 * time.Minute
		var signed []time.Duration // ahead of this clock
		at := func(next reply) reply {
			return func(r *http.Request) (*http.Response, error) {
				date, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
				if err != nil {
					return nil, err
				}
				signed = append(signed, time.Until(date).Round(time.Minute))
				response, err := next(r)
				response.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
				return response, err
			}
		}
		f := &fake{script: []reply{at(fails(http.StatusBadRequest, "InvalidSignatureException")), at(says(http.StatusOK, done))}}
		c := over(t, f, Options{})
		for range 2 {
			if err := c.Append(t.Context(), "a", mine); err != nil {
				t.Fatal(err)
			}
		}
		if want := []time.Duration{0, ahead, ahead}; !slices.Equal(signed, want) {
			t.Errorf("signed for %v ahead, want %v", signed, want)
		}
	})
}
