package dynamo

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

var (
	anEntry    = coordinator.Entry{Seq: 258, Nonce: coordinator.Nonce{1, 2}, Data: []byte("data")}
	aValue     = coordinator.Value{Data: []byte("data"), Version: "version", Nonce: coordinator.Nonce{3}}
	aTombstone = coordinator.Value{Deleted: true, Version: "version", Nonce: coordinator.Nonce{3}}
)

func TestItems(t *testing.T) {
	if got, err := decodeEntry(encodeEntry("a", anEntry)); err != nil || !cmp.Equal(got, anEntry) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, v := range []coordinator.Value{aValue, aTombstone} {
		if got, err := decodeRegister(encodeRegister("k", v, time.Now())); err != nil || !cmp.Equal(got, v) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	dead := encodeRegister("k", aTombstone, time.Unix(1000, 0))
	if n, ok := dead["t"].(*types.AttributeValueMemberN); !ok || n.Value != "605800" {
		t.Errorf("expires at %v, want a week after 1000", dead["t"])
	}
	if _, ok := encodeRegister("k", aValue, time.Now())["t"]; ok {
		t.Error("a value that expires")
	}
	if _, ok := encodeEntry("a", anEntry)["t"]; ok {
		t.Error("an entry that expires")
	}
}

// The page of the format has these figures.
func TestSizes(t *testing.T) {
	longest := strings.Repeat("n", coordinator.MaxNameBytes)
	const most = coordinator.MaxEntryBytes
	for name, test := range map[string]struct {
		it    item
		bytes int
	}{
		"entry of a shard": {encodeEntry("shard-00", coordinator.Entry{Seq: 1, Data: make([]byte, 986)}), 1024},
		"largest entry":    {encodeEntry(longest, coordinator.Entry{Seq: 1, Data: make([]byte, most)}), most + 542},
		"largest register": {encodeRegister(longest, coordinator.Value{Version: versionLike, Data: make([]byte, most)}, time.Now()), most + 560},
		"tombstone":        {encodeRegister("k", coordinator.Value{Version: versionLike, Deleted: true}, time.Unix(1e9, 0)), 55},
	} {
		if got := sizeBytes(test.it); got != test.bytes {
			t.Errorf("%s: %d bytes, want %d", name, got, test.bytes)
		}
		if test.bytes > 400<<10 {
			t.Errorf("%s: %d bytes do not fit an item", name, test.bytes)
		}
	}
	for bytes, want := range map[int][2]float64{0: {1, 1}, 1: {1, 1}, 1024: {1, 1}, 1025: {2, 1}, 4096: {4, 1}, 4097: {5, 2}} {
		if got := [2]float64{writeUnits(bytes), readUnits(bytes)}; got != want {
			t.Errorf("%d bytes are %v units, want %v", bytes, got, want)
		}
	}
}

const versionLike = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// An item that lacks an attribute, or has it of another type or length, is damage.
func TestDamagedItems(t *testing.T) {
	decoders := map[string]struct {
		whole  item
		needed []string
		decode func(item) error
	}{
		"entry":     {encodeEntry("a", anEntry), []string{"s", "n", "d"}, func(it item) error { _, err := decodeEntry(it); return err }},
		"register":  {encodeRegister("k", aValue, time.Now()), []string{"v", "n", "d"}, func(it item) error { _, err := decodeRegister(it); return err }},
		"tombstone": {encodeRegister("k", aTombstone, time.Now()), []string{"v", "n", "t"}, func(it item) error { _, err := decodeRegister(it); return err }},
		"floor":     {item{"p": str("l/a"), "s": bin(seqBytes(0)), "f": bin(seqBytes(7))}, []string{"f"}, func(it item) error { _, err := decodeFloor(it); return err }},
	}
	for name, d := range decoders {
		if err := d.decode(d.whole); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, attribute := range d.needed {
			for what, bad := range map[string]types.AttributeValue{
				"nothing": nil, "null": &types.AttributeValueMemberNULL{Value: true}, "another type": &types.AttributeValueMemberBOOL{},
			} {
				it := maps.Clone(d.whole)
				it[attribute] = bad
				if bad == nil {
					delete(it, attribute)
				}
				if attribute == "t" && bad != nil {
					continue // that it is there is all it says
				}
				if err := d.decode(it); !errors.Is(err, siltstone.ErrCorrupt) {
					t.Errorf("%s with %s for %s: %v", name, what, attribute, err)
				}
			}
		}
	}
	for name, it := range map[string]item{
		"short seq":   {"s": bin(make([]byte, 7)), "n": bin(make([]byte, 16)), "d": bin(nil)},
		"long nonce":  {"s": bin(make([]byte, 8)), "n": bin(make([]byte, 17)), "d": bin(nil)},
		"not a thing": {},
	} {
		if _, err := decodeEntry(it); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decodeFloor(item{"f": bin(make([]byte, 9))}); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("long floor: %v", err)
	}
}
