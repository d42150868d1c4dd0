package e2e

// Failures that users of systems like this one met and reported, as tests of
// the right behaviour against the running product: cases 1, 3, 4, 5, 6, 7, 9
// and 10 of the field reports, each with its kind (TestReport01Times and so on, in
// reports_*_test.go). The clients are kcat and franz-go, and raw requests where
// no client sends such a thing. TestKcatNulls, TestKcatLimits, TestFranzNulls and
// TestFranzFetchLimits have their share of cases 4 and 5, and http_reports_test.go
// the gateway's of case 4, beside case 34; what only the door sees
// is in kafka's own tests.
//
// Clauses of these cases that wait for what they need:
//
//   - consumer groups and more clients (issue 4): offsets_for_times of
//     confluent-kafka (1); timestamp types in delivery reports of
//     confluent-kafka, and rust-rdkafka 0.37 (3); null and empty between
//     kafka-python, aiokafka, kafkajs and Java (4); kafka-python 2.0.2 and
//     aiokafka on zstd topics beside a plain one, Java on recompressed snappy
//     (6); Java clients 2.4 and newest connect (7); an admin client of another
//     family describes a missing topic (10);
//   - S3 (issue 6): times are looked up after a flush to S3, not to a folder (1);
//   - the jobs (later): a zero-length value survives compaction and a null one
//     does not, a zero-length key is compacted (4).

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

var allCodecs = []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd}

// inEveryState runs a test of what was written while that is in memory, and
// again when it has to come from objects, after a stop in good order and after
// a kill -9. Then all of it is checked.
func inEveryState(t *testing.T, s *server, test func(*testing.T, *server)) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) { test(t, s) })
	s.stop(t)
	s = start(t, s.dir)
	t.Run("after a stop", func(t *testing.T) { test(t, s) })
	s.kill()
	s = start(t, s.dir)
	t.Run("after a kill", func(t *testing.T) { test(t, s) })
	s.stop(t)
	check(t, s.dir)
}

// admin is a client that asks for what it is told to, once.
func (s *server) admin(t *testing.T) *kadm.Client {
	t.Helper()
	return kadm.NewClient(s.franz(t))
}

// node is the server's node id, as clients know it.
func (s *server) node(t *testing.T) string {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	brokers, err := admin.ListBrokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range brokers {
		if net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))) == s.kafka {
			return strconv.Itoa(int(b.NodeID))
		}
	}
	t.Fatalf("%s is not among %v", s.kafka, brokers)
	return ""
}

// setConfig alters one setting of a topic.
func (s *server) setConfig(t *testing.T, topic, name, value string) {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	responses, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic)
	if err == nil {
		_, err = responses.On(topic, nil)
	}
	if err != nil {
		t.Fatalf("%s=%s of topic %s: %v", name, value, topic, err)
	}
}

// setClusterConfig alters one of the cluster's settings.
func (s *server) setClusterConfig(t *testing.T, name, value string) {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	responses, err := admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}})
	if err == nil {
		_, err = responses.On("", nil)
	}
	if err != nil {
		t.Fatalf("%s=%s: %v", name, value, err)
	}
}

// wire is one connection for raw requests.
type wire struct {
	t              *testing.T
	conn           net.Conn
	sent, answered int32 // correlation ids
}

func (s *server) dial(t *testing.T) *wire {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.kafka)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn}
}

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("reports"))

// send sends a request, at its version.
func (w *wire) send(q kmsg.Request) {
	w.t.Helper()
	w.sent++
	w.write(formatter.AppendRequest(nil, q, w.sent))
}

func (w *wire) write(frame []byte) {
	w.t.Helper()
	if _, err := w.conn.Write(frame); err != nil {
		w.t.Fatal(err)
	}
}

// frame reads one answer without its length, or says how the connection ended.
func (w *wire) frame() ([]byte, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	var size [4]byte
	if _, err := io.ReadFull(w.conn, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(w.conn, b)
	return b, err
}

// receive reads the answer to the oldest request that has none, which is q.
func (w *wire) receive(q kmsg.Request) kmsg.Response {
	w.t.Helper()
	b, err := w.frame()
	if err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(q.Key()), q.GetVersion(), err)
	}
	w.answered++
	if got := int32(binary.BigEndian.Uint32(b)); got != w.answered {
		w.t.Fatalf("%s v%d: an answer to request %d, not %d", kmsg.NameForKey(q.Key()), q.GetVersion(), got, w.answered)
	}
	b = b[4:]
	resp := q.ResponseKind()
	if resp.IsFlexible() && q.Key() != int16(kmsg.ApiVersions) {
		b = b[1:] // no tags
	}
	if err := resp.ReadFrom(b); err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(q.Key()), q.GetVersion(), err)
	}
	if n := len(resp.AppendTo(nil)); n != len(b) {
		w.t.Fatalf("%s v%d: %d bytes, of which %d are the answer", kmsg.NameForKey(q.Key()), q.GetVersion(), len(b), n)
	}
	return resp
}

