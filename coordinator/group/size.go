package group

import (
	"encoding/binary"
	"math/bits"
)

// The most bytes that parts of an entry take.
const (
	// UpdateBytes is what an Update takes but for its Groups.
	UpdateBytes = 5 + 8 + countBytes
	countBytes  = 3 // of a list or a string that fits an entry
	refBytes    = 5 + 5
	epochBytes  = binary.MaxVarintLen32
	timeBytes   = binary.MaxVarintLen64
)

// SizeBytes bounds what the group takes of an entry's body.
func (u *GroupUpdate) SizeBytes() int {
	n := countBytes + len(u.ID) + 1 + countBytes + len(u.Forget)*refBytes + countBytes
	if u.Set != nil {
		n += u.Set.SizeBytes()
	}
	for i := range u.Commit {
		n += u.Commit[i].SizeBytes()
	}
	return n
}

// SizeBytes is what the group takes but for its id and offsets.
func (i *Info) SizeBytes() int { return len(i.append(nil)) }

// SizeBytes bounds what the offset takes.
func (c *Committed) SizeBytes() int {
	n := refBytes + 1 + uvarintBytes(uint64(c.Offset)) + timeBytes
	if c.Epoch != noEpoch {
		n += epochBytes
	}
	if c.Metadata != "" {
		n += countBytes + len(c.Metadata)
	}
	if c.ExpireMS != noExpiry {
		n += timeBytes
	}
	return n
}

func uvarintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
