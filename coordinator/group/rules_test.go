package group

import (
	"errors"
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

func TestVoid(t *testing.T) {
	f := newFolder(t, leadAlice, update(
		GroupUpdate{ID: "g", Set: info(5, "m1"), Commit: []Committed{offset(1, 0, 5)}},
		GroupUpdate{ID: "empty", Set: info(3)},
	))
	fine := GroupUpdate{ID: "fine", Set: info(1, "m"), Commit: []Committed{offset(2, 0, 2)}}
	instance := "i"
	for _, tt := range []struct {
		why    string
		update GroupUpdate
	}{
		{`"fine" is named twice`, fine},
		{"generation 4 after 5", GroupUpdate{ID: "g", Set: info(4, "m1")}},
		{"generation 0 after 3", GroupUpdate{ID: "empty", Set: &Info{}}},
		{"is over", GroupUpdate{ID: "g", Delete: true, Set: info(-1, "m1")}},
		{"without an id", GroupUpdate{ID: "g", Set: info(6, "m1", "")}},
		{"named twice", GroupUpdate{ID: "g", Set: info(6, "m1", "m2", "m1")}},
		{"instance \"i\" is of two", GroupUpdate{ID: "g", Set: with(info(6, "m1", "m2", "m3"), func(i *Info) {
			i.Members[0].Instance, i.Members[2].Instance = &instance, &instance
		})}},
		{"3 is over 2", GroupUpdate{ID: "g", Set: with(info(6, "m1", "m2"), func(i *Info) { i.Leader = "m3" })}},
		{"without a leader", GroupUpdate{ID: "g", Set: with(info(6, "m1", "m2"), func(i *Info) { i.Leader = "" })}},
		{"1 is over 0", GroupUpdate{ID: "g", Set: with(info(6), func(i *Info) { i.Leader = "m1" })}},
		{"without members", GroupUpdate{ID: "g", Set: with(info(6), func(i *Info) { i.Protocol = "range" })}},
		{"without members", GroupUpdate{ID: "g", Set: with(info(6), func(i *Info) { i.Assigned = true })}},
		{"partition 1 of topic number 2 is named twice", GroupUpdate{ID: "g", Commit: []Committed{offset(2, 1, 3), offset(2, 0, 3), offset(2, 1, 4)}}},
		{"partition 1 of topic number 2 is named twice", GroupUpdate{ID: "g", Forget: []TopicPartition{at(2, 1)}, Commit: []Committed{offset(2, 1, 3)}}},
		{"partition 1 of topic number 2 is named twice", GroupUpdate{ID: "g", Forget: []TopicPartition{at(2, 1), at(2, 1)}}},
		{"partition -1", GroupUpdate{ID: "g", Commit: []Committed{offset(2, -1, 3)}}},
		{"partition -7", GroupUpdate{ID: "g", Forget: []TopicPartition{at(2, 3), at(2, -7)}}},
		{"is over", GroupUpdate{ID: "g", Commit: []Committed{offset(2, 1, -1)}}},
	} {
		// Whatever else the entry says, nothing of it comes to be.
		f.void(tt.why, update(fine, tt.update))
	}
	f.must(update(fine))
}

func TestBrokenEntries(t *testing.T) {
	f := newFolder(t, leadAlice)
	for _, kind := range []byte{0, KindUpdate + 1, 255} {
		if _, err := f.s.Apply(ledger.Entry{Kind: kind}); !errors.Is(err, siltstone.ErrNewerFormat) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	whole := update(GroupUpdate{ID: "g", Set: info(1, "m1", "m2"), Forget: []TopicPartition{at(1, 1)}, Commit: []Committed{offset(1, 0, 5)}}).Encode()
	for n := range whole {
		if c, err := f.s.Apply(ledger.Entry{Kind: KindUpdate, Body: whole[:n]}); err != nil || c.Void == "" {
			t.Fatalf("the first %d bytes: %+v, %v", n, c, err)
		}
	}
	if c, err := f.s.Apply(ledger.Entry{Kind: KindUpdate, Body: append(slices.Clone(whole), 0)}); err != nil || c.Void == "" {
		t.Errorf("a byte more: %+v, %v", c, err)
	}
	if c, err := f.s.Apply(ledger.Entry{Kind: KindUpdate, Body: whole}); err != nil || c.Void != "" {
		t.Errorf("all of it: %+v, %v", c, err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	row := func(i *Info, c ...Committed) []byte { return appendCommits(i.append(nil), c) }
	for name, value := range map[string][]byte{
		"nothing":           {},
		"leader unknown":    row(with(info(1, "m1"), func(i *Info) { i.Leader = "m2" })),
		"no leader":         row(with(info(1, "m1"), func(i *Info) { i.Leader = "" })),
		"a member twice":    row(info(1, "m1", "m1")),
		"assigned to none":  row(with(info(1), func(i *Info) { i.Assigned = true })),
		"a partition twice": row(info(1), offset(1, 1, 1), offset(1, 1, 2)),
		"negative offset":   row(info(1), offset(1, 1, -5)),
		"left over":         append(row(info(1, "m1")), 0),
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			if err := s.Restore([]byte("\x01g"), value); !errors.Is(err, siltstone.ErrCorrupt) {
				t.Error(err)
			}
		})
	}
	s := New()
	good := row(info(1, "m1"), offset(1, 1, 1))
	if err := s.Restore([]byte("\x01g"), good); err != nil {
		t.Error(err)
	}
	if err := s.Restore([]byte("\x01g"), good); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("a group twice: %v", err)
	}
	for _, key := range []string{"", "\x00\x00", "\x02", "\x02g"} {
		if err := s.Restore([]byte(key), nil); !errors.Is(err, siltstone.ErrNewerFormat) {
			t.Errorf("key %x: %v", key, err)
		}
	}
}
