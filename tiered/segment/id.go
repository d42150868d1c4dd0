package segment

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/siltstone-io/siltstone"
)

// ObjectID names one object for ever: the hour its writer counted when it made
// it, the writer's incarnation, and a number that the incarnation gives out once.
type ObjectID struct {
	Hour        uint32 // hours since 1970 UTC
	Incarnation siltstone.Incarnation
	Number      uint64
}

const (
	hourLayout   = "2006010215"
	numberDigits = 10 // at least
)

// maxHour is the last hour that hourLayout can hold: the end of the year 9999.
var maxHour = uint32(time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC).Unix() / 3600)

// HourOf is the hour of a time in milliseconds since 1970.
func HourOf(ms int64) uint32 { return uint32(max(ms, 0) / 3_600_000) }

// Key is the object's key in the bucket: one of 16 prefixes, so that load
// spreads, then hour, incarnation and number, so that a listing of a prefix is
// in order of time.
func (id ObjectID) Key() string {
	hour := time.Unix(int64(id.Hour)*3600, 0).UTC().Format(hourLayout)
	return fmt.Sprintf("%x/%s/%s/%0*d", id.prefix(), hour, id.Incarnation, numberDigits, id.Number)
}

// prefix is four bits of a hash of incarnation and number.
func (id ObjectID) prefix() byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(id.Incarnation))
	binary.BigEndian.PutUint64(b[8:], id.Number)
	h := fnv.New64a()
	_, _ = h.Write(b[:])
	sum := h.Sum64()
	return byte(sum>>32^sum) & 0xf
}

func (id ObjectID) String() string { return id.Key() }

// Compare orders ids by hour, incarnation, number.
func (id ObjectID) Compare(o ObjectID) int {
	return cmp.Or(cmp.Compare(id.Hour, o.Hour), cmp.Compare(id.Incarnation, o.Incarnation), cmp.Compare(id.Number, o.Number))
}

// ParseKey is the inverse of Key: it takes exactly the keys that Key makes.
func ParseKey(key string) (ObjectID, error) {
	var id ObjectID
	part := strings.Split(key, "/")
	if len(part) != 4 {
		return ObjectID{}, fmt.Errorf("%q is not a segment's key", key)
	}
	hour, err1 := time.Parse(hourLayout, part[1])
	incarnation, err2 := strconv.ParseUint(part[2], 16, 64)
	number, err3 := strconv.ParseUint(part[3], 10, 64)
	if hours := hour.Unix() / 3600; hours >= 0 && hours <= int64(maxHour) {
		id = ObjectID{Hour: uint32(hours), Incarnation: siltstone.Incarnation(incarnation), Number: number}
	}
	if err1 != nil || err2 != nil || err3 != nil || id.Key() != key {
		return ObjectID{}, fmt.Errorf("%q is not a segment's key", key)
	}
	return id, nil
}
