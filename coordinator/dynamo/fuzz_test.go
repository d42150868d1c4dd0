package dynamo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
)

// Whatever the store answers, a call comes to an end, without a panic, and
// takes no more than it asked for.
func FuzzReplies(f *testing.F) {
	for _, body := range []string{
		done, taken, takenBlank, `{}`, `{"Item":{"p":{"S":"l/a"},"s":{"B":"AAAAAAAAAAA="},"f":{"B":"AAAAAAAAAAk="}}}`,
		`{"Item":{"p":{"S":"r"},"s":{"B":"aw=="},"v":{"S":"v"},"n":{"B":"AgAAAAAAAAAAAAAAAAAAAA=="},"t":{"N":"1"}}}`,
		`{"Items":[{"s":{"B":"AAAAAAAAAAE="},"n":{"B":"AgAAAAAAAAAAAAAAAAAAAA=="},"d":{"B":"dGhlaXJz"}},{"s":{"B":"AAAAAAAAAAM="}}],"LastEvaluatedKey":{"s":{"B":""}}}`,
		`{"UnprocessedItems":{"table":[{"DeleteRequest":{"Key":null}},{}]}}`, `{"__type":"x#ThrottlingException"}`,
	} {
		f.Add(200, []byte(body))
		f.Add(400, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, call := range []func(*Coordinator){
				func(c *Coordinator) { _ = c.Append(ctx, "a", mine) },
				func(c *Coordinator) {
					if entries, err := c.Read(ctx, "a", 0, 3); len(entries) > 3 || err != nil && entries != nil {
						t.Errorf("%v, %v", entries, err)
					}
				},
				func(c *Coordinator) { _, _ = c.Floor(ctx, "a") },
				func(c *Coordinator) { _ = c.Trim(ctx, "a", 3) },
				func(c *Coordinator) { _, _ = c.Get(ctx, "k") },
				func(c *Coordinator) { _, _ = c.Put(ctx, "k", nil, "v", coordinator.Nonce{}) },
				func(c *Coordinator) { _, _ = c.List(ctx, "k") },
				func(c *Coordinator) { _ = c.EnsureTable(ctx) },
			} {
				call(over(t, &fake{script: []reply{says(status, string(body)), says(200, string(body)), says(200, `{}`)}}, Options{}))
			}
		})
	})
}
