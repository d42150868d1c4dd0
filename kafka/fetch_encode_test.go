package kafka

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic/topictest"
)

// sink is a connection that keeps what is written.
type sink struct {
	net.Conn
	written bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error)      { return s.written.Write(b) }
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func newOutbox(t testing.TB) (*outbox, *sink) {
	t.Helper()
	o := Options{Log: newFakeLog(), Groups: &fakeGroups{}, Admin: &fakeAdmin{}, Topics: topictest.New(), Cluster: newFakeCluster(), Random: func() uint64 { return 1 }}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &sink{}
	return &outbox{server: s, conn: w}, w
}

// TestFetchAnswer: what is spliced together is kmsg's encoding, byte for byte,
// in every version.
func TestFetchAnswer(t *testing.T) {
	id, other := siltstone.TopicID{1, 2, 3}, siltstone.TopicID{4}
	part := func(topic string, id siltstone.TopicID, partition int32) *fetchedPart {
		return &fetchedPart{
			want:          &fetchPartition{fetchKey: fetchKey{topic, id, partition}},
			highWatermark: 100, lastStable: 99, logStart: 3, divergingEpoch: -1, divergingEnd: -1, leader: -1, leaderEpoch: -1,
		}
	}
	data := part("one", id, 0)
	data.records, data.recordBytes = [][]byte{bytes.Repeat([]byte{7}, 300), {8, 9}}, 302
	empty := part("one", id, 5)
	diverged := part("two", other, 0)
	diverged.divergingEpoch, diverged.divergingEnd = 4, 77
	elsewhere := part("one", id, 1)
	elsewhere.code, elsewhere.leader, elsewhere.leaderEpoch = kerr.NotLeaderForPartition.Code, 1, 8

	nodes := []*Node{{ID: 1, Host: "b", Port: 9092, Rack: "z"}, {ID: 2, Host: "c", Port: 9093}}
	tests := map[string]*fetched{
		"nothing":       {sessionID: 5},
		"session error": {code: kerr.FetchSessionIDNotFound.Code},
		"one":           {parts: []*fetchedPart{data}},
		"committed":     {parts: []*fetchedPart{data, empty}, isolation: siltstone.ReadCommitted, sessionID: 1 << 30},
		"many":          {parts: []*fetchedPart{data, empty, diverged, elsewhere}, nodes: nodes},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			for version := int16(4); version <= kmsg.NewPtrFetchRequest().MaxVersion(); version++ {
				out, w := newOutbox(t)
				r := &request{api: out.server.api(1), version: version, correlation: 12345, arrived: time.Now()}
				out.fetch(r, f)
				if err := out.flush(); err != nil {
					t.Fatal(err)
				}
				q := kmsg.NewPtrFetchRequest()
				q.SetVersion(version)
				body := q.ResponseKind().(*kmsg.FetchResponse)
				fill(body, f)
				want := []byte{0, 0, 0, 0, 0, 0, 0x30, 0x39}
				if q.IsFlexible() {
					want = append(want, 0)
				}
				want = body.AppendTo(want)
				want[0], want[1], want[2], want[3] = 0, 0, byte((len(want)-4)>>8), byte(len(want)-4)
				if !bytes.Equal(w.written.Bytes(), want) {
					t.Errorf("v%d:\n got %x\nwant %x", version, w.written.Bytes(), want)
				}
			}
		})
	}
}

// fill says the same with kmsg's structs.
func fill(resp *kmsg.FetchResponse, f *fetched) {
	resp.ErrorCode, resp.SessionID = f.code, f.sessionID
	for i, p := range f.parts {
		if i == 0 || !sameTopic(f.parts[i-1], p) {
			rt := kmsg.NewFetchResponseTopic()
			rt.Topic, rt.TopicID = p.want.topic, p.want.topicID
			resp.Topics = append(resp.Topics, rt)
		}
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.Partition, rp.ErrorCode, rp.RecordBatches = p.want.partition, p.code, bytes.Join(p.records, nil)
		rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = int64(p.highWatermark), int64(p.lastStable), int64(p.logStart)
		rp.PreferredReadReplica = -1
		if rp.RecordBatches == nil {
			rp.RecordBatches = []byte{}
		}
		if f.isolation == siltstone.ReadCommitted {
			rp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		}
		rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = int32(p.divergingEpoch), int64(p.divergingEnd)
		rp.CurrentLeader.LeaderID, rp.CurrentLeader.LeaderEpoch = p.leader, int32(p.leaderEpoch)
		rt := &resp.Topics[len(resp.Topics)-1]
		rt.Partitions = append(rt.Partitions, rp)
	}
	if resp.Version >= 16 {
		for _, n := range f.nodes {
			b := kmsg.NewFetchResponseBroker()
			b.NodeID, b.Host, b.Port, b.Rack = n.ID, n.Host, n.Port, n.rack()
			resp.Brokers = append(resp.Brokers, b)
		}
	}
}

// TestOutboxPieces: several answers with spliced records, larger than a piece,
// come out whole and in order, and what was spliced is given back once.
func TestOutboxPieces(t *testing.T) {
	out, w := newOutbox(t)
	released := 0
	var want []byte
	for i := range 3 {
		records := [][]byte{bytes.Repeat([]byte{byte(i)}, 3*pieceBytes+17), {0xff}, bytes.Repeat([]byte{0xee}, pieceBytes)}
		out.buf = append(out.buf, 'a', byte(i))
		out.splice(records, len(records[0])+len(records[1])+len(records[2]))
		out.buf = append(out.buf, 'z')
		out.release = append(out.release, func() { released++ })
		want = append(append(want, 'a', byte(i)), bytes.Join(records, nil)...)
		want = append(want, 'z')
	}
	if err := out.flush(); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(&w.written)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d, or not the same", len(got), len(want))
	}
	if released != 3 {
		t.Errorf("given back %d times, want 3", released)
	}
	if len(out.buf)+len(out.splices)+len(out.release)+len(out.vectored) != 0 {
		t.Error("the outbox is not empty")
	}
}
