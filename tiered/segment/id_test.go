package segment

import (
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone"
)

func TestKey(t *testing.T) {
	id := ObjectID{Hour: HourOf(1796162400000), Incarnation: 0xdeadbeef00000001, Number: 42}
	const want = "3/2026120122/deadbeef00000001/0000000042"
	if got := id.Key(); got != want {
		t.Errorf("Key() = %q, want %q", got, want)
	}
	big := ObjectID{Hour: maxHour, Incarnation: 1, Number: 1<<64 - 1}
	for _, id := range []ObjectID{id, {}, big} {
		got, err := ParseKey(id.Key())
		if err != nil || got != id {
			t.Errorf("ParseKey(%q) = %v, %v", id.Key(), got, err)
		}
	}
}

func TestParseKeyTakesOnlyWhatKeyMakes(t *testing.T) {
	id := ObjectID{Hour: 500_000, Incarnation: 0xab, Number: 7}
	key := id.Key()
	other := "0"
	if key[0] == '0' {
		other = "1"
	}
	for _, bad := range []string{
		"", "x", key + "/", key + "0", "/" + key, other + key[1:], key[:len(key)-1],
		"checkpoint/shard-00/00000000000000000001-ab", "a/b/c/d", "a/9999999999/x/1", "0/0000000000/0000000000000000/0000000000",
		key[:len(key)-1] + "+7", "\x00" + key[1:],
	} {
		if got, err := ParseKey(bad); err == nil {
			t.Errorf("ParseKey(%q) = %v, want an error", bad, got)
		}
	}
}

func TestKeysSpreadAndListInOrderOfTime(t *testing.T) {
	var prefixes [16]int
	for i := range 1600 {
		id := ObjectID{Hour: 500_000, Incarnation: siltstone.Incarnation(0x1234567890abcdef), Number: uint64(i)}
		prefixes[id.prefix()]++
	}
	for p, n := range prefixes {
		if n < 50 || n > 200 {
			t.Errorf("prefix %x has %d of 1600 objects", p, n)
		}
	}
	ids := []ObjectID{{Hour: 3, Incarnation: 1, Number: 1}, {Hour: 2, Incarnation: 9, Number: 5}, {Hour: 2, Incarnation: 9, Number: 4}, {Hour: 2, Incarnation: 8, Number: 100}}
	byKey := slices.Clone(ids)
	slices.SortFunc(ids, ObjectID.Compare)
	slices.SortFunc(byKey, func(a, b ObjectID) int {
		if a.Key()[1:] < b.Key()[1:] {
			return -1
		}
		return 1
	})
	if !slices.Equal(ids, byKey) {
		t.Errorf("Compare gives %v, keys give %v", ids, byKey)
	}
}
