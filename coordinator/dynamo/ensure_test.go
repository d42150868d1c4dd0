package dynamo

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/siltstone-io/siltstone"
)

// described answers DescribeTable.
func described(status string) reply {
	return says(http.StatusOK, fmt.Sprintf(`{"Table":{"TableStatus":%q,"KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],`+
		`"AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"},{"AttributeName":"s","AttributeType":"B"}]}}`, status))
}

// What the emulator does not do: a table takes its time, and others make it too.
func TestEnsureTable(t *testing.T) {
	missing, ok := fails(400, "ResourceNotFoundException"), says(200, `{}`)
	expires := says(200, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLING","AttributeName":"t"}}`)
	for name, test := range map[string]struct {
		script   []reply
		requests int
		want     error
	}{
		"made":                         {[]reply{missing, ok, missing, described("CREATING"), described("ACTIVE"), expires}, 6, nil},
		"another makes it":             {[]reply{missing, fails(400, "ResourceInUseException"), described("ACTIVE"), expires}, 4, nil},
		"the reply lost, and was made": {[]reply{missing, unanswered, fails(400, "ResourceInUseException"), described("ACTIVE"), expires}, 5, nil},
		"being changed":                {[]reply{described("UPDATING"), described("UPDATING"), expires}, 3, nil},
		"another sets the TTL":         {[]reply{described("ACTIVE"), described("ACTIVE"), ok, fails(400, "ValidationException"), expires}, 5, nil},
		"being deleted":                {[]reply{described("DELETING")}, 2, siltstone.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: test.script}
				err := over(t, f, Options{}).EnsureTable(t.Context())
				if !errors.Is(err, test.want) || len(f.sent) != test.requests {
					t.Errorf("%v after %d requests, want %v after %d", err, len(f.sent), test.want, test.requests)
				}
			})
		})
	}
	for status, want := range map[string]error{"ACTIVE": nil, "UPDATING": nil, "CREATING": siltstone.ErrUnavailable, "DELETING": siltstone.ErrUnavailable} {
		f := &fake{script: []reply{described(status)}}
		if err := over(t, f, Options{}).CheckTable(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", status, err, want)
		}
	}
}
