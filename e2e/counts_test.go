package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

// What a minute at rest may take.
const (
	idleWrites = 22
	idleReads  = 100
)

// counted are requests to both stores, by the names of their prices.
type counted map[string]float64

// TestCounts: what an agent asks of its stores is what the design says, by the
// stores' own word; and `siltstone cost` says the same.
func TestCounts(t *testing.T) {
	own := startCounting(t)
	dir := t.TempDir()
	newCluster(t, dir, own.minio, own.aws)
	s := start(t, dir)
	s.cli(t, "", "cluster", "alter", "--config", "siltstone.lease.ms=6000") // as it is by default
	for _, partitions := range []int{1, 100} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) { own.wantOneEach(t, s, partitions) })
	}
	t.Run("idle", func(t *testing.T) { own.wantIdle(t, s) })
	s.stop(t)
	before := own.now(t)
	s = s.again(t)
	t.Run("cost", func(t *testing.T) { own.wantCost(t, s, before) })
	s.stop(t)
}

// wantOneEach: each flush is one PUT, and a write and a read unit for each shard.
func (c *counting) wantOneEach(t *testing.T, s *server, partitions int) {
	const flushes = 20
	topic := fmt.Sprint("of-", partitions)
	s.createTopic(t, topic, int32(partitions))
	shards := s.shardsOf(t, topic, partitions)
	cl := s.franz(t, kgo.ProducerLinger(50*time.Millisecond))
	write := func() {
		var records []*kgo.Record
		for p := range partitions {
			records = append(records, &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte("x")})
		}
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write() // opens the partitions
	flushedBefore, before, begin := s.metric(t, "siltstone_agent_flushes_total"), c.now(t), time.Now()
	for range flushes {
		write()
	}
	flushed, used := s.metric(t, "siltstone_agent_flushes_total")-flushedBefore, c.now(t).since(before)
	beats := math.Ceil(time.Since(begin).Seconds()/3) + 1 // of the register that says who is active
	t.Logf("%v flushes of %d shards: %v", flushed, shards, used)
	// A busy machine may part what the client sends at once: both halves are flushed.
	if flushed != used["s3_put"] || flushed < flushes || flushed > flushes*1.2 {
		t.Errorf("%v flushes and %v PUTs, want as many of both: %d, and few more", flushed, used["s3_put"], flushes)
	}
	least, most := float64(flushes*shards), flushed*float64(shards)+beats
	for _, units := range []string{"dynamodb_write", "dynamodb_read"} {
		if used[units] < least || used[units] > most {
			t.Errorf("%v of %s, want one for each of %d shards and flush: %v to %v, heartbeats among them", used[units], units, shards, least, most)
		}
	}
}

// wantIdle: nobody asks for anything.
func (c *counting) wantIdle(t *testing.T, s *server) {
	seconds := count(15, 120)
	<-time.After(2 * time.Second) // what is written late
	before := c.now(t)
	<-time.After(time.Duration(seconds) * time.Second)
	used := c.now(t).since(before)
	t.Logf("in %d seconds: %v", seconds, used)
	minutes := float64(seconds) / 60
	if used["dynamodb_write"] > math.Ceil(idleWrites*minutes) || used["dynamodb_read"] > math.Ceil(idleReads*minutes) {
		t.Errorf("%v in %d seconds, want at most %d writes and %d reads a minute", used, seconds, idleWrites, idleReads)
	}
	if used["dynamodb_write"] == 0 {
		t.Error("no heartbeat is counted")
	}
	if used["s3_put"]+used["s3_get"]+used["s3_list"]+used["s3_delete"] > 0 {
		t.Errorf("requests to the bucket: %v", used)
	}
}

