import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/** What Java's admin client does with groups. */
@SuppressWarnings({"deprecation", "removal"}) // listConsumerGroups, which most programs call
public class GroupAdmins {
    public static void main(String[] args) throws Exception {
        Check.run(args, Map.of(
            "describe", GroupAdmins::describe,
            "offsets", GroupAdmins::offsets,
            "delete", GroupAdmins::delete,
            "remove", GroupAdmins::remove));
    }

    private static KafkaConsumer<String, String> join(Check c, String group, String topic, Object... config) throws Exception {
        KafkaConsumer<String, String> m = c.member(group, config);
        m.subscribe(List.of(topic));
        Check.eventually("a member of " + group, () -> { m.poll(Duration.ofMillis(50)); return m.groupMetadata().generationId() > 0 && !m.assignment().isEmpty(); });
        return m;
    }

    private static void commit(Check c, String group, String topic, long... offsets) {
        try (KafkaConsumer<String, String> m = c.member(group)) {
            for (int i = 0; i < offsets.length; i++) m.commitSync(Map.of(Check.part(topic, i), new OffsetAndMetadata(offsets[i])));
        }
    }

    private static Set<String> list(Check c, ListConsumerGroupsOptions o) throws Exception {
        return c.admin.listConsumerGroups(o).all().get().stream().map(l -> l.groupId()).filter(g -> g.startsWith("describe")).collect(Collectors.toSet());
    }

    private static ConsumerGroupDescription describe(Check c, String group) throws Exception {
        return c.admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
    }

    static void describe(Check c) throws Exception {
        c.topic("described", 2);
        try (KafkaConsumer<String, String> m = join(c, "describe-live", "described", "client.id", "me", "group.instance.id", "mine")) {
            join(c, "describe-empty", "described").close();
            commit(c, "describe-simple", "described", 1);
            Set<String> all = Set.of("describe-live", "describe-empty", "describe-simple");
            Check.same("groups", all, list(c, new ListConsumerGroupsOptions()));
            Check.same("stable groups", Set.of("describe-live"), list(c, new ListConsumerGroupsOptions().inGroupStates(Set.of(GroupState.STABLE))));
            Check.same("empty groups", Set.of("describe-empty", "describe-simple"), list(c, new ListConsumerGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY))));
            Check.same("classic groups", all, list(c, new ListConsumerGroupsOptions().withTypes(Set.of(GroupType.CLASSIC))));
            Check.same("groups of KIP-848", Set.of(), list(c, new ListConsumerGroupsOptions().withTypes(Set.of(GroupType.CONSUMER))));
            Check.same("share groups", 0, c.admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().size());

