package topic

import (
	"errors"
	"math"
)

// ProducerIDBlock is how many producer ids are taken at once, as in Kafka: so
// that few producers cost an entry, and a crash loses few of 2^63.
const ProducerIDBlock = 1000

// ErrNoProducerIDs says that all have been taken.
var ErrNoProducerIDs = errors.New("no producer ids are left")

// TakeProducerIDs decides to take the next block of producer ids: those from
// first on. They are the taker's once the entry is folded, and nobody else's
// ever.
func TakeProducerIDs(v *View) (d Decision, first int64, err error) {
	if v.nextID > math.MaxInt64-ProducerIDBlock {
		return Decision{}, 0, ErrNoProducerIDs
	}
	taken := TakenIDs{First: v.nextID, Count: ProducerIDBlock}
	return Decision{taken.Kind(), taken.Encode()}, taken.First, nil
}
