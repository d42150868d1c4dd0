package kafka

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func produceRequests() map[string]*kmsg.ProduceRequest {
	build := func(topics ...[]int) *kmsg.ProduceRequest {
		q := kmsg.NewPtrProduceRequest()
		q.Acks, q.TimeoutMillis = -1, 1500
		for i, partitions := range topics {
			t := kmsg.NewProduceRequestTopic()
			t.Topic, t.TopicID = fmt.Sprint("topic-", i), [16]byte{byte(i), 1}
			for _, p := range partitions {
				rp := kmsg.NewProduceRequestTopicPartition()
				rp.Partition = int32(p)
				if p != 3 { // whose records are null
					rp.Records = bytes.Repeat([]byte{byte(p)}, p*100)
				}
				t.Partitions = append(t.Partitions, rp)
			}
			q.Topics = append(q.Topics, t)
		}
		return q
	}
	tagged := build([]int{1})
	tagged.UnknownTags.Set(7, []byte("x"))
	tagged.Topics[0].UnknownTags.Set(200, bytes.Repeat([]byte{1}, 300))
	tagged.Topics[0].Partitions[0].UnknownTags.Set(0, nil)
	id := "transaction"
	transactional := build([]int{0, 2}, nil, []int{3})
	transactional.TransactionID = &id
	return map[string]*kmsg.ProduceRequest{
		"nothing": build(), "one": build([]int{2}), "many": build([]int{0, 1, 2, 3}, []int{}, []int{5}),
		"tagged": tagged, "transactional": transactional,
	}
}

// wantLikeKmsg decodes a body both ways.
func wantLikeKmsg(t *testing.T, version int16, body []byte) {
	t.Helper()
	q := kmsg.NewPtrProduceRequest()
	q.SetVersion(version)
	var got produceRequest
	wantErr, err := q.ReadFrom(body), decodeProduce(&got, version, 9, body)
	if (wantErr == nil) != (err == nil) {
		t.Fatalf("v%d: %v, and kmsg says %v", version, err, wantErr)
	}
	if err != nil {
		return
	}
	if got.acks != q.Acks || got.timeoutMS != q.TimeoutMillis {
		t.Errorf("v%d: acks %d, timeout %d", version, got.acks, got.timeoutMS)
	}
	i := 0
	for _, topic := range q.Topics {
		for _, p := range topic.Partitions {
			g := got.parts[i]
			i++
			if g.topic != topic.Topic || g.topicID != topic.TopicID || g.partition != p.Partition ||
				!bytes.Equal(g.records, p.Records) {
				t.Errorf("v%d: part %d is %+v, want %s %x %+v", version, i, g, topic.Topic, topic.TopicID, p)
			}
		}
	}
	if i != len(got.parts) {
		t.Errorf("v%d: %d parts, want %d", version, len(got.parts), i)
	}
}

func TestDecodeProduce(t *testing.T) {
	for name, q := range produceRequests() {
		t.Run(name, func(t *testing.T) {
			for version := range q.MaxVersion() + 1 {
				q.SetVersion(version)
				body := q.AppendTo(nil)
				wantLikeKmsg(t, version, body)
				for cut := range min(len(body), 400) {
					wantLikeKmsg(t, version, body[:cut])
				}
			}
		})
	}
}

// TestDecodeProduceCounts: more partitions than could have a batch each are
// refused before they take memory.
func TestDecodeProduceCounts(t *testing.T) {
	q := kmsg.NewPtrProduceRequest()
	q.SetVersion(9)
	topic := kmsg.NewProduceRequestTopic()
	topic.Partitions = make([]kmsg.ProduceRequestTopicPartition, 1_000_000)
	q.Topics = append(q.Topics, topic)
	body := q.AppendTo(nil)
	var got produceRequest
	if err := decodeProduce(&got, 9, 9, body); err == nil {
		t.Fatalf("%d parts out of %d bytes", len(got.parts), len(body))
	}
	if limit := len(body)/61 + 2; cap(got.parts) > 2*limit {
		t.Errorf("room for %d parts was made, and %d fit", cap(got.parts), limit)
	}
}

func FuzzDecodeProduce(f *testing.F) {
	for _, q := range produceRequests() {
		for _, version := range []int16{2, 3, 8, 9, 12, 13} {
			q.SetVersion(version)
			f.Add(version, q.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 0 || version > 13 || len(body) > 10_000 { // few enough parts for the rule of TestDecodeProduceCounts
			t.Skip()
		}
		wantLikeKmsg(t, version, body)
	})
}