            ConsumerGroupDescription d = describe(c, "describe-live");
            Check.same("state", GroupState.STABLE, d.groupState());
            Check.same("type", GroupType.CLASSIC, d.type());
            Check.same("assignor", "range", d.partitionAssignor());
            Check.same("coordinator", c.server, d.coordinator().host() + ":" + d.coordinator().port());
            Check.same("members", 1, d.members().size());
            MemberDescription member = d.members().iterator().next();
            Check.same("member", m.groupMetadata().memberId(), member.consumerId());
            Check.same("instance", "mine", member.groupInstanceId().orElse(null));
            Check.same("client", "me", member.clientId());
            Check.same("host", "/127.0.0.1", member.host());
            Check.same("assignment", Set.of(Check.part("described", 0), Check.part("described", 1)), member.assignment().topicPartitions());
            Check.same("state of an empty one", GroupState.EMPTY, describe(c, "describe-empty").groupState());
            Check.that("no simple group", describe(c, "describe-simple").isSimpleConsumerGroup());
            Check.fails(GroupIdNotFoundException.class, () -> describe(c, "describe-none"));
        }
    }

    static void offsets(Check c) throws Exception {
        c.topic("offsets-a", 2);
        c.topic("offsets-b", 1);
        TopicPartition a0 = Check.part("offsets-a", 0), a1 = Check.part("offsets-a", 1), b0 = Check.part("offsets-b", 0);
        c.admin.alterConsumerGroupOffsets("offsets-1", Map.of(a0, new OffsetAndMetadata(3, Optional.of(0), "m"), b0, new OffsetAndMetadata(9))).all().get();
        c.admin.alterConsumerGroupOffsets("offsets-2", Map.of(a1, new OffsetAndMetadata(4))).all().get();
        Map<TopicPartition, OffsetAndMetadata> of1 = c.admin.listConsumerGroupOffsets("offsets-1").partitionsToOffsetAndMetadata().get();
        Check.same("all offsets", Set.of(a0, b0), of1.keySet());
        Check.same("offset", new OffsetAndMetadata(3, Optional.of(0), "m"), of1.get(a0));
        var several = c.admin.listConsumerGroupOffsets(Map.of(
            "offsets-1", new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(b0, a1)), "offsets-2", new ListConsumerGroupOffsetsSpec(),
            "offsets-none", new ListConsumerGroupOffsetsSpec())).all().get();
        Check.same("named", 9L, several.get("offsets-1").get(b0).offset());
        Check.same("named, without an offset", null, several.get("offsets-1").get(a1));
        Check.same("of another group", Map.of(a1, new OffsetAndMetadata(4)), several.get("offsets-2"));
        Check.same("of no group", Map.of(), several.get("offsets-none"));

        c.admin.deleteConsumerGroupOffsets("offsets-1", Set.of(a0)).all().get();
        Check.same("after deleting one", Set.of(b0), c.admin.listConsumerGroupOffsets("offsets-1").partitionsToOffsetAndMetadata().get().keySet());
        Check.fails(GroupIdNotFoundException.class, c.admin.deleteConsumerGroupOffsets("offsets-none", Set.of(a0)).all());
        try (KafkaConsumer<String, String> m = join(c, "offsets-1", "offsets-a")) {
            Check.fails(UnknownMemberIdException.class, c.admin.alterConsumerGroupOffsets("offsets-1", Map.of(a0, new OffsetAndMetadata(1))).all());
            Check.fails(GroupSubscribedToTopicException.class, c.admin.deleteConsumerGroupOffsets("offsets-1", Set.of(a0)).partitionResult(a0));
            c.admin.deleteConsumerGroupOffsets("offsets-1", Set.of(b0)).all().get(); // it does not read that topic
            m.commitSync(Map.of(a1, new OffsetAndMetadata(5)));
            Check.same("offsets", Map.of(a1, new OffsetAndMetadata(5)), c.admin.listConsumerGroupOffsets("offsets-1").partitionsToOffsetAndMetadata().get());
        }
        // A topic of the same name is another topic.
        c.admin.deleteTopics(List.of("offsets-a")).all().get();
        c.topic("offsets-a", 2);
        Check.eventually("the deleted topic's offset is gone", () -> c.admin.listConsumerGroupOffsets("offsets-2").partitionsToOffsetAndMetadata().get().get(a1) == null);
    }

    static void delete(Check c) throws Exception {
        c.topic("deleted", 1);
        commit(c, "delete", "deleted", 3);
        try (KafkaConsumer<String, String> m = join(c, "delete", "deleted")) {
            Check.fails(GroupNotEmptyException.class, c.admin.deleteConsumerGroups(List.of("delete")).all());
            Check.same("still committed", 3L, m.committed(Set.of(Check.part("deleted", 0))).get(Check.part("deleted", 0)).offset());
        }
        var outcome = c.admin.deleteConsumerGroups(List.of("delete", "delete-none")).deletedGroups();
        outcome.get("delete").get();
        Check.fails(GroupIdNotFoundException.class, outcome.get("delete-none"));
        Check.fails(GroupIdNotFoundException.class, () -> describe(c, "delete"));
        Check.same("offsets of the deleted", Map.of(), c.admin.listConsumerGroupOffsets("delete").partitionsToOffsetAndMetadata().get());
        try (KafkaConsumer<String, String> m = join(c, "delete", "deleted")) {
            Check.same("a new group's offset", null, m.committed(Set.of(Check.part("deleted", 0))).get(Check.part("deleted", 0)));
        }
    }

    static void remove(Check c) throws Exception {
        c.topic("removed", 2);
        KafkaConsumer<String, String> fixed = join(c, "remove", "removed", "group.instance.id", "fixed");
        fixed.close(); // which does not leave
        Check.same("static members", 1, describe(c, "remove").members().size());
        var outcome = c.admin.removeMembersFromConsumerGroup("remove", new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("fixed"), new MemberToRemove("none"))));
        outcome.memberResult(new MemberToRemove("fixed")).get();
        Check.fails(UnknownMemberIdException.class, outcome.memberResult(new MemberToRemove("none")));
        Check.same("members", 0, describe(c, "remove").members().size());
        try (KafkaConsumer<String, String> m = join(c, "remove", "removed")) {
            c.admin.removeMembersFromConsumerGroup("remove", new RemoveMembersFromConsumerGroupOptions()).all().get();
            Check.same("members after all are removed", 0, describe(c, "remove").members().size());
            Check.eventually("back", () -> { m.poll(Duration.ofMillis(50)); return describe(c, "remove").members().size() == 1; });
        }
    }
}
