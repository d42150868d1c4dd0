package topic

import "slices"

// clusterSettings is every setting of the cluster, which Kafka's clients see
// as broker configs: those below, and the defaults of topic settings under
// the names that Kafka's brokers give them.
var clusterSettings = define(slices.Concat(ownCluster, topicDefaults()))

var ownCluster = []definition{
	{
		name: "siltstone.replicas", kind: TypeInt, initial: "2", allowed: between(1, 3),
		doc: "How many agents, in as many zones, hold a batch that is not flushed, its leader counted.",
	},
	{
		name: "siltstone.lease.ms", kind: TypeLong, initial: "6000", allowed: atLeast(4000),
		doc: "How long an agent's heartbeat (every 3 s) stays away before others take over from it, and before it serves no more itself.",
	},
	{
		name: "siltstone.unclean.grace.ms", kind: TypeLong, initial: "60000", allowed: atLeast(1),
		doc: "How long all agents that held a shard's unflushed records are silent before another takes over without them.",
	},
	{
		name: "siltstone.flush.late.ms", kind: TypeLong, initial: "10000", allowed: atLeast(1),
		doc: "The age of the oldest unflushed batch from which on nothing is acknowledged by replication alone. At most half of siltstone.unclean.grace.ms.",
	},
	{
		name: "replica.lag.time.max.ms", kind: TypeLong, initial: "500", allowed: atLeast(1),
		doc: "How late a replica may be before it leaves the ISR.",
	},
	{
		name: "producer.id.expiration.ms", kind: TypeInt, initial: "86400000", allowed: atLeast(1),
		doc: "How long a silent producer's sequence numbers are remembered.",
	},
	{
		name: "group.initial.rebalance.delay.ms", kind: TypeInt, initial: "3000", allowed: atLeast(0),
		doc: "How long an empty group waits for more members after its first one.",
	},
	{
		name: "group.min.session.timeout.ms", kind: TypeInt, initial: "6000", allowed: atLeast(1),
		doc: "The shortest session timeout that a member may ask for. At most group.max.session.timeout.ms.",
	},
	{
		name: "group.max.session.timeout.ms", kind: TypeInt, initial: "1800000", allowed: atLeast(1),
		doc: "The longest session timeout that a member may ask for.",
	},
	{
		name: "group.max.size", kind: TypeInt, initial: "2147483647", allowed: atLeast(1),
		doc: "How many members a group may have.",
	},
	{
		name: "offset.metadata.max.bytes", kind: TypeInt, initial: "4096", allowed: atLeast(0),
		doc: "The longest metadata that is taken with a committed offset.",
	},
	{
		name: "offsets.retention.minutes", kind: TypeInt, initial: "10080", allowed: atLeast(1),
		doc: "How long an empty group's offsets are kept, and those of a topic that a group no longer subscribes to.",
	},
	{
		name: "offsets.retention.check.interval.ms", kind: TypeLong, initial: "600000", allowed: atLeast(1),
		doc: "How often groups are searched for offsets whose time is over.",
	},
	{
		name: "num.partitions", kind: TypeInt, initial: "1", allowed: between(1, MaxNewPartitions),
		doc: "How many partitions a topic has whose creation does not say.",
	},
	{
		name: "auto.create.topics.enable", kind: TypeBool, initial: "true",
		doc: "Whether a Metadata request that names an unknown topic, and allows it, creates it.",
	},
}

// topicDefaults makes of each topic setting that has a default of the
// cluster's own the setting of that.
func topicDefaults() []definition {
	var all []definition
	for _, d := range topicSettings.sorted() {
		if d.cluster != "" {
			def := *d
			def.name, def.cluster = d.cluster, ""
			def.doc = "The default of " + d.name + ". " + d.doc
			all = append(all, def)
		}
	}
	return all
}
