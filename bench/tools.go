package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// toolPartitions are of the topics that Kafka's tools use.
const toolPartitions = 16

// toolTurn is a system while Kafka's own tools measure it.
type toolTurn struct{ *figureTurn }

// measureTools has kafka-producer-perf-test write to a system, and
// kafka-consumer-perf-test read, each with its defaults.
func measureTools(ctx context.Context, figures *figureTurn) error {
	t := &toolTurn{figures}
	return t.s.while(ctx, func(ctx context.Context) error {
		if t.o.warmUp > 0 {
			if err := t.produceAndConsume(ctx, 1024); err != nil {
				return fmt.Errorf("warming up: %w", err)
			}
			t.figures = nil
		}
		for _, recordBytes := range []int{1024, 100} {
			t.o.say(t.round, t.system, "Kafka's tools, "+humanize.IBytes(uint64(recordBytes)))
			if err := t.produceAndConsume(ctx, recordBytes); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *toolTurn) produceAndConsume(ctx context.Context, recordBytes int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.s.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	topic, err := createTopic(ctx, kadm.NewClient(client), toolPartitions)
	if err != nil {
		return err
	}
	records := t.o.toolMiB << 20 / recordBytes
	gib := float64(records) * float64(recordBytes) / (1 << 30)
	title := humanize.IBytes(uint64(recordBytes)) + " records: "
	out, cpu, err := t.tool(ctx, "ProducerPerformance", "--topic", topic, "--num-records", strconv.Itoa(records),
		"--record-size", strconv.Itoa(recordBytes), "--throughput", "-1")
	if err != nil {
		return err
	}
	p, err := parseProducerTool(out)
	if err != nil {
		return err
	}
	t.add(title+"producer's "+toolThroughput, "MiB/s", p.mibPerSecond)
	t.add(title+"producer's ack p50", "ms", p.p50)
	t.add(title+"producer's "+toolAckP99, "ms", p.p99)
	t.add(title+"server's CPU for writing", "s/GiB", cpu/gib)
	out, cpu, err = t.tool(ctx, "ConsumerPerformance", "--topic", topic, "--num-records", strconv.Itoa(records), "--hide-header")
	if err != nil {
		return err
	}
	mibPerSecond, err := parseConsumerTool(out)
	if err != nil {
		return err
	}
	t.add(title+"consumer's "+toolThroughput, "MiB/s", mibPerSecond)
	t.add(title+"server's CPU for reading", "s/GiB", cpu/gib)
	return nil
}

// tool runs one of Kafka's, and returns what it printed and the seconds of CPU
// that the server used meanwhile.
func (t *toolTurn) tool(ctx context.Context, class string, args ...string) (out string, serverCPU float64, err error) {
	before, err := t.s.usage()
	if err != nil {
		return "", 0, err
	}
	argv := append([]string{
		"-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(t.o.kafka, "*"),
		"org.apache.kafka.tools." + class, "--bootstrap-server", t.s.addr,
	}, args...)
	text, err := exec.CommandContext(ctx, "java", argv...).CombinedOutput()
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w: %s", class, err, text)
	}
	after, err := t.s.usage()
	return string(text), (after.cpu - before.cpu).Seconds(), err
}

// producerTool is the last line of kafka-producer-perf-test, of all records.
type producerTool struct{ mibPerSecond, p50, p99 float64 }

var producerLine = regexp.MustCompile(`\(([\d.]+) MB/sec\).* (\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th`)

func parseProducerTool(out string) (p producerTool, err error) {
	all := producerLine.FindAllStringSubmatch(out, -1)
	if all == nil {
		return p, fmt.Errorf("no result in what the producer's tool says: %s", out)
	}
	return p, parseFloats(all[len(all)-1][1:], &p.mibPerSecond, &p.p50, &p.p99)
}

// parseConsumerTool finds fetch.MB.sec, the ninth of ten fields: MiB in a second
// of fetching, without the time that joining a group takes.
func parseConsumerTool(out string) (mibPerSecond float64, err error) {
	for line := range strings.Lines(out) {
		if fields := strings.Split(strings.TrimSpace(line), ", "); len(fields) == 10 {
			return mibPerSecond, parseFloats(fields[8:9], &mibPerSecond)
		}
	}
	return 0, fmt.Errorf("no result in what the consumer's tool says: %s", out)
}

func parseFloats(fields []string, into ...*float64) (err error) {
	for i, f := range fields {
		if *into[i], err = strconv.ParseFloat(f, 64); err != nil {
			return err
		}
	}
	return nil
}
