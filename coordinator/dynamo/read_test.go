package dynamo

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// page answers a Query with slots.
func page(more bool, dataBytes int, seqs ...coordinator.Seq) reply {
	var items []string
	for _, seq := range seqs {
		items = append(items, fmt.Sprintf(`{"p":{"S":"l/a"},"s":{"B":%q},"n":{"B":%q},"d":{"B":%q}}`,
			base64.StdEncoding.EncodeToString(seqBytes(seq)),
			base64.StdEncoding.EncodeToString(make([]byte, 16)),
			base64.StdEncoding.EncodeToString(make([]byte, dataBytes))))
	}
	last := ""
	if more {
		last = `,"LastEvaluatedKey":{"p":{"S":"l/a"},"s":{"B":"AA=="}}`
	}
	return says(http.StatusOK, fmt.Sprintf(`{"Items":[%s]%s}`, strings.Join(items, ","), last))
}

func TestRead(t *testing.T) {
	const most = coordinator.MaxEntryBytes
	for name, test := range map[string]struct {
		script []reply
		limit  int
		want   []coordinator.Seq
		asked  []string // after and limit of each request
		err    error
	}{
		"the end":   {[]reply{page(false, 1)}, 10, nil, []string{"5,10"}, nil},
		"one page":  {[]reply{page(false, 1, 6, 7)}, 10, []coordinator.Seq{6, 7}, []string{"5,10"}, nil},
		"two pages": {[]reply{page(true, 1, 6, 7), page(false, 1, 8)}, 10, []coordinator.Seq{6, 7, 8}, []string{"5,10", "7,8"}, nil},
		"an empty page before the end": {
			[]reply{page(true, 1, 6), page(false, 1)}, 10, []coordinator.Seq{6}, []string{"5,10", "6,9"}, nil,
		},
		"no more than asked": {[]reply{page(true, 1, 6, 7)}, 2, []coordinator.Seq{6, 7}, []string{"5,2"}, nil},
		"no more than may be": {
			[]reply{page(true, most, 6, 7, 8), page(true, most, 9, 10, 11), page(true, most, 12, 13, 14), page(true, most, 15, 16, 17)},
			2000, []coordinator.Seq{6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, []string{"5,1024", "8,1021", "11,1018", "14,1015"}, nil,
		},
		"a hole": {[]reply{page(false, 1, 7), page(false, 1, 7)}, 10, nil, []string{"5,10", "5,10"}, coordinator.ErrGap},
		"a hole after some": {
			[]reply{page(false, 1, 6, 8), page(false, 1, 8)}, 10, nil, []string{"5,10", "6,9"}, coordinator.ErrGap,
		},
		// The page was read while 7 and then 8 were appended.
		"a hole that was none": {
			[]reply{page(false, 1, 6, 8), page(false, 1, 7, 8)}, 10, []coordinator.Seq{6, 7, 8}, []string{"5,10", "6,9"}, nil,
		},
		"two holes that were none": {
			[]reply{page(false, 1, 7), page(false, 1, 6, 8), page(false, 1, 7, 8)}, 10,
			[]coordinator.Seq{6, 7, 8}, []string{"5,10", "5,10", "6,9"}, nil,
		},
		"a hole, and all after it trimmed": {[]reply{page(false, 1, 7), page(false, 1)}, 10, nil, []string{"5,10", "5,10"}, nil},
		"damage":                           {[]reply{says(200, `{"Items":[{"p":{"S":"l/a"},"s":{"B":"AA=="}}]}`)}, 10, nil, []string{"5,10"}, siltstone.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{script: test.script}
			entries, err := over(t, f, Options{}).Read(t.Context(), "a", 5, test.limit)
			if !errors.Is(err, test.err) || err != nil && test.err == nil {
				t.Errorf("%v, want %v", err, test.err)
			}
			var got []coordinator.Seq
			for _, e := range entries {
				got = append(got, e.Seq)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			var asked []string
			for _, s := range f.sent {
				values, _ := json.Marshal(s.body["ExpressionAttributeValues"])
				var v struct {
					After struct{ B []byte } `json:":after"`
				}
				if err := json.Unmarshal(values, &v); err != nil {
					t.Fatal(err)
				}
				asked = append(asked, fmt.Sprintf("%d,%v", v.After.B[7], s.body["Limit"]))
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// A partition key is text; the SDK would put other text in the place of what is none.
func TestLedgerNames(t *testing.T) {
	f := &fake{script: []reply{says(200, `{}`)}}
	c := over(t, f, Options{})
	_, readErr := c.Read(t.Context(), "a\xff", 0, 1)
	_, floorErr := c.Floor(t.Context(), "a\xff")
	for _, err := range []error{c.Append(t.Context(), "a\xff", mine), readErr, floorErr, c.Trim(t.Context(), "a\xff", 1)} {
		if !errors.Is(err, coordinator.ErrName) || len(f.sent) > 0 {
			t.Errorf("%v after %d requests", err, len(f.sent))
		}
	}
}
