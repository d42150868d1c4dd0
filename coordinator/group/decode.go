package group

import (
	"bytes"
	"fmt"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
)

// Decode takes an entry's body apart. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for an unknown kind. Nothing points into body.
func Decode(kind byte, body []byte) (Body, error) {
	in := wire.NewReader(body)
	var b Body
	switch kind {
	case KindLead:
		b = &Lead{Epoch: readEpoch(in), Leader: siltstone.Incarnation(in.Uint64())}
	case KindUpdate:
		u := &Update{Epoch: readEpoch(in), Writer: siltstone.Incarnation(in.Uint64())}
		u.Groups = wire.List(in, 2, func() GroupUpdate { return readGroup(in) })
		b = u
	default:
		return nil, fmt.Errorf("entry of kind %d: %w", kind, siltstone.ErrNewerFormat)
	}
	if err := in.Close(); err != nil {
		return nil, fmt.Errorf("%T: %w", b, err)
	}
	return b, nil
}

func readEpoch(in *wire.Reader) siltstone.Epoch { return siltstone.Epoch(in.Uvarint(math.MaxInt32)) }

// readFlags reads a byte with no other bits than those of known.
func readFlags(in *wire.Reader, known byte) byte {
	f := in.Byte()
	if f&^known != 0 {
		in.Fail("flags %08b", f)
	}
	return f
}

func readInt32(in *wire.Reader) int32 {
	v := in.Varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		in.Fail("%d in 32 bits", v)
	}
	return int32(v)
}

// readBytes reads a string as bytes of its own; nil if it is empty.
func readBytes(in *wire.Reader) []byte {
	n := in.Count(1)
	if n == 0 {
		return nil
	}
	return bytes.Clone(in.Bytes(n))
}

func readGroup(in *wire.Reader) GroupUpdate {
	u := GroupUpdate{ID: in.String()}
	flags := readFlags(in, updateFlags)
	u.Delete = flags&deletes != 0
	if flags&sets != 0 {
		info := readInfo(in)
		u.Set = &info
	}
	if flags&forgets != 0 {
		at := newRefs()
		u.Forget = wire.List(in, 2, func() TopicPartition { return at.read(in) })
	}
	if flags&commits != 0 {
		u.Commit = readCommits(in)
	}
	return u
}

func readInfo(in *wire.Reader) Info {
	i := Info{Type: in.String(), Generation: int32(in.Uvarint(math.MaxInt32))}
	i.Assigned = readFlags(in, infoFlags)&assigned != 0
	i.ChangedMS, i.Protocol = in.Varint(), in.String()
	var last Member
	i.Members = wire.List(in, 3, func() Member {
		last = readMember(in, last)
		return last
	})
	if leader := in.Uvarint(uint64(len(i.Members))); leader > 0 {
		i.Leader = i.Members[leader-1].ID
	}
	return i
}

func readMember(in *wire.Reader, last Member) Member {
	m := Member{ID: in.String()}
	flags := readFlags(in, memberFlags)
	if flags&hasInstance != 0 {
		instance := in.String()
		m.Instance = &instance
	}
	if m.ClientID = last.ClientID; flags&sameClient == 0 {
		m.ClientID = in.String()
	}
	if m.ClientHost = last.ClientHost; flags&sameHost == 0 {
		m.ClientHost = in.String()
	}
	if m.SessionMS, m.RebalanceMS = last.SessionMS, last.RebalanceMS; flags&sameTimeouts == 0 {
		m.SessionMS, m.RebalanceMS = readInt32(in), readInt32(in)
	}
	if m.Subscription = last.Subscription; flags&sameSubscription == 0 {
		m.Subscription = readBytes(in)
	}
	m.Assignment = readBytes(in)
	return m
}

func readCommits(in *wire.Reader) []Committed {
	at, timeMS := newRefs(), int64(0)
	return wire.List(in, 5, func() Committed {
		c := Committed{TopicPartition: at.read(in), Epoch: noEpoch, ExpireMS: noExpiry}
		flags := readFlags(in, commitFlags)
		c.Offset = int64(in.Uvarint(math.MaxInt64))
		timeMS = int64(uint64(timeMS) + uint64(in.Varint()))
		c.TimeMS = timeMS
		if flags&hasEpoch != 0 {
			c.Epoch = readInt32(in)
		}
		if flags&hasMetadata != 0 {
			c.Metadata = in.String()
		}
		if flags&hasExpiry != 0 {
			c.ExpireMS = in.Varint()
		}
		return c
	})
}

func (r *refs) read(in *wire.Reader) TopicPartition {
	topic := r.topic + boundedStep(in)
	if topic < 0 || topic > math.MaxUint32 {
		in.Fail("topic number %d", topic)
		return TopicPartition{}
	}
	if topic != r.topic {
		r.partition = -1
	}
	partition := r.partition + 1 + boundedStep(in)
	if partition < 0 || partition > math.MaxInt32 {
		in.Fail("partition %d", partition)
		return TopicPartition{}
	}
	r.topic, r.partition = topic, partition
	return TopicPartition{Topic: uint32(topic), Partition: int32(partition)}
}

// boundedStep reads a distance, small enough that no sum overflows.
func boundedStep(in *wire.Reader) int64 {
	v := in.Varint()
	if v < -math.MaxUint32 || v > math.MaxUint32 {
		in.Fail("a step of %d", v)
		return 0
	}
	return v
}
