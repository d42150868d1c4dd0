package sim

import (
	"slices"
	"testing"
)

func TestAllot(t *testing.T) {
	parts := []partition{{"t", 0}, {"t", 1}, {"t", 2}, {"u", 0}, {"u", 1}}
	tests := []struct {
		name        string
		cooperative bool
		members     []candidate
		want        map[string]int // how many each gets
		kept        map[string][]partition
	}{
		{"one", false, []candidate{{"a", nil}}, map[string]int{"a": 5}, nil},
		{"even", false, []candidate{{"b", nil}, {"a", nil}}, map[string]int{"a": 3, "b": 2}, nil},
		{"more than partitions", false, []candidate{{"a", nil}, {"b", nil}, {"c", nil}, {"d", nil}, {"e", nil}, {"f", nil}}, map[string]int{"a": 1, "e": 1, "f": 0}, nil},
		{"what is owned stays", true, []candidate{{"a", parts[:2]}, {"b", parts[2:]}}, map[string]int{"a": 2, "b": 3}, map[string][]partition{"a": parts[:2], "b": parts[2:]}},
		{"what is to move is nobody's", true, []candidate{{"a", parts}, {"b", nil}}, map[string]int{"a": 3, "b": 0}, map[string][]partition{"a": parts[:3]}},
		{"and then another's", true, []candidate{{"a", parts[:3]}, {"b", nil}}, map[string]int{"a": 3, "b": 2}, map[string][]partition{"b": parts[3:]}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shares := (&team{parts: parts, cooperative: test.cooperative}).allot(test.members)
			owners := map[partition]string{}
			for id, share := range shares {
				for _, p := range share {
					if other := owners[p]; other != "" {
						t.Errorf("%s is %s's and %s's", p, other, id)
					}
					owners[p] = id
				}
			}
			for id, n := range test.want {
				if len(shares[id]) != n {
					t.Errorf("%s gets %v, want %d", id, shares[id], n)
				}
			}
			for id, kept := range test.kept {
				if !slices.Equal(shares[id], kept) {
					t.Errorf("%s gets %v, want %v", id, shares[id], kept)
				}
			}
		})
	}
}

func TestAssignmentsAndSubscriptionsAreReadBack(t *testing.T) {
	parts := []partition{{"t", 0}, {"t", 2}, {"u", 1}}
	share, mark, err := sharesIn(assignment(parts, "m"))
	if err != nil || mark != "m" || !slices.Equal(share, parts) {
		t.Errorf("an assignment reads %v, %q: %v", share, mark, err)
	}
	owned, err := ownedIn((&team{parts: parts, cooperative: true}).subscription(parts, 3))
	if err != nil || !slices.Equal(owned, parts) {
		t.Errorf("a subscription reads %v: %v", owned, err)
	}
}
