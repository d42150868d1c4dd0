import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Java's admin client: topics, settings, records, brokers. Groups are in GroupAdmins. */
public class Admins {
    public static void main(String[] args) throws Exception {
        Check.run(args, Map.of(
            "topics", Admins::topics,
            "configs", Admins::configs,
            "broker-configs", Admins::brokerConfigs,
            "records", Admins::records,
            "cluster", Admins::cluster));
    }

    static void topics(Check c) throws Exception {
        NewTopic dry = new NewTopic("topics-dry", 3, (short) 1);
        c.admin.createTopics(List.of(dry), new CreateTopicsOptions().validateOnly(true)).all().get();
        Check.that("a topic that was only to be validated", !c.admin.listTopics().names().get().contains("topics-dry"));
        c.topic("topics", 2, "retention.ms", "1000");
        Check.fails(TopicExistsException.class, c.admin.createTopics(List.of(new NewTopic("topics", 2, (short) 1))).all());
        Check.that("listed", c.admin.listTopics().names().get().contains("topics"));
        c.admin.createPartitions(Map.of("topics", NewPartitions.increaseTo(5))).all().get();
        TopicDescription d = c.admin.describeTopics(List.of("topics")).allTopicNames().get().get("topics");
        Check.same("partitions", 5, d.partitions().size());
        Check.that("an internal topic", !d.isInternal());
        Node leader = d.partitions().get(4).leader();
        Check.same("replicas", List.of(leader), d.partitions().get(4).replicas());
        Check.same("in sync", List.of(leader), d.partitions().get(4).isr());
        Uuid id = d.topicId();
        Check.same("described by id", "topics", c.admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id).name());
        Check.fails(UnknownTopicOrPartitionException.class, c.admin.describeTopics(List.of("topics-none")).allTopicNames());
        c.admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        Check.fails(UnknownTopicIdException.class, c.admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
        c.topic("topics", 1);
        Check.that("the id of the deleted one", !id.equals(c.admin.describeTopics(List.of("topics")).allTopicNames().get().get("topics").topicId()));
    }

    private static Config describe(Check c, ConfigResource r) throws Exception {
        return c.admin.describeConfigs(List.of(r), new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get().get(r);
    }

    private static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static void alter(Check c, ConfigResource r, boolean validateOnly, AlterConfigOp... ops) throws Exception {
        c.admin.incrementalAlterConfigs(Map.of(r, List.of(ops)), new AlterConfigsOptions().validateOnly(validateOnly)).all().get();
    }

    static void configs(Check c) throws Exception {
        c.topic("configs", 1, "retention.ms", "100000", "max.message.bytes", "5000");
        ConfigResource r = new ConfigResource(ConfigResource.Type.TOPIC, "configs");
        ConfigEntry retention = describe(c, r).get("retention.ms");
        Check.same("value", "100000", retention.value());
        Check.same("source", ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, retention.source());
        Check.that("no documentation", !retention.documentation().isEmpty());
        Check.same("first synonym", "retention.ms", retention.synonyms().get(0).name());
        ConfigEntry index = describe(c, r).get("segment.index.bytes");
        Check.same("source of a default", ConfigEntry.ConfigSource.DEFAULT_CONFIG, index.source());
        Check.same("its synonym", "log.index.size.max.bytes", index.synonyms().get(0).name());

        alter(c, r, true, op("retention.ms", "1", AlterConfigOp.OpType.SET));
        Check.same("after a validation", "100000", describe(c, r).get("retention.ms").value());
        alter(c, r, false, op("retention.ms", "200000", AlterConfigOp.OpType.SET), op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND));
        Check.same("set", "200000", describe(c, r).get("retention.ms").value());
        Check.same("appended", Set.of("compact", "delete"), Set.of(describe(c, r).get("cleanup.policy").value().split(",")));
        Check.same("left alone", "5000", describe(c, r).get("max.message.bytes").value());
        alter(c, r, false, op("cleanup.policy", "delete", AlterConfigOp.OpType.SUBTRACT), op("retention.ms", null, AlterConfigOp.OpType.DELETE));
        Check.same("subtracted", "compact", describe(c, r).get("cleanup.policy").value());
        Check.same("back to its default", "604800000", describe(c, r).get("retention.ms").value());

        // Of several resources each has its own outcome, and one is changed whole or not at all.
        ConfigResource none = new ConfigResource(ConfigResource.Type.TOPIC, "configs-none");
        Map<ConfigResource, Collection<AlterConfigOp>> both = Map.of(
            r, List.of(op("max.message.bytes", "6000", AlterConfigOp.OpType.SET), op("nosuch", "1", AlterConfigOp.OpType.SET)),
            none, List.of(op("retention.ms", "1", AlterConfigOp.OpType.SET)));
        var outcome = c.admin.incrementalAlterConfigs(both).values();
        InvalidConfigurationException e = Check.fails(InvalidConfigurationException.class, outcome.get(r));
        Check.that("it does not name the setting: " + e.getMessage(), e.getMessage().contains("nosuch"));
        Check.fails(UnknownTopicOrPartitionException.class, outcome.get(none));
        Check.same("half a change", "5000", describe(c, r).get("max.message.bytes").value());
    }

