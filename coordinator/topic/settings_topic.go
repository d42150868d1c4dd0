package topic

import (
	"math"
	"slices"
)

// topicSettings is every topic config of Kafka 4.4, and Siltstone's own. The
// table of docs/compatibility.md is made from it.
var topicSettings = define(slices.Concat(ownSettings, kafkaObeyed, kafkaPending, kafkaLocal, kafkaRefused))

const (
	maxLong = "9223372036854775807"
	// maxRequestBytes bounds max.message.bytes: no request is longer.
	maxRequestBytes = 100 << 20
	// maxRecordBytes is Kafka's bound of max.decompressed.message.bytes.
	maxRecordBytes = math.MaxInt32 - 8
)

var ownSettings = []definition{
	{
		name: "siltstone.durability", kind: TypeString, initial: "replicated", allowed: oneOf("replicated", "object"),
		doc: "When acks=all is acknowledged. replicated: once the record is in memory in as many zones as min.insync.replicas asks for (two at least), or in the object store, whichever comes first; fast; costs traffic between zones; lost if all those agents die before the next flush (5 s by default). object: once it is in the object store; slower, without that traffic, and no crash loses it.",
	},
	{
		name: "siltstone.validation", kind: TypeString, initial: "records", allowed: oneOf("records", "header"),
		doc: "How closely a produced batch is looked at. records: each record is held against the batch's header. header: only header and CRC, which costs less, where no other setting of the topic needs the records.",
	},
}

var kafkaObeyed = []definition{
	{
		name: "compression.type", kind: TypeString, initial: "producer", cluster: "compression.type",
		allowed: oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
		doc:     "The codec that batches are stored in. producer keeps the one that each came in; with another, batches are compressed again as they arrive.",
	},
	{
		name: "compression.gzip.level", kind: TypeInt, initial: "-1", cluster: "compression.gzip.level", allowed: between(1, 9, -1),
		doc: "The level where compression.type=gzip compresses again.",
	},
	{
		name: "compression.lz4.level", kind: TypeInt, initial: "9", cluster: "compression.lz4.level", allowed: between(1, 17),
		doc: "The level where compression.type=lz4 compresses again.",
	},
	{
		name: "compression.zstd.level", kind: TypeInt, initial: "3", cluster: "compression.zstd.level", allowed: between(-131072, 22),
		doc: "The level where compression.type=zstd compresses again.",
	},
	{
		name: "max.message.bytes", kind: TypeInt, initial: "1048588", cluster: "message.max.bytes", allowed: between(0, maxRequestBytes),
		doc: "The longest record batch that is taken, as it is stored. At most 100 MiB, as no request is longer.",
	},
	{
		name: "max.decompressed.message.bytes", kind: TypeInt, initial: "2147483639", cluster: "max.decompressed.message.bytes",
		allowed: between(1, maxRecordBytes),
		doc:     "The longest single record of a compressed batch, decompressed. It is checked as batches arrive, so lowering it leaves stored ones readable.",
	},
	{
		name: "message.timestamp.type", kind: TypeString, initial: "CreateTime", cluster: "log.message.timestamp.type",
		allowed: oneOf("CreateTime", "LogAppendTime"),
		doc:     "Whether a record has the producer's time, or that at which its batch arrived.",
	},
	{
		name: "message.timestamp.before.max.ms", kind: TypeLong, initial: maxLong, cluster: "log.message.timestamp.before.max.ms", allowed: atLeast(0),
		doc: "How far before the agent's clock a record's time may lie, under CreateTime.",
	},
	{
		name: "message.timestamp.after.max.ms", kind: TypeLong, initial: "3600000", cluster: "log.message.timestamp.after.max.ms", allowed: atLeast(0),
		doc: "How far after the agent's clock a record's time may lie, under CreateTime.",
	},
	{
		name: "min.insync.replicas", kind: TypeInt, initial: "1", cluster: "min.insync.replicas", allowed: atLeast(1),
		doc: "How many agents, in as many zones, hold a record before replication alone makes it safe (two at least). Where there are fewer, acks=all waits for the object store; it is never refused for want of replicas.",
	},
	{
		name: "unclean.leader.election.enable", kind: TypeBool, initial: "true",
		doc: "Leadership is of shards, which many topics share: when all agents that held a shard's unflushed records are gone for the grace time, another takes over. false asks that nothing acknowledged is lost by that, and needs siltstone.durability=object.",
	},
}

