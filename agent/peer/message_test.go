package peer

import (
	"errors"
	"reflect"
	"testing"

	"github.com/siltstone-io/siltstone"
)

func TestMessagesComeBack(t *testing.T) {
	for _, m := range []Message{
		&Status{Cluster: 7, Opened: 6, Logs: []Led{{Shard: 3, Epoch: 2}}, Groups: []Led{{Shard: 15, Epoch: 9}}},
		&Entries{Ledger: "cluster", Entries: []Entry{{Seq: 1, Nonce: []byte{1}, Data: []byte{0, 255}}}},
		&Offer{Shard{Group: true, Shard: 4}},
		&Accept{Shard{Shard: 4}},
		&Handed{Shard{Shard: 15}},
		&Open{Shard: 3, Epoch: 4, Stream: 5, Seq: 6},
		&Batches{Shard: 3, Stream: 5, Cluster: 7, Number: 8, Batches: []Batch{{siltstone.TopicPartition{Topic: siltstone.TopicID{1, 2}, Partition: 4}, []byte("abc")}, {siltstone.TopicPartition{}, []byte("d")}}},
		&Ack{Shard: 3, Stream: 5, Number: 9},
		&Refuse{Shard: 3, Stream: 5, Epoch: 6},
	} {
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%T: %+v, %v", m, got, err)
		}
		if _, err := Decode(b[:len(b)-1]); !errors.Is(err, errMalformed) {
			t.Errorf("%T cut short: %v", m, err)
		}
	}
	if _, err := Decode([]byte{200}); !errors.Is(err, ErrUnknownKind) {
		t.Error(err)
	}
	if _, err := Decode(nil); !errors.Is(err, errMalformed) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range []Message{
		&Status{}, &Entries{}, &Offer{}, &Accept{}, &Handed{}, &Open{}, &Refuse{}, &Ack{}, &Batches{}, &Batches{Number: 1, Batches: []Batch{{Bytes: []byte("x")}}},
	} {
		b, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if _, err := Encode(m); err != nil {
			t.Error(err)
		}
	})
}
