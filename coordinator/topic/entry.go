package topic

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
)

// Kinds of entries. 1 to 15 are of this package; the cluster ledger's other
// kinds of state take others.
const (
	KindCreate byte = 1 + iota
	KindDelete
	KindAddPartitions
	KindSetConfigs
	KindSetCluster
	KindProducerIDs
)

// Body is what an entry says. Decode is the inverse of Encode.
type Body interface {
	Kind() byte
	Encode() []byte
}

// CreateTopics makes topics. The fold gives them their short numbers.
type CreateTopics struct{ Topics []Created }

// Created is one new topic.
type Created struct {
	ID         siltstone.TopicID
	Name       string
	Partitions int32
	CreatedMS  int64
	Configs    map[string]string
}

// DeleteTopics ends topics.
type DeleteTopics struct{ IDs []siltstone.TopicID }

// AddedPartitions gives topics more partitions.
type AddedPartitions struct{ Topics []Grown }

// Grown is one topic and how many partitions it has from here on.
type Grown struct {
	ID    siltstone.TopicID
	Total int32
}

// SetConfigs replaces all of the own settings of topics.
type SetConfigs struct{ Topics []Configured }

// Configured is one topic and its settings.
type Configured struct {
	ID      siltstone.TopicID
	Configs map[string]string
}

// SetCluster replaces all of the cluster's own settings.
type SetCluster struct{ Configs map[string]string }

// TakenIDs takes a block of producer ids: whoever appended it, and nobody else,
// gives them out.
type TakenIDs struct {
	First int64
	Count int64
}

// Kind of the entry.
func (*CreateTopics) Kind() byte { return KindCreate }

// Kind of the entry.
func (*DeleteTopics) Kind() byte { return KindDelete }

// Kind of the entry.
func (*AddedPartitions) Kind() byte { return KindAddPartitions }

// Kind of the entry.
func (*SetConfigs) Kind() byte { return KindSetConfigs }

// Kind of the entry.
func (*SetCluster) Kind() byte { return KindSetCluster }

// Kind of the entry.
func (*TakenIDs) Kind() byte { return KindProducerIDs }

// Encode is the entry's body.
func (c *CreateTopics) Encode() []byte { return appendList(nil, c.Topics) }

// Encode is the entry's body.
func (d *DeleteTopics) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(d.IDs)))
	for _, id := range d.IDs {
		b = append(b, id[:]...)
	}
	return b
}

// Encode is the entry's body.
func (a *AddedPartitions) Encode() []byte { return appendList(nil, a.Topics) }

// Encode is the entry's body.
func (s *SetConfigs) Encode() []byte { return appendList(nil, s.Topics) }

// Encode is the entry's body.
func (s *SetCluster) Encode() []byte { return appendConfigs(nil, s.Configs) }

// Encode is the entry's body.
func (t *TakenIDs) Encode() []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(t.First)), uint64(t.Count))
}

func appendList[T interface{ append(b []byte) []byte }](b []byte, items []T) []byte {
	b = binary.AppendUvarint(b, uint64(len(items)))
	for _, item := range items {
		b = item.append(b)
	}
	return b
}

func (c Created) append(b []byte) []byte {
	b = wire.AppendString(append(b, c.ID[:]...), c.Name)
	b = binary.AppendUvarint(b, uint64(c.Partitions))
	b = binary.AppendVarint(b, c.CreatedMS)
	return appendConfigs(b, c.Configs)
}

func (g Grown) append(b []byte) []byte {
	return binary.AppendUvarint(append(b, g.ID[:]...), uint64(g.Total))
}

func (c Configured) append(b []byte) []byte {
	return appendConfigs(append(b, c.ID[:]...), c.Configs)
}

func appendConfigs(b []byte, configs map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(configs)))
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		b = wire.AppendString(wire.AppendString(b, name), configs[name])
	}
	return b
}

// Decode takes an entry's body apart. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for an unknown kind. Nothing points into body.
func Decode(kind byte, body []byte) (Body, error) {
	in := wire.NewReader(body)
	var b Body
	switch kind {
	case KindCreate:
		b = &CreateTopics{wire.List(in, idBytes+4, func() Created {
			return Created{readID(in), in.String(), readPartitions(in), in.Varint(), readConfigs(in)}
		})}
	case KindDelete:
		b = &DeleteTopics{wire.List(in, idBytes, func() siltstone.TopicID { return readID(in) })}
	case KindAddPartitions:
		b = &AddedPartitions{wire.List(in, idBytes+1, func() Grown { return Grown{readID(in), readPartitions(in)} })}
	case KindSetConfigs:
		b = &SetConfigs{wire.List(in, idBytes+1, func() Configured { return Configured{readID(in), readConfigs(in)} })}
	case KindSetCluster:
		b = &SetCluster{readConfigs(in)}
	case KindProducerIDs:
		b = &TakenIDs{int64(in.Uvarint(math.MaxInt64)), int64(in.Uvarint(math.MaxInt64))}
	default:
		return nil, fmt.Errorf("entry of kind %d: %w", kind, siltstone.ErrNewerFormat)
	}
	if err := in.Close(); err != nil {
		return nil, fmt.Errorf("%T: %w", b, err)
	}
	return b, nil
}

const idBytes = len(siltstone.TopicID{})

func readID(in *wire.Reader) (id siltstone.TopicID) {
	copy(id[:], in.Bytes(idBytes))
	return id
}

func readPartitions(in *wire.Reader) int32 { return int32(in.Uvarint(math.MaxInt32)) }

func readConfigs(in *wire.Reader) map[string]string {
	n := in.Count(2)
	if n == 0 {
		return nil
	}
	configs := map[string]string{}
	for range n {
		name := in.String()
		configs[name] = in.String()
	}
	return configs
}
