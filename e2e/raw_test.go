package e2e

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// raw is a connection for what no client can be made to send.
type raw struct {
	t    *testing.T
	conn net.Conn
	next int32
}

func (s *server) dial(t *testing.T) *raw {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.kafka)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &raw{t: t, conn: conn}
}

func (c *raw) send(req kmsg.Request) {
	c.t.Helper()
	c.next++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("e2e")).AppendRequest(nil, req, c.next)
	if _, err := c.conn.Write(frame); err != nil {
		c.t.Fatal(err)
	}
}

// receive is the body of the next answer, or io.EOF where the server closed.
func (c *raw) receive() ([]byte, error) {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != c.next {
		c.t.Fatalf("answer %d to request %d", got, c.next)
	}
	return body[4:], nil
}

// ask sends a request of a version, and decodes its answer.
func ask[R kmsg.Response](c *raw, version int16, req kmsg.Request) R {
	c.t.Helper()
	req.SetVersion(version)
	c.send(req)
	body, err := c.receive()
	if err != nil {
		c.t.Fatal(err)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		body = body[1:] // no tags
	}
	if err := resp.ReadFrom(body); err != nil {
		c.t.Fatal(err)
	}
	return resp.(R)
}

// closed says that the server hangs up.
func (c *raw) closed() bool {
	_, err := c.receive()
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// records builds a batch.
func records(t *testing.T, codec batch.Codec, rs ...batch.Record) []byte {
	t.Helper()
	b := batch.NewBuilder(codec, 0)
	for _, r := range rs {
		b.Append(r)
	}
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// produce sends one batch to a partition with acks=all.
func (c *raw) produce(version int16, topic string, partition int32, b []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, int32(patience/time.Millisecond)
	rt, rp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	rt.Topic, rp.Partition, rp.Records = topic, partition, b
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.ProduceResponse](c, version, req).Topics[0].Partitions[0]
}

// fetchFrom reads partition 0 of topics from the beginning.
func (c *raw) fetchFrom(version int16, maxBytes int32, topics ...string) []kmsg.FetchResponseTopic {
	c.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 1000, 1, maxBytes
	for _, topic := range topics {
		rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		rt.Topic, rp.PartitionMaxBytes = topic, maxBytes
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	return ask[*kmsg.FetchResponse](c, version, req).Topics
}
