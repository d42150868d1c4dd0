package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A touch is a record without a key, large enough that Kafka makes an entry of
// its index for what comes after it (index.interval.bytes is 4 KiB).
const (
	touchBytes  = 5 << 10
	touchesEach = 2
)

// touch writes to each partition before anything is measured. The first entries
// of a partition's index cost Kafka milliseconds of CPU where the file system is
// slow with pages that were never written, which nobody meets twice.
func (l workload) touch(ctx context.Context, partitions int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(l.addr), kgo.DefaultProduceTopic(l.topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(ackTimeout))
	if err != nil {
		return err
	}
	defer client.Close()
	for range touchesEach {
		var records []*kgo.Record
		for p := range int32(partitions) {
			records = append(records, &kgo.Record{Partition: p, Value: l.payload.pool[:touchBytes]})
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return fmt.Errorf("touching partitions: %w", err)
		}
	}
	return nil
}
