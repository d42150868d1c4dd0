package dynamo

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Attributes of one letter each, as their names are paid for too. None is a
// reserved word, so expressions name them as they are.
const (
	attrPartition = "p" // "l/" and a ledger's name, or "r" for every register
	attrSort      = "s" // seq, 8 bytes big-endian, or a register's key
	attrNonce     = "n"
	attrData      = "d"
	attrFloor     = "f" // of a ledger's slot 0 alone, which is no slot
	attrVersion   = "v" // of registers
	attrExpiry    = "t" // of tombstones alone: when DynamoDB removes them
)

// registers is the partition key of all registers.
const registers = "r"

// tombstoneAge is how long a tombstone stays. The port asks for a day; the rest
// is for clocks that are wrong.
const tombstoneAge = 7 * 24 * time.Hour

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// bin is a binary attribute, also of no bytes: nil would be null, which is another type.
func bin(b []byte) types.AttributeValue {
	if b == nil {
		b = []byte{}
	}
	return &types.AttributeValueMemberB{Value: b}
}

func seqBytes(seq coordinator.Seq) []byte { return binary.BigEndian.AppendUint64(nil, uint64(seq)) }

// bytesOf is a binary attribute; nil if there is none.
func bytesOf(it item, name string) []byte {
	if b, ok := it[name].(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

// sizeBytes is what DynamoDB bills an item by: names and values. A number takes
// a byte for two digits, and one more.
func sizeBytes(it item) int {
	size := 0
	for name, value := range it {
		size += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += len(v.Value)/2 + 1
		}
	}
	return size
}

// Units that are billed: of a write each KiB begun, of a consistent read each 4 KiB.
func writeUnits(sizeBytes int) float64 { return float64(max(1, (sizeBytes+1<<10-1)>>10)) }
func readUnits(sizeBytes int) float64  { return float64(max(1, (sizeBytes+4<<10-1)>>12)) }

// checkLedger adds to the port's check that a ledger's name can be a partition key.
func checkLedger(name string, check error) error {
	if check == nil && !utf8.ValidString(name) {
		return fmt.Errorf("a ledger's name has to be UTF-8, unlike %q: %w", name, coordinator.ErrName)
	}
	return check
}

func slotKey(ledger string, seq coordinator.Seq) item {
	return item{attrPartition: str("l/" + ledger), attrSort: bin(seqBytes(seq))}
}

func encodeEntry(ledger string, e coordinator.Entry) item {
	it := slotKey(ledger, e.Seq)
	it[attrNonce], it[attrData] = bin(e.Nonce[:]), bin(e.Data)
	return it
}

func decodeEntry(it item) (coordinator.Entry, error) {
	seq, nonce := bytesOf(it, attrSort), bytesOf(it, attrNonce)
	data, ok := it[attrData].(*types.AttributeValueMemberB)
	if len(seq) != 8 || len(nonce) != len(coordinator.Nonce{}) || !ok {
		return coordinator.Entry{}, fmt.Errorf("slot %x with attributes %s: %w", seq, names(it), siltstone.ErrCorrupt)
	}
	return coordinator.Entry{
		Seq:   coordinator.Seq(binary.BigEndian.Uint64(seq)),
		Nonce: coordinator.Nonce(nonce),
		Data:  data.Value,
	}, nil
}

// decodeFloor reads a ledger's slot 0, which is not there before the first trim.
func decodeFloor(it item) (coordinator.Seq, error) {
	if len(it) == 0 {
		return 0, nil
	}
	floor := bytesOf(it, attrFloor)
	if len(floor) != 8 {
		return 0, fmt.Errorf("floor with attributes %s: %w", names(it), siltstone.ErrCorrupt)
	}
	return coordinator.Seq(binary.BigEndian.Uint64(floor)), nil
}

func registerKey(key string) item {
	return item{attrPartition: str(registers), attrSort: bin([]byte(key))}
}

func encodeRegister(key string, v coordinator.Value, now time.Time) item {
	it := registerKey(key)
	it[attrVersion], it[attrNonce] = str(string(v.Version)), bin(v.Nonce[:])
	if v.Deleted {
		it[attrExpiry] = &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(tombstoneAge).Unix(), 10)}
	} else {
		it[attrData] = bin(v.Data)
	}
	return it
}

// decodeRegister is the zero Value for no item.
func decodeRegister(it item) (coordinator.Value, error) {
	if len(it) == 0 {
		return coordinator.Value{}, nil
	}
	_, deleted := it[attrExpiry]
	version, ok := it[attrVersion].(*types.AttributeValueMemberS)
	nonce := bytesOf(it, attrNonce)
	data, held := it[attrData].(*types.AttributeValueMemberB)
	if !ok || version.Value == "" || len(nonce) != len(coordinator.Nonce{}) || held == deleted {
		return coordinator.Value{}, fmt.Errorf("register %q with attributes %s: %w", bytesOf(it, attrSort), names(it), siltstone.ErrCorrupt)
	}
	v := coordinator.Value{Version: coordinator.Version(version.Value), Nonce: coordinator.Nonce(nonce), Deleted: deleted}
	if held {
		v.Data = data.Value
	}
	return v, nil
}

// names are the attributes of an item, for an error.
func names(it item) []string { return slices.Sorted(maps.Keys(it)) }
