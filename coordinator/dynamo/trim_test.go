package dynamo

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/siltstone-io/siltstone/coordinator"
)

// What a busy store leaves of a batch of deletes is asked for again.
func TestTrimUnprocessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := says(http.StatusOK, `{"UnprocessedItems":{"table":[{"DeleteRequest":{"Key":{"p":{"S":"l/a"},"s":{"B":"AAAAAAAAAAI="}}}}]}}`)
		ok := says(http.StatusOK, `{}`)
		f := &fake{script: []reply{ok, page(true, 1, 1, 2, 3), left, left, ok, page(false, 1, 4), ok}}
		if err := over(t, f, Options{}).Trim(t.Context(), "a", 4); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, s := range f.sent {
			kind := s.kind
			if batch, ok := s.body["RequestItems"].(map[string]any); ok {
				kind = fmt.Sprintf("delete %d", len(batch["table"].([]any)))
			}
			kinds = append(kinds, kind)
		}
		want := "UpdateItem, Query, delete 3, delete 1, delete 1, Query, delete 1"
		if got := strings.Join(kinds, ", "); got != want {
			t.Errorf("sent %s; want %s", got, want)
		}
	})
}

// The floor is raised before anything is deleted; an interruption is unknown.
func TestTrimInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{script: []reply{fails(400, "ValidationException")}}
		if err := over(t, f, Options{}).Trim(t.Context(), "a", 4); err == nil || len(f.sent) != 1 || f.sent[0].kind != "UpdateItem" {
			t.Errorf("%v after %d requests", err, len(f.sent))
		}
		// A floor that is higher, of another, is as good.
		f = &fake{script: []reply{says(400, takenBlank), page(false, 1, 1), unanswered}}
		if err := over(t, f, Options{}).Trim(t.Context(), "a", 4); !errors.Is(err, coordinator.ErrUnknown) {
			t.Errorf("%v, want unknown", err)
		}
	})
}
