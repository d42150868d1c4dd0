package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
)

// A message is its kind, one byte, and a body. Those that are rare are JSON.
// A kind that is not known is passed over: what a message says can be lost anyway.

// kind of a message.
type kind byte

const (
	kindStatus  kind = 1
	kindEntries kind = 2
	kindOffer   kind = 3
	kindAccept  kind = 4
	kindHanded  kind = 5
	kindOpen    kind = 6
	kindBatches kind = 7
	kindAck     kind = 8
	kindRefuse  kind = 9
)

// Errors of Decode.
var (
	// ErrUnknownKind is a message of a newer release.
	ErrUnknownKind = errors.New("message of an unknown kind")
	errMalformed   = errors.New("malformed message")
)

// A Message is one of Status, Entries, Offer, Accept, Handed, Open, Batches, Ack
// and Refuse.
type Message interface{ kind() kind }

// Status is what an agent says of itself: to everybody when it changes, and to
// who has just been connected to.
type Status struct {
	// Cluster is the last entry of the cluster's ledger that it has folded.
	Cluster uint64 `json:"cluster"`
	// Opened: it has folded so much, and all partitions of that which are its
	// own to open are open.
	Opened uint64 `json:"opened"`
	// Logs and Groups are the shards that it leads.
	Logs   []Led `json:"logs"`
	Groups []Led `json:"groups"`
}

// Led is a shard, and the epoch in which it is led.
type Led struct {
	Shard int             `json:"shard"`
	Epoch siltstone.Epoch `json:"epoch"`
}

// Entries are settled entries of a ledger, without a hole between them.
type Entries struct {
	Ledger  string  `json:"ledger"`
	Entries []Entry `json:"entries"`
}

// Entry is an entry as the coordinator has it.
type Entry struct {
	Seq   uint64 `json:"seq"`
	Nonce []byte `json:"nonce"`
	Data  []byte `json:"data"`
}

// A Shard is a log shard, or one of groups.
type Shard struct {
	Group bool `json:"group"`
	Shard int  `json:"shard"`
}

// Offer asks an agent whether it would lead a shard, which it is to read until
// then. It answers with Accept.
type Offer struct{ Shard }

// Accept says that whoever sends it has read the shard, and would lead it.
type Accept struct{ Shard }

// Handed says that a Lead names the receiver, as it has accepted.
type Handed struct{ Shard }

func (*Status) kind() kind  { return kindStatus }
func (*Entries) kind() kind { return kindEntries }
func (*Offer) kind() kind   { return kindOffer }
func (*Accept) kind() kind  { return kindAccept }
func (*Handed) kind() kind  { return kindHanded }

// Encode is a message as it is sent.
func Encode(m Message) ([]byte, error) {
	switch m := m.(type) {
	case *Batches:
		return slices.Concat(m.Pieces()...), nil
	case *Ack:
		return m.encode(), nil
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return append([]byte{byte(m.kind())}, body...), nil
}

// Decode reads a message.
func Decode(b []byte) (m Message, err error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errMalformed)
	}
	switch kind(b[0]) {
	case kindStatus:
		m = &Status{}
	case kindEntries:
		m = &Entries{}
	case kindOffer:
		m = &Offer{}
	case kindAccept:
		m = &Accept{}
	case kindHanded:
		m = &Handed{}
	case kindOpen:
		m = &Open{}
	case kindRefuse:
		m = &Refuse{}
	case kindBatches:
		return decodeBatches(b)
	case kindAck:
		return decodeAck(b)
	default:
		return nil, fmt.Errorf("%w: %d", ErrUnknownKind, b[0])
	}
	if err := json.Unmarshal(b[1:], m); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return m, nil
}