var kafkaPending = []definition{
	{
		name: "cleanup.policy", class: Pending, kind: TypeList, initial: "delete", cluster: "log.cleanup.policy", allowed: listOf("compact", "delete"),
		doc: "What the jobs do with old records: delete them by retention.ms and retention.bytes, compact to the newest of each key, both, or with an empty list nothing. That a compacted topic refuses records without a key is in force already.",
	},
	{
		name: "retention.ms", class: Pending, kind: TypeLong, initial: "604800000", cluster: "log.retention.ms", allowed: atLeast(-1),
		doc: "How old records get before the retention job deletes them; -1: for ever.",
	},
	{
		name: "retention.bytes", class: Pending, kind: TypeLong, initial: "-1", cluster: "log.retention.bytes",
		doc: "How large a partition gets before the retention job deletes its oldest records; below 0: no limit.",
	},
	{
		name: "delete.retention.ms", class: Pending, kind: TypeLong, initial: "86400000", cluster: "log.cleaner.delete.retention.ms", allowed: atLeast(0),
		doc: "How long the compaction job leaves a tombstone readable.",
	},
	{
		name: "min.compaction.lag.ms", class: Pending, kind: TypeLong, initial: "0", cluster: "log.cleaner.min.compaction.lag.ms", allowed: atLeast(0),
		doc: "How long the compaction job leaves a record alone. At most max.compaction.lag.ms.",
	},
	{
		name: "max.compaction.lag.ms", class: Pending, kind: TypeLong, initial: maxLong, cluster: "log.cleaner.max.compaction.lag.ms", allowed: atLeast(1),
		doc: "How long a record may go uncompacted, whatever the dirty ratio.",
	},
	{
		name: "min.cleanable.dirty.ratio", class: Pending, kind: TypeDouble, initial: "0.5", cluster: "log.cleaner.min.cleanable.ratio", allowed: ratio,
		doc: "How much of a partition is uncompacted before the compaction job takes it up.",
	},
}

var kafkaLocal = []definition{
	{
		name: "file.delete.delay.ms", class: Local, kind: TypeLong, initial: "60000", cluster: "log.segment.delete.delay.ms", allowed: atLeast(0),
		doc: "Kafka's wait before it deletes a local file. No agent keeps files; objects are deleted a day at least after nothing refers to them.",
	},
	{
		name: "flush.messages", class: Local, kind: TypeLong, initial: maxLong, cluster: "log.flush.interval.messages", allowed: atLeast(1),
		doc: "Kafka's fsync of its local log. When a record is safe is siltstone.durability's to say.",
	},
	{
		name: "flush.ms", class: Local, kind: TypeLong, initial: maxLong, cluster: "log.flush.interval.ms", allowed: atLeast(0),
		doc: "Kafka's fsync of its local log. When a record is safe is siltstone.durability's to say.",
	},
	{
		name: "index.interval.bytes", class: Local, kind: TypeInt, initial: "4096", cluster: "log.index.interval.bytes", allowed: atLeast(0),
		doc: "How dense Kafka's local index is. Every batch has a row in its object's index.",
	},
	{
		name: "segment.index.bytes", class: Local, kind: TypeInt, initial: "10485760", cluster: "log.index.size.max.bytes", allowed: atLeast(4),
		doc: "The size of Kafka's local index files. There are none.",
	},
	{
		name: "preallocate", class: Local, kind: TypeBool, initial: "false", cluster: "log.preallocate",
		doc: "Whether Kafka allocates its local files beforehand. There are none.",
	},
	{
		name: "segment.bytes", class: Local, kind: TypeInt, initial: "1073741824", cluster: "log.segment.bytes", allowed: atLeast(1 << 20),
		doc: "The size of Kafka's local files. Objects hold many partitions, and are cut by the agents' flush size and time; the jobs wait for no file to be full.",
	},
	{
		name: "segment.ms", class: Local, kind: TypeLong, initial: "604800000", cluster: "log.roll.ms", allowed: atLeast(1),
		doc: "The age at which Kafka begins another local file. Objects are cut by the agents' flush size and time; the jobs wait for no file to be full.",
	},
	{
		name: "segment.jitter.ms", class: Local, kind: TypeLong, initial: "0", cluster: "log.roll.jitter.ms", allowed: atLeast(0),
		doc: "A random part of segment.ms, of Kafka's local files.",
	},
	{
		name: "local.retention.ms", class: Local, kind: TypeLong, initial: "-2", cluster: "log.local.retention.ms", allowed: atLeast(-2),
		doc: "How long Kafka keeps local files of what is in remote storage too. No agent keeps files; retention.ms holds for all.",
	},
	{
		name: "local.retention.bytes", class: Local, kind: TypeLong, initial: "-2", cluster: "log.local.retention.bytes", allowed: atLeast(-2),
		doc: "How much Kafka keeps in local files of what is in remote storage too. No agent keeps files; retention.bytes holds for all.",
	},
}

const notTiered = "Everything is in object storage from the start; there is no second tier to set up."

var kafkaRefused = []definition{
	{name: "remote.storage.enable", class: Refused, kind: TypeBool, initial: "false", doc: notTiered},
	{name: "remote.log.copy.disable", class: Refused, kind: TypeBool, initial: "false", doc: notTiered},
	{name: "remote.log.delete.on.disable", class: Refused, kind: TypeBool, initial: "false", doc: notTiered},
	{name: "remote.copy.lag.ms", class: Refused, kind: TypeLong, initial: "0", doc: notTiered},
	{name: "remote.copy.lag.bytes", class: Refused, kind: TypeLong, initial: "-1", doc: notTiered},
	{
		name: "leader.replication.throttled.replicas", class: Refused, kind: TypeList, initial: "",
		doc: "Partitions are not moved between brokers, so there is nothing to throttle.",
	},
	{
		name: "follower.replication.throttled.replicas", class: Refused, kind: TypeList, initial: "",
		doc: "Partitions are not moved between brokers, so there is nothing to throttle.",
	},
	{
		name: "errors.deadletterqueue.group.enable", class: Refused, kind: TypeBool, initial: "false",
		doc: "There are no share groups.",
	},
}
