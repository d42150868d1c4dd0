package group

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
)

// Kind of the entry.
func (*Lead) Kind() byte { return KindLead }

// Kind of the entry.
func (*Update) Kind() byte { return KindUpdate }

// Flags of a GroupUpdate: which of its parts follow.
const (
	deletes = 1 << iota
	sets
	forgets
	commits
	updateFlags = 1<<iota - 1
)

// Flags of an Info.
const (
	assigned  = 1 << iota
	infoFlags = 1<<iota - 1
)

// Flags of a Member: what it has, and what it shares with the one before it.
const (
	hasInstance = 1 << iota
	sameClient
	sameHost
	sameTimeouts
	sameSubscription
	memberFlags = 1<<iota - 1
)

// Flags of a Committed: which of its fields follow.
const (
	hasEpoch = 1 << iota
	hasMetadata
	hasExpiry
	commitFlags = 1<<iota - 1
)

// Encode is the entry's body.
func (l *Lead) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(l.Epoch))
	return binary.BigEndian.AppendUint64(b, uint64(l.Leader))
}

// Encode is the entry's body.
func (u *Update) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(u.Epoch))
	b = binary.BigEndian.AppendUint64(b, uint64(u.Writer))
	b = binary.AppendUvarint(b, uint64(len(u.Groups)))
	for i := range u.Groups {
		b = u.Groups[i].append(b)
	}
	return b
}

func (u *GroupUpdate) append(b []byte) []byte {
	b = wire.AppendString(b, u.ID)
	b = append(b, flag(u.Delete, deletes)|flag(u.Set != nil, sets)|
		flag(len(u.Forget) > 0, forgets)|flag(len(u.Commit) > 0, commits))
	if u.Set != nil {
		b = u.Set.append(b)
	}
	if len(u.Forget) > 0 {
		at := newRefs()
		b = binary.AppendUvarint(b, uint64(len(u.Forget)))
		for _, tp := range u.Forget {
			b = at.append(b, tp)
		}
	}
	if len(u.Commit) > 0 {
		b = appendCommits(b, u.Commit)
	}
	return b
}

func (i *Info) append(b []byte) []byte {
	b = wire.AppendString(b, i.Type)
	b = binary.AppendUvarint(b, uint64(i.Generation))
	b = append(b, flag(i.Assigned, assigned))
	b = binary.AppendVarint(b, i.ChangedMS)
	b = wire.AppendString(b, i.Protocol)
	b = binary.AppendUvarint(b, uint64(len(i.Members)))
	var last Member
	for _, m := range i.Members {
		b = m.append(b, last)
		last = m
	}
	return binary.AppendUvarint(b, i.leaderNumber())
}

// leaderNumber is which member leads, counted from 1; 0 if none does. One that
// is no member is past the last, which nobody takes for a leader.
func (i *Info) leaderNumber() uint64 {
	if i.Leader == "" {
		return 0
	}
	at := slices.IndexFunc(i.Members, func(m Member) bool { return m.ID == i.Leader })
	if at < 0 {
		at = len(i.Members)
	}
	return uint64(at) + 1
}

func (m *Member) append(b []byte, last Member) []byte {
	flags := flag(m.Instance != nil, hasInstance) |
		flag(m.ClientID == last.ClientID, sameClient) |
		flag(m.ClientHost == last.ClientHost, sameHost) |
		flag(m.SessionMS == last.SessionMS && m.RebalanceMS == last.RebalanceMS, sameTimeouts) |
		flag(bytes.Equal(m.Subscription, last.Subscription), sameSubscription)
	b = wire.AppendString(b, m.ID)
	b = append(b, flags)
	if flags&hasInstance != 0 {
		b = wire.AppendString(b, *m.Instance)
	}
	if flags&sameClient == 0 {
		b = wire.AppendString(b, m.ClientID)
	}
	if flags&sameHost == 0 {
		b = wire.AppendString(b, m.ClientHost)
	}
	if flags&sameTimeouts == 0 {
		b = binary.AppendVarint(binary.AppendVarint(b, int64(m.SessionMS)), int64(m.RebalanceMS))
	}
	if flags&sameSubscription == 0 {
		b = wire.AppendString(b, string(m.Subscription))
	}
	return wire.AppendString(b, string(m.Assignment))
}

// appendCommits appends offsets; in order of their partitions they take the least.
func appendCommits(b []byte, list []Committed) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	at, timeMS := newRefs(), int64(0)
	for i := range list {
		c := &list[i]
		b = at.append(b, c.TopicPartition)
		b = append(b, c.flags())
		b = binary.AppendUvarint(b, uint64(c.Offset))
		b = binary.AppendVarint(b, int64(uint64(c.TimeMS)-uint64(timeMS))) // wraps, both ways
		timeMS = c.TimeMS
		if c.Epoch != noEpoch {
			b = binary.AppendVarint(b, int64(c.Epoch))
		}
		if c.Metadata != "" {
			b = wire.AppendString(b, c.Metadata)
		}
		if c.ExpireMS != noExpiry {
			b = binary.AppendVarint(b, c.ExpireMS)
		}
	}
	return b
}

const (
	noEpoch  = -1
	noExpiry = -1
)

func (c *Committed) flags() byte {
	return flag(c.Epoch != noEpoch, hasEpoch) | flag(c.Metadata != "", hasMetadata) | flag(c.ExpireMS != noExpiry, hasExpiry)
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// refs writes or reads partitions, each as its distance from the one before it.
type refs struct{ topic, partition int64 }

func newRefs() refs { return refs{partition: -1} }

func (r *refs) append(b []byte, tp TopicPartition) []byte {
	b = binary.AppendVarint(b, int64(tp.Topic)-r.topic)
	if int64(tp.Topic) != r.topic {
		r.partition = -1
	}
	b = binary.AppendVarint(b, int64(tp.Partition)-r.partition-1)
	r.topic, r.partition = int64(tp.Topic), int64(tp.Partition)
	return b
}
