package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// keyBytes is a producer's number (4 bytes) and its record's (8): what tells a
// record that was read back from every other.
const keyBytes = 12

// payload makes records of one size, key and value together, whose values do
// not compress and are known again when they are read. It copies nothing:
// values point into one pool, so that making them costs the machine little.
type payload struct {
	pool        []byte
	recordBytes int
}

func newPayload(recordBytes int) payload {
	pool := make([]byte, 4<<20+recordBytes)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(pool)
	return payload{pool: pool, recordBytes: recordBytes}
}

func (p payload) key(producer uint32, number uint64) []byte {
	k := make([]byte, 0, keyBytes)
	k = binary.BigEndian.AppendUint32(k, producer)
	return binary.BigEndian.AppendUint64(k, number)
}

func (p payload) value(producer uint32, number uint64) []byte {
	// A prime step, so that neighbours differ.
	at := (uint64(producer)*1_000_003 + number*4_099) % (4 << 20)
	return p.pool[at : at+uint64(p.recordBytes-keyBytes)]
}

// identify says which record this is, or that its bytes are not what was produced.
func (p payload) identify(key, value []byte) (producer uint32, number uint64, err error) {
	if len(key) != keyBytes {
		return 0, 0, fmt.Errorf("a key of %d bytes, not %d", len(key), keyBytes)
	}
	producer, number = binary.BigEndian.Uint32(key), binary.BigEndian.Uint64(key[4:])
	if !bytes.Equal(value, p.value(producer, number)) {
		return 0, 0, fmt.Errorf("record %d of producer %d has another value than was produced", number, producer)
	}
	return producer, number, nil
}

// seen ticks off records that were read back.
type seen struct {
	bits    [][]uint64 // by producer, a bit per record
	missing int64
}

func newSeen(produced []uint64) *seen {
	s := &seen{}
	for _, n := range produced {
		s.bits = append(s.bits, make([]uint64, (n+63)/64))
		s.missing += int64(n)
	}
	return s
}

func (s *seen) tick(producer uint32, number uint64) error {
	if int(producer) >= len(s.bits) || number/64 >= uint64(len(s.bits[producer])) {
		return fmt.Errorf("record %d of producer %d was never produced", number, producer)
	}
	word, bit := &s.bits[producer][number/64], uint64(1)<<(number%64)
	if *word&bit != 0 {
		return fmt.Errorf("record %d of producer %d is there twice", number, producer)
	}
	*word |= bit
	s.missing--
	return nil
}
