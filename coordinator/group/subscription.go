package group

import (
	"encoding/binary"
	"unicode/utf8"
)

// consumerType is the protocol type of consumers, whose metadata says which
// topics they read.
const consumerType = "consumer"

// subscriptions are the topics that the members of a generation read.
type subscriptions struct {
	unknown bool // and may be any
	numbers map[uint32]bool
}

func (s *subscriptions) topic(number uint32) bool { return s.unknown || s.numbers[number] }

// subscriptions is of the generation that is folded.
func (g *classic) subscriptions() *subscriptions {
	s := &subscriptions{numbers: map[uint32]bool{}}
	f := g.folded()
	if f == nil || f.Type != consumerType {
		return s
	}
	for i := range f.Members {
		topics, ok := subscribedTopics(f.Members[i].Subscription)
		if !ok {
			s.unknown = true
			return s
		}
		for _, name := range topics {
			if number, ok := g.m.o.Topic(name); ok {
				s.numbers[number] = true
			}
		}
	}
	return s
}

// subscribedTopics reads what all versions of the consumer protocol's
// subscription begin with: the version, and the topics' names.
func subscribedTopics(b []byte) (topics []string, ok bool) {
	if len(b) < 2+4 {
		return nil, false
	}
	version, n := int16(binary.BigEndian.Uint16(b)), int32(binary.BigEndian.Uint32(b[2:]))
	if version < 0 || n < 0 {
		return nil, false
	}
	b = b[2+4:]
	for ; n > 0; n-- {
		if len(b) < 2 {
			return nil, false
		}
		size := int(int16(binary.BigEndian.Uint16(b)))
		if b = b[2:]; size < 0 || size > len(b) || !utf8.Valid(b[:size]) {
			return nil, false
		}
		topics, b = append(topics, string(b[:size])), b[size:]
	}
	return topics, true
}