// ask sends a request at a version and reads its answer.
func ask[R kmsg.Response](w *wire, version int16, q kmsg.Request) R {
	w.t.Helper()
	q.SetVersion(version)
	w.send(q)
	resp, ok := w.receive(q).(R)
	if !ok {
		w.t.Fatalf("%s is not answered by a %T", kmsg.NameForKey(q.Key()), resp)
	}
	return resp
}

// wantClosed waits for the server to close the connection, without an answer.
func (w *wire) wantClosed() {
	w.t.Helper()
	if b, err := w.frame(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		w.t.Errorf("%d bytes and %v, want the connection closed", len(b), err)
	}
}

// metadata asks for topics, without creating any.
func (w *wire) metadata(names ...string) *kmsg.MetadataResponse {
	w.t.Helper()
	q := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		q.Topics = append(q.Topics, t)
	}
	return ask[*kmsg.MetadataResponse](w, 12, q)
}

// topic is what Metadata says of a topic that exists.
func (w *wire) topic(name string) kmsg.MetadataResponseTopic {
	w.t.Helper()
	t := w.metadata(name).Topics[0]
	if t.ErrorCode != 0 {
		w.t.Fatalf("topic %s: %s", name, errorName(t.ErrorCode))
	}
	return t
}

// produceTo asks for a batch to be appended to a partition, under the topic's
// name and id: each version takes its own.
func produceTo(to kmsg.MetadataResponseTopic, partition int32, b []byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Acks, q.TimeoutMillis = -1, int32(patience.Milliseconds())
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = *to.Topic, to.TopicID
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, b
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	return q
}

// produce appends a batch and returns what the answer says of its partition.
func (w *wire) produce(version int16, to kmsg.MetadataResponseTopic, partition int32, b []byte) kmsg.ProduceResponseTopicPartition {
	w.t.Helper()
	return ask[*kmsg.ProduceResponse](w, version, produceTo(to, partition, b)).Topics[0].Partitions[0]
}

// mustProduce appends batches to a partition, all on their way at once, so
// that some share an object.
func (w *wire) mustProduce(to kmsg.MetadataResponseTopic, partition int32, batches ...[]byte) {
	w.t.Helper()
	var asked []*kmsg.ProduceRequest
	for _, b := range batches {
		q := produceTo(to, partition, b)
		q.SetVersion(13)
		w.send(q)
		asked = append(asked, q)
	}
	for _, q := range asked {
		resp, _ := w.receive(q).(*kmsg.ProduceResponse)
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
			w.t.Fatalf("produce to %s-%d: %s", *to.Topic, partition, errorName(code))
		}
	}
}

// fetchFrom asks for a partition from an offset on, up to maxBytes.
func fetchFrom(partition int32, offset int64, maxBytes int32) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, maxBytes
	return p
}

// fetchOf asks for partitions of a topic, and does not wait for data.
func fetchOf(of kmsg.MetadataResponseTopic, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = *of.Topic, of.TopicID, parts
	q.Topics = append(q.Topics, t)
	return q
}

// batchesIn splits what a partition was answered with.
func batchesIn(t *testing.T, p kmsg.FetchResponseTopicPartition) (all []batch.Header, bytes [][]byte) {
	t.Helper()
	for b, err := range batch.All(p.RecordBatches) {
		if err != nil {
			t.Fatalf("partition %d: %v", p.Partition, err)
		}
		h, err := batch.ParseHeader(b)
		if err != nil {
			t.Fatalf("partition %d: %v", p.Partition, err)
		}
		all, bytes = append(all, h), append(bytes, b)
	}
	return all, bytes
}

// batchOf is a batch as a producer makes it.
func batchOf(t *testing.T, codec batch.Codec, records ...batch.Record) []byte {
	t.Helper()
	b := batch.NewBuilder(codec, 0)
	for _, r := range records {
		b.Append(r)
	}
	made, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// value is a record of now with nothing but a value.
func value(v string) batch.Record {
	return batch.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(v)}
}

// errorName is Kafka's name for a code; "" for none.
func errorName(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return ""
}