    static void brokerConfigs(Check c) throws Exception {
        Node node = c.admin.describeCluster().nodes().get().iterator().next();
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, ""), one = new ConfigResource(ConfigResource.Type.BROKER, node.idString());
        c.topic("broker-configs", 1);
        alter(c, all, false, op("log.retention.ms", "7200000", AlterConfigOp.OpType.SET));
        try {
            Check.eventually("of all", () -> { ConfigEntry e = describe(c, all).get("log.retention.ms"); return e != null && e.value().equals("7200000"); });
            Check.same("of one", ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, describe(c, one).get("log.retention.ms").source());
            Check.same("of a topic", "7200000", describe(c, new ConfigResource(ConfigResource.Type.TOPIC, "broker-configs")).get("retention.ms").value());
        } finally {
            alter(c, all, false, op("log.retention.ms", null, AlterConfigOp.OpType.DELETE));
        }
        Check.eventually("of all, again", () -> describe(c, all).get("log.retention.ms") == null);
        Check.fails(ApiException.class, c.admin.incrementalAlterConfigs(Map.of(all, List.of(op("nosuch.at.all", "", AlterConfigOp.OpType.SUBTRACT)))).all());
    }

    static void records(Check c) throws Exception {
        c.topic("records", 2);
        TopicPartition p0 = Check.part("records", 0), p1 = Check.part("records", 1);
        try (KafkaProducer<String, String> p = c.producer()) {
            for (long at : new long[] {1000, 5000, 3000, 2000}) p.send(new ProducerRecord<>("records", 0, at, null, "x")).get();
        }
        Map<OffsetSpec, long[]> specs = Map.of(
            OffsetSpec.earliest(), new long[] {0, -1}, OffsetSpec.latest(), new long[] {4, -1}, OffsetSpec.maxTimestamp(), new long[] {1, 5000},
            OffsetSpec.forTimestamp(1500), new long[] {1, 5000}, OffsetSpec.forTimestamp(6000), new long[] {-1, -1},
            OffsetSpec.earliestLocal(), new long[] {0, -1});
        for (OffsetSpec spec : specs.keySet()) {
            var got = c.admin.listOffsets(Map.of(p0, spec)).partitionResult(p0).get();
            Check.same(spec.getClass().getSimpleName(), List.of(specs.get(spec)[0], specs.get(spec)[1]), List.of(got.offset(), got.timestamp()));
        }
        var deleted = c.admin.deleteRecords(Map.of(p0, RecordsToDelete.beforeOffset(2), p1, RecordsToDelete.beforeOffset(1))).lowWatermarks();
        Check.same("first offset left", 2L, deleted.get(p0).get().lowWatermark());
        Check.fails(OffsetOutOfRangeException.class, deleted.get(p1));
        Check.same("earliest", 2L, c.admin.listOffsets(Map.of(p0, OffsetSpec.earliest())).partitionResult(p0).get().offset());
    }

    static void cluster(Check c) throws Exception {
        var cluster = c.admin.describeCluster();
        Node node = cluster.nodes().get().iterator().next();
        Check.same("address", c.server, node.host() + ":" + node.port());
        Check.same("controller", node.id(), cluster.controller().get().id());
        Check.that("no cluster id", !cluster.clusterId().get().isEmpty());

        c.topic("cluster", 2);
        TopicPartition p0 = Check.part("cluster", 0), p1 = Check.part("cluster", 1);
        try (KafkaProducer<String, String> p = c.producer()) { p.send(new ProducerRecord<>("cluster", 0, null, "x".repeat(10_000))).get(); }
        Map<TopicPartition, ReplicaInfo> found = new HashMap<>();
        Check.eventually("both partitions are in the logs", () -> {
            for (LogDirDescription dir : c.admin.describeLogDirs(List.of(node.id())).allDescriptions().get().get(node.id()).values()) {
                Check.same("error", null, dir.error());
                found.putAll(dir.replicaInfos());
            }
            return found.keySet().containsAll(Set.of(p0, p1));
        });
        Check.that("size " + found.get(p0), found.get(p0).size() >= 10_000 && found.get(p0).size() < 11_000);
        Check.same("size of an empty partition", 0L, found.get(p1).size());

        Map<TopicPartition, Optional<Throwable>> elected = c.admin.electLeaders(ElectionType.PREFERRED, Set.of(p0, Check.part("cluster", 9))).partitions().get();
        Check.that("elected " + elected, elected.get(p0).orElseThrow() instanceof ElectionNotNeededException);
        Check.that("elected " + elected, elected.get(Check.part("cluster", 9)).orElseThrow() instanceof UnknownTopicOrPartitionException);
        Check.same("reassignments", Map.of(), c.admin.listPartitionReassignments().reassignments().get());
        Check.fails(ApiException.class, c.admin.alterPartitionReassignments(Map.of(p0, Optional.of(new NewPartitionReassignment(List.of(node.id(), 99))))).all());
        Check.that("features", c.admin.describeFeatures().featureMetadata().get() != null);
        Check.same("topics of the cluster", Set.of("cluster"), c.admin.listTopics().names().get().stream().filter(t -> t.startsWith("cluster")).collect(Collectors.toSet()));
    }
}
