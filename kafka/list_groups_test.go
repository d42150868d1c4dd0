package kafka

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// threeGroups are one of a commit alone, one that waits for its assignments,
// and a stable one.
func threeGroups(f *fixture) (stable *member) {
	topic := f.create("t", 1)
	ask[*kmsg.OffsetCommitResponse](f.dial(), 7, commitOf("commits", "t", topic.ID, 0))
	f.newMember("joined", "").enter(4)
	return f.alone("stable")
}

func TestListGroups(t *testing.T) {
	f := start(t)
	threeGroups(f)
	c := f.dial()
	commits, joined, stable := "commits  Empty classic", "joined consumer CompletingRebalance classic", "stable consumer Stable classic"
	all := []string{commits, joined, stable}
	tests := []struct {
		name          string
		states, types []string
		v4, v5        []string
	}{
		{"all", nil, nil, all, all},
		{"one state", []string{"Stable"}, nil, []string{stable}, []string{stable}},
		{"in any letters", []string{"sTABLE", " empty "}, nil, []string{commits, stable}, []string{commits, stable}},
		{"a state that there is not", []string{"Preparing", "?"}, nil, nil, nil},
		{"one type", nil, []string{"Classic"}, all, all},
		{"another type", nil, []string{"consumer"}, all, nil},
		{"one of types", nil, []string{"share", "classic"}, all, all},
		{"a type that there is not", nil, []string{"?", " classic "}, all, nil},
		{"both", []string{"Stable"}, []string{"classic"}, []string{stable}, []string{stable}},
		{"both, and none", []string{"Stable"}, []string{"consumer"}, []string{stable}, nil},
	}
	for _, tt := range tests {
		for version := range int16(6) {
			q := kmsg.NewPtrListGroupsRequest()
			q.StatesFilter, q.TypesFilter = tt.states, tt.types
			resp := ask[*kmsg.ListGroupsResponse](c, version, q)
			want := [][]string{all, all, all, all, tt.v4, tt.v5}[version]
			var got []string
			for i, g := range resp.Groups {
				if version < 4 && i < len(want) { // has no state
					g.GroupState = []string{"Empty", "CompletingRebalance", "Stable"}[i]
				}
				if version < 5 {
					g.GroupType += "classic"
				}
				got = append(got, fmt.Sprintf("%s %s %s %s", g.Group, g.ProtocolType, g.GroupState, g.GroupType))
			}
			if resp.ErrorCode != 0 || !slices.Equal(got, want) {
				t.Errorf("%s, v%d: %q, want %q", tt.name, version, got, want)
			}
		}
	}
}

func TestDescribeGroups(t *testing.T) {
	f := start(t)
	m := threeGroups(f)
	c := f.dial()
	for version := range int16(7) {
		q := describeOf("stable", "none", "joined", "commits", "stable")
		q.IncludeAuthorizedOperations = version%2 == 1
		groups := ask[*kmsg.DescribeGroupsResponse](c, version, q).Groups
		var got []string
		for _, g := range groups {
			got = append(got, fmt.Sprintf("%s %s %s %s %d %s", g.Group, g.State, g.ProtocolType, g.Protocol, len(g.Members), errorName(g.ErrorCode)))
			operations := notAsked
			if version >= 3 && version%2 == 1 {
				operations = groupOperations
			}
			if g.AuthorizedOperations != operations || (g.ErrorMessage != nil) != (version >= 6 && g.Group == "none") {
				t.Errorf("v%d: %+v", version, g)
			}
		}
		missing := ""
		if version >= 6 {
			missing = "GROUP_ID_NOT_FOUND"
		}
		want := []string{
			"stable Stable consumer range 1 ", "none Dead   0 " + missing, "joined CompletingRebalance consumer  1 ", "commits Empty   0 ",
		}
		if !slices.Equal(got, want) {
			t.Fatalf("v%d: %q, want %q", version, got, want)
		}
		d := groups[0].Members[0]
		if d.MemberID != m.id || d.ClientID != "tests" || d.ClientHost != "/127.0.0.1" || string(d.ProtocolMetadata) != "m" || string(d.MemberAssignment) != "a" || d.InstanceID != nil {
			t.Errorf("v%d: %+v", version, d)
		}
		if d := groups[2].Members[0]; len(d.ProtocolMetadata)+len(d.MemberAssignment) != 0 || d.ClientHost != "/127.0.0.1" {
			t.Errorf("v%d: %+v", version, d)
		}
	}
	static := f.newMember("static", "")
	static.instance = kmsg.StringPtr("i")
	static.enter(5)
	for version := range int16(7) {
		d := ask[*kmsg.DescribeGroupsResponse](c, version, describeOf("static")).Groups[0].Members[0]
		if (d.InstanceID != nil) != (version >= 4) || version >= 4 && *d.InstanceID != "i" {
			t.Errorf("v%d: %+v", version, d)
		}
	}
}

func TestDeleteGroups(t *testing.T) {
	for version := range int16(4) {
		f := start(t)
		threeGroups(f)
		c := f.dial()
		resp := ask[*kmsg.DeleteGroupsResponse](c, version, deleteOf("stable", "none", "commits", "joined", "commits"))
		var got []string
		for _, g := range resp.Groups {
			got = append(got, g.Group+" "+errorName(g.ErrorCode))
			if (g.ErrorMessage != nil) != (version >= 3 && g.ErrorCode != 0) {
				t.Errorf("v%d: %+v", version, g)
			}
		}
		want := []string{"stable NON_EMPTY_GROUP", "none GROUP_ID_NOT_FOUND", "commits ", "joined NON_EMPTY_GROUP"}
		if !slices.Equal(got, want) {
			t.Errorf("v%d: %q, want %q", version, got, want)
		}
		list := ask[*kmsg.ListGroupsResponse](c, 5, kmsg.NewPtrListGroupsRequest())
		if len(list.Groups) != 2 {
			t.Errorf("v%d: %+v are left", version, list.Groups)
		}
	}
}

// TestManyGroups: more than go to coordinators at a time.
func TestManyGroups(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	var ids []string
	for i := range 2*handedOver + 1 {
		ids = append(ids, fmt.Sprint("group", i))
		ask[*kmsg.OffsetCommitResponse](c, 7, commitOf(ids[i], "t", topic.ID, 0))
	}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	for _, id := range ids {
		fetch.Groups = append(fetch.Groups, fetchOffsetsOf(id, "t", topic.ID, 0).Groups...)
	}
	for i, g := range ask[*kmsg.OffsetFetchResponse](c, 8, fetch).Groups {
		if g.Group != ids[i] || g.Topics[0].Partitions[0].Offset != 100 {
			t.Fatalf("%d: %+v", i, g)
		}
	}
	for i, g := range ask[*kmsg.DescribeGroupsResponse](c, 6, describeOf(ids...)).Groups {
		if g.Group != ids[i] || g.State != "Empty" {
			t.Fatalf("%d: %+v", i, g)
		}
	}
	for i, g := range ask[*kmsg.DeleteGroupsResponse](c, 3, deleteOf(ids...)).Groups {
		if g.Group != ids[i] || g.ErrorCode != 0 {
			t.Fatalf("%d: %+v", i, g)
		}
	}
	if left := ask[*kmsg.ListGroupsResponse](c, 5, kmsg.NewPtrListGroupsRequest()).Groups; len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}
