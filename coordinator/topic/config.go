package topic

import "github.com/siltstone-io/siltstone/kafka/batch"

// Config is what is in force for a topic, as the log wants it. It is immutable.
type Config struct {
	MaxMessageBytes int // of a batch, whole, as it is stored

	// AsProduced: batches stay in the codec that the producer chose. Otherwise
	// those of another codec than Codec are recompressed.
	AsProduced                     bool
	Codec                          batch.Codec
	GzipLevel, LZ4Level, ZstdLevel int

	AppendTime                                bool  // message.timestamp.type=LogAppendTime
	TimestampBeforeMaxMS, TimestampAfterMaxMS int64 // how far a CreateTime may lie before, after the server's clock

	MinISR     int
	Durability Durability
	Validation Validation

	Compact, Delete                        bool  // cleanup.policy
	RetentionMS, RetentionBytes            int64 // -1: no limit
	DeleteRetentionMS                      int64
	MinCompactionLagMS, MaxCompactionLagMS int64
	MinDirtyRatio                          float64
}

// Durability is siltstone.durability: when a record is safe.
type Durability int8

// Durabilities.
const (
	Replicated Durability = iota // in memory in other zones, or flushed
	Object                       // flushed
)

// Validation is siltstone.validation: how closely a batch is looked at.
type Validation int8

// Validations.
const (
	WalkRecords Validation = iota // every record
	HeaderOnly                    // the header and the CRC, where nothing else of the topic needs the records
)

// Cluster is what is in force for the cluster, as agents want it. It is immutable.
type Cluster struct {
	Replicas         int // siltstone.replicas: agents that hold an unflushed batch, the leader counted
	LeaseMS          int64
	UncleanGraceMS   int64
	FlushLateMS      int64
	ReplicaLagMS     int64 // replica.lag.time.max.ms
	NumPartitions    int32
	AutoCreateTopics bool
}
