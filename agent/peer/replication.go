package peer

import (
	"encoding/binary"
	"fmt"

	"github.com/siltstone-io/siltstone"
)

// Messages of replication. A leader sends Open, Batches and Entries to a
// replica on the bulk lane, in this order; Ack and Refuse come back.

// Open begins a stream: from here on, its batches are of the epoch. All that the
// leader has not flushed comes first, then what it takes.
type Open struct {
	Shard  int             `json:"shard"`
	Epoch  siltstone.Epoch `json:"epoch"`
	Stream uint64          `json:"stream"` // the leader never gives another the same
	// Seq is the last entry of the shard's ledger that the leader has folded.
	Seq uint64 `json:"seq"`
}

// Refuse says that the receiver's stream has ended at the sender, which has seen
// the epoch: a newer one than the stream's, or its own, if it could not go on.
type Refuse struct {
	Shard  int             `json:"shard"`
	Stream uint64          `json:"stream"`
	Epoch  siltstone.Epoch `json:"epoch"`
}

// Batches are record batches as their leader has stamped them, in the order in
// which it took them.
type Batches struct {
	Shard   int
	Stream  uint64
	Cluster uint64 // the last entry of the cluster's ledger that the leader has folded
	// Number is to be acknowledged once these and all before them are held; 0: nothing is.
	Number  uint64
	Batches []Batch
}

// Batch is one record batch of a partition.
type Batch struct {
	Partition siltstone.TopicPartition
	Bytes     []byte
}

// Ack says that the sender holds all of a stream up to a number.
type Ack struct {
	Shard          int
	Stream, Number uint64
}

func (*Open) kind() kind    { return kindOpen }
func (*Batches) kind() kind { return kindBatches }
func (*Ack) kind() kind     { return kindAck }
func (*Refuse) kind() kind  { return kindRefuse }

const (
	batchesHead = 1 + 4 + 8 + 8 + 8 // kind, shard, stream, cluster, number
	batchHead   = 16 + 4 + 4        // topic, partition, bytes that follow
	ackBytes    = 1 + 4 + 8 + 8
)

// Pieces are the message as it is sent; the batches' bytes are not copied.
func (m *Batches) Pieces() [][]byte {
	head := make([]byte, 0, batchesHead+batchHead*len(m.Batches))
	head = append(head, byte(kindBatches))
	head = binary.BigEndian.AppendUint32(head, uint32(m.Shard))
	head = binary.BigEndian.AppendUint64(head, m.Stream)
	head = binary.BigEndian.AppendUint64(head, m.Cluster)
	head = binary.BigEndian.AppendUint64(head, m.Number)
	pieces, from := make([][]byte, 0, 1+2*len(m.Batches)), 0
	for i := range m.Batches {
		b := &m.Batches[i]
		head = append(head, b.Partition.Topic[:]...)
		head = binary.BigEndian.AppendUint32(head, uint32(b.Partition.Partition))
		head = binary.BigEndian.AppendUint32(head, uint32(len(b.Bytes)))
		pieces = append(pieces, head[from:len(head):len(head)], b.Bytes)
		from = len(head)
	}
	if len(pieces) == 0 {
		pieces = append(pieces, head)
	}
	return pieces
}

func decodeBatches(b []byte) (*Batches, error) {
	if len(b) < batchesHead {
		return nil, fmt.Errorf("%w: %d bytes of batches", errMalformed, len(b))
	}
	m := &Batches{
		Shard: int(binary.BigEndian.Uint32(b[1:])), Stream: binary.BigEndian.Uint64(b[5:]),
		Cluster: binary.BigEndian.Uint64(b[13:]), Number: binary.BigEndian.Uint64(b[21:]),
	}
	for rest := b[batchesHead:]; len(rest) > 0; {
		if len(rest) < batchHead {
			return nil, fmt.Errorf("%w: %d bytes before a batch", errMalformed, len(rest))
		}
		n := binary.BigEndian.Uint32(rest[20:])
		if uint64(n) > uint64(len(rest)-batchHead) {
			return nil, fmt.Errorf("%w: a batch of %d bytes, %d are left", errMalformed, n, len(rest)-batchHead)
		}
		one := Batch{Bytes: rest[batchHead : batchHead+int(n) : batchHead+int(n)]}
		copy(one.Partition.Topic[:], rest)
		one.Partition.Partition = int32(binary.BigEndian.Uint32(rest[16:]))
		m.Batches, rest = append(m.Batches, one), rest[batchHead+int(n):]
	}
	return m, nil
}

func (m *Ack) encode() []byte {
	b := append(make([]byte, 0, ackBytes), byte(kindAck))
	b = binary.BigEndian.AppendUint32(b, uint32(m.Shard))
	b = binary.BigEndian.AppendUint64(b, m.Stream)
	return binary.BigEndian.AppendUint64(b, m.Number)
}

func decodeAck(b []byte) (*Ack, error) {
	if len(b) != ackBytes {
		return nil, fmt.Errorf("%w: an ack of %d bytes", errMalformed, len(b))
	}
	return &Ack{
		Shard: int(binary.BigEndian.Uint32(b[1:])), Stream: binary.BigEndian.Uint64(b[5:]), Number: binary.BigEndian.Uint64(b[13:]),
	}, nil
}
