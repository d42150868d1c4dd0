package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// requestAttacks are of those who ask for what costs much.
var requestAttacks = []attack{
	{"bombs", func(t *testing.T, a *attacker) {
		w := a.server.dial(t)
		a.server.topicOnce(t, "bombs")
		topic := w.topic("bombs")
		var bombs [][]byte
		for _, codec := range []batch.Codec{batch.Gzip, batch.LZ4, batch.Zstd, batch.Snappy} {
			bombs = append(bombs, bomb(t, codec))
		}
		a.every(500*time.Millisecond, func(i int) {
			want := "MESSAGE_TOO_LARGE"
			if i%len(bombs) == 3 {
				want = "" // snappy cannot make it large enough
			}
			resp := ask[*kmsg.ProduceResponse](w, 9, produceTo(topic, 0, bombs[i%len(bombs)]))
			if got := errorName(resp.Topics[0].Partitions[0].ErrorCode); got != want {
				t.Errorf("bomb %d is answered %q", i%len(bombs), got)
			}
		})
	}},
	{"member ids in new groups", func(t *testing.T, a *attacker) {
		w := a.server.dial(t)
		group := 0
		join := func(n int) {
			var asked []kmsg.Request
			for range n {
				q := kmsg.NewPtrJoinGroupRequest()
				q.Group, q.ProtocolType, q.SessionTimeoutMillis = fmt.Sprintf("group %d of %p", group, a), "consumer", 1_800_000
				q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, 100)}}
				q.SetVersion(5)
				w.send(q)
				asked = append(asked, q)
				group++
			}
			for _, q := range asked {
				if got := errorName(w.receive(q).(*kmsg.JoinGroupResponse).ErrorCode); got != "MEMBER_ID_REQUIRED" {
					t.Fatalf("group %d: %q", group, got)
				}
			}
		}
		for group < count(50_000, 100_000) {
			join(100)
		}
		a.every(20*time.Millisecond, func(int) { join(10) })
	}},
	{"producer ids", func(t *testing.T, a *attacker) {
		w := a.server.dial(t)
		a.server.topicOnce(t, "ids")
		topic := w.topic("ids")
		a.every(20*time.Millisecond, func(int) {
			id := ask[*kmsg.InitProducerIDResponse](w, 4, kmsg.NewPtrInitProducerIDRequest()).ProducerID
			b := batch.NewBuilder(batch.None, 0)
			b.Append(value("x"))
			b.Header.ProducerID, b.Header.ProducerEpoch, b.Header.BaseSequence = id, 0, 0
			made, err := b.Build()
			if err != nil {
				t.Error(err)
				return
			}
			w.mustProduce(topic, 0, made)
		})
	}},
	{"ten thousand topics", func(t *testing.T, a *attacker) {
		w := a.server.dial(t)
		begin := time.Now()
		if len(w.topicNames()) < 10_000 {
			for i := range 100 {
				names := make([]string, 100)
				for j := range names {
					names[j] = fmt.Sprintf("topic-%d-%d", i, j)
				}
				if errs := w.createTopics(7, names...); slices.ContainsFunc(errs, func(e string) bool { return e != "" }) {
					t.Fatalf("create topics: %q", errs)
				}
			}
			t.Logf("made in %v", time.Since(begin).Round(time.Millisecond))
		}
		begin = time.Now()
		n := len(w.topicNames())
		t.Logf("%d are listed in %v", n, time.Since(begin).Round(time.Millisecond))
		if n < 10_000 {
			t.Fatalf("%d topics", n)
		}
		a.every(500*time.Millisecond, func(int) { w.topicNames() })
	}},
}

func (s *server) topicOnce(t *testing.T, name string) {
	t.Helper()
	if s.dial(t).metadata(name).Topics[0].ErrorCode != 0 {
		s.cli(t, "", "topic", "create", name)
	}
}

// bomb is a batch of less than a megabyte that comes to 200 of them.
func bomb(t *testing.T, codec batch.Codec) []byte {
	t.Helper()
	size := 200_000_000
	if codec == batch.Snappy {
		size = 20_000_000 // it makes no less than a twentieth of anything
	}
	return batchOf(t, codec, batch.Record{Timestamp: time.Now().UnixMilli(), Value: bytes.Repeat([]byte{0}, size)})
}
