package topic

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Config is what is in force for a topic, as the log wants it. It is immutable.
type Config struct {
	MaxMessageBytes int // of a batch, whole, as it is stored
	MaxRecordBytes  int // of a record of a compressed batch, decompressed; 0: no limit

	// AsProduced: batches stay in the codec that the producer chose. Otherwise
	// those of another codec are compressed again, in Codec.
	AsProduced                     bool
	Codec                          batch.Codec
	GzipLevel, LZ4Level, ZstdLevel int

	AppendTime bool // message.timestamp.type=LogAppendTime
	// How far a CreateTime may lie before, and after, the agent's clock.
	TimestampBeforeMaxMS, TimestampAfterMaxMS int64

	MinISR     int
	Durability Durability
	Validation Validation

	Compact, Delete                        bool  // cleanup.policy
	RetentionMS, RetentionBytes            int64 // negative: no limit
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
	HeaderOnly                    // header and CRC, where nothing else of the topic needs the records
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

	ProducerIDExpirationMS int64

	GroupInitialDelayMS                  int64 // group.initial.rebalance.delay.ms
	GroupMinSessionMS, GroupMaxSessionMS int64
	GroupMaxMembers                      int // group.max.size
	OffsetMetadataMaxBytes               int
	OffsetsRetentionMS                   int64 // offsets.retention.minutes
	OffsetsRetentionCheckMS              int64
}

// values is where the value of a setting comes from: what was set, then, of a
// topic, what the cluster has for it, then the default. A stored value that
// the table does not allow (this release's writers store none) counts as not set.
type values struct {
	table    definitions
	own      map[string]string
	source   Source            // of own
	defaults map[string]string // the cluster's settings; of a topic
}

func ofTopic(own, cluster map[string]string) values {
	return values{topicSettings, own, SourceTopic, cluster}
}

func ofCluster(own map[string]string) values {
	return values{clusterSettings, own, SourceCluster, nil}
}

func (v values) get(name string) string {
	return v.places(v.table[name])[0].Value
}

// places is where a setting's value may come from, the one in force first.
func (v values) places(d *definition) []Synonym {
	var all []Synonym
	if value, ok := v.own[d.name]; ok && d.allows(value) {
		all = append(all, Synonym{d.name, value, v.source})
	}
	if value, ok := v.defaults[d.cluster]; ok && d.allows(value) {
		all = append(all, Synonym{d.cluster, value, SourceCluster})
	}
	return append(all, Synonym{cmp.Or(d.cluster, d.name), d.initial, SourceDefault})
}

// allows takes a stored value only in the form in which parse stores it, which
// is the one that the readers of values can read.
func (d *definition) allows(value string) bool {
	stored, err := d.parse(value)
	return err == nil && stored == value
}

func (v values) long(name string) int64 {
	n, err := strconv.ParseInt(v.get(name), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s is no number: %v", name, err)) // the table is wrong
	}
	return n
}

func (v values) list(name string) []string { return splitList(v.get(name)) }

func resolve(own, cluster map[string]string) *Config {
	v := ofTopic(own, cluster)
	c := &Config{
		MaxMessageBytes:      int(v.long("max.message.bytes")),
		MaxRecordBytes:       int(v.long("max.decompressed.message.bytes") % maxRecordBytes), // the most is none
		GzipLevel:            int(v.long("compression.gzip.level")),
		LZ4Level:             int(v.long("compression.lz4.level")),
		ZstdLevel:            int(v.long("compression.zstd.level")),
		AppendTime:           v.get("message.timestamp.type") == "LogAppendTime",
		TimestampBeforeMaxMS: v.long("message.timestamp.before.max.ms"),
		TimestampAfterMaxMS:  v.long("message.timestamp.after.max.ms"),
		MinISR:               int(v.long("min.insync.replicas")),
		Compact:              slices.Contains(v.list("cleanup.policy"), "compact"),
		Delete:               slices.Contains(v.list("cleanup.policy"), "delete"),
		RetentionMS:          v.long("retention.ms"),
		RetentionBytes:       v.long("retention.bytes"),
		DeleteRetentionMS:    v.long("delete.retention.ms"),
		MinCompactionLagMS:   v.long("min.compaction.lag.ms"),
		MaxCompactionLagMS:   v.long("max.compaction.lag.ms"),
	}
	c.MinDirtyRatio, _ = strconv.ParseFloat(v.get("min.cleanable.dirty.ratio"), 64)
	switch codec := v.get("compression.type"); codec {
	case "producer":
		c.AsProduced = true
	case "uncompressed":
		c.Codec = batch.None
	default:
		c.Codec, _ = batch.ParseCodec(codec)
	}
	if v.get("siltstone.durability") == "object" {
		c.Durability = Object
	}
	if v.get("siltstone.validation") == "header" {
		c.Validation = HeaderOnly
	}
	return c
}

const msOfMinute = 60_000

func resolveCluster(own map[string]string) *Cluster {
	v := ofCluster(own)
	return &Cluster{
		Replicas:         int(v.long("siltstone.replicas")),
		LeaseMS:          v.long("siltstone.lease.ms"),
		UncleanGraceMS:   v.long("siltstone.unclean.grace.ms"),
		FlushLateMS:      v.long("siltstone.flush.late.ms"),
		ReplicaLagMS:     v.long("replica.lag.time.max.ms"),
		NumPartitions:    int32(v.long("num.partitions")),
		AutoCreateTopics: v.get("auto.create.topics.enable") == "true",

		ProducerIDExpirationMS: v.long("producer.id.expiration.ms"),

		GroupInitialDelayMS:     v.long("group.initial.rebalance.delay.ms"),
		GroupMinSessionMS:       v.long("group.min.session.timeout.ms"),
		GroupMaxSessionMS:       v.long("group.max.session.timeout.ms"),
		GroupMaxMembers:         int(v.long("group.max.size")),
		OffsetMetadataMaxBytes:  int(v.long("offset.metadata.max.bytes")),
		OffsetsRetentionMS:      v.long("offsets.retention.minutes") * msOfMinute,
		OffsetsRetentionCheckMS: v.long("offsets.retention.check.interval.ms"),
	}
}

// checkTopic holds a topic's settings against each other.
func checkTopic(own, cluster map[string]string) error {
	v := ofTopic(own, cluster)
	if low, high := v.long("min.compaction.lag.ms"), v.long("max.compaction.lag.ms"); low > high {
		return &ConfigError{"min.compaction.lag.ms", fmt.Sprintf("%d is above max.compaction.lag.ms, %d", low, high)}
	}
	if name := "unclean.leader.election.enable"; v.get(name) == "false" && v.get("siltstone.durability") != "object" {
		return &ConfigError{name, "false needs siltstone.durability=object. " + topicSettings[name].doc}
	}
	return nil
}

// checkCluster holds the cluster's settings against each other.
func checkCluster(own map[string]string) error {
	v := ofCluster(own)
	if late, grace := v.long("siltstone.flush.late.ms"), v.long("siltstone.unclean.grace.ms"); late > grace/2 {
		return &ConfigError{"siltstone.flush.late.ms", fmt.Sprintf("%d is above half of siltstone.unclean.grace.ms, %d", late, grace)}
	}
	if low, high := v.long("group.min.session.timeout.ms"), v.long("group.max.session.timeout.ms"); low > high {
		return &ConfigError{"group.min.session.timeout.ms", fmt.Sprintf("%d is above group.max.session.timeout.ms, %d", low, high)}
	}
	return checkTopic(nil, own)
}