// wantCost works for a while, and compares the bill with what the stores have
// counted since before the server was started.
func (c *counting) wantCost(t *testing.T, s *server, before counted) {
	s.cli(t, lines(20_000, "%d"), "produce", "of-100")
	if got := strings.Count(s.cli(t, "", "consume", "of-100", "--exit"), "\n"); got < 20_000 {
		t.Errorf("%d records", got)
	}
	s.cli(t, "", "consume", "of-1", "--exit", "--group", "g")
	s.cli(t, "", "topic", "create", "more", "-p", "5")
	s.cli(t, "", "topic", "delete", "more")
	quiet := c.now(t)
	var bill struct {
		Lines []struct {
			Price string
			Count float64
		}
	}
	out, stderr, code := run(t, "", "cost", "--json", "--metrics", "http://"+s.http+"/metrics")
	if err := json.Unmarshal([]byte(out), &bill); code != 0 || err != nil {
		t.Fatalf("cost: code %d, %v: %s", code, err, stderr)
	}
	// The agent goes on between the looks: its bill is of a moment between two of the store's.
	used, later := quiet.since(before), c.now(t).since(before)
	for _, line := range bill.Lines {
		least, most := used[line.Price], later[line.Price]
		t.Logf("%s: cost says %v, the store %v, then %v", line.Price, line.Count, least, most)
		if line.Count < least-max(0.05*least, 1) || line.Count > most+max(0.05*most, 1) {
			t.Errorf("%s: cost says %v, the store %v, then %v", line.Price, line.Count, least, most)
		}
	}
	if used["s3_put"] == 0 || used["s3_get"] == 0 || used["dynamodb_write"] == 0 || used["dynamodb_read"] == 0 {
		t.Errorf("the stores count %v", used)
	}
}

func (s *server) shardsOf(t *testing.T, topic string, partitions int) int {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	listed, err := admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	shards := map[int]bool{}
	for p := range partitions {
		shards[shard.Of(siltstone.TopicPartition{Topic: siltstone.TopicID(listed[topic].ID), Partition: int32(p)})] = true
	}
	return len(shards)
}

// metric is a counter of a server's, without labels.
func (s *server) metric(t *testing.T, name string) float64 {
	t.Helper()
	_, page := s.get(t, "/metrics")
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// counting are stores that count what they are asked for: MinIO by its metrics,
// the emulator of AWS by its log of requests.
type counting struct {
	minio, aws string // addresses
	awsLog     string
}

func startCounting(t *testing.T) *counting {
	t.Helper()
	c := &counting{}
	c.minio = servers.ForTest(t, func(dir, addr string) servers.Server {
		s := servers.MinIO(dir, addr)
		s.Env = append(s.Env, "MINIO_PROMETHEUS_AUTH_TYPE=public")
		return s
	})
	c.aws = servers.ForTest(t, func(dir, addr string) servers.Server {
		s := servers.AWS(dir, addr)
		s.Argv = append(s.Argv, "--access-logfile", "-", "--access-logformat", "asked %({x-amz-target}i)s answered %(s)s")
		c.awsLog = filepath.Join(dir, "aws.log")
		return s
	})
	return c
}

// priceOf is what each request of MinIO's metrics costs.
var priceOf = map[string]string{
	"putobject": "s3_put", "newmultipartupload": "s3_put", "putobjectpart": "s3_put", "completemultipartupload": "s3_put",
	"getobject": "s3_get", "headobject": "s3_get",
	"listobjectsv2": "s3_list", "listobjectsv1": "s3_list", "listmultipartuploads": "s3_list",
	"deleteobject": "s3_delete", "deletemultipleobjects": "s3_delete", "abortmultipartupload": "s3_delete",
}

// unitsOf are those of the emulator's requests, each of which takes one here:
// no entry is above 1 KiB, and it trims nothing.
var unitsOf = map[string]string{
	"PutItem": "dynamodb_write", "UpdateItem": "dynamodb_write", "GetItem": "dynamodb_read", "Query": "dynamodb_read",
}

// now is what both have counted by now.
func (c *counting) now(t *testing.T) counted {
	t.Helper()
	all := counted{}
	status, page := get(t, "http://"+c.minio+"/minio/metrics/v3/api/requests")
	if status != http.StatusOK {
		t.Fatalf("MinIO's metrics: %d %s", status, page)
	}
	for line := range strings.Lines(page) {
		labels, isCount := strings.CutPrefix(line, "minio_api_requests_total{")
		if !isCount {
			continue
		}
		_, name, _ := strings.Cut(labels, `name="`)
		name, _, _ = strings.Cut(name, `"`)
		price, known := priceOf[strings.ToLower(name)]
		n, err := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:len(labels)-1], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if known {
			all[price] += n
		}
	}
	log, err := os.Open(c.awsLog)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		_, asked, ok := strings.Cut(lines.Text(), "asked DynamoDB_20120810.")
		operation, _, _ := strings.Cut(asked, " ")
		if price, known := unitsOf[operation]; ok && known {
			all[price]++
		}
	}
	return all
}

func (c counted) since(before counted) counted {
	d := counted{}
	for name, n := range c {
		d[name] = n - before[name]
	}
	return d
}
