import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;

/** Several of Java's consumers in one group. */
public class Members {
    public static void main(String[] args) throws Exception {
        Check.run(args, Map.of(
            "eager", c -> rebalance(c, "eager", "org.apache.kafka.clients.consumer.RangeAssignor"),
            "roundrobin", c -> rebalance(c, "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor"),
            "sticky", c -> rebalance(c, "sticky", "org.apache.kafka.clients.consumer.StickyAssignor"),
            "cooperative", c -> rebalance(c, "cooperative", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
            "upgrade", Members::upgrade,
            "statics", Members::statics,
            "fenced", Members::fenced,
            "enforced", Members::enforced));
    }

    static class Listener implements ConsumerRebalanceListener {
        @Override public void onPartitionsAssigned(Collection<TopicPartition> p) { }
        @Override public void onPartitionsRevoked(Collection<TopicPartition> p) { }
    }

    /** A group's members, polled in turns; each commits what it has before it gives a partition up. */
    static final class Group implements AutoCloseable {
        final Check c;
        final String topic;
        final List<KafkaConsumer<String, String>> members = new ArrayList<>();
        final Map<KafkaConsumer<?, ?>, Set<TopicPartition>> revoked = new HashMap<>();
        final Map<TopicPartition, Long> next = new HashMap<>();
        int records;

        Group(Check c, String topic) { this.c = c; this.topic = topic; }

        KafkaConsumer<String, String> join(Object... config) {
            Map<String, Object> all = c.config("heartbeat.interval.ms", 200); // news of a rebalance comes with a heartbeat
            for (int i = 0; i < config.length; i += 2) all.put((String) config[i], config[i + 1]);
            KafkaConsumer<String, String> m = c.member(topic, all);
            revoked.put(m, new HashSet<>());
            m.subscribe(List.of(topic), new Listener() {
                @Override public void onPartitionsRevoked(Collection<TopicPartition> p) {
                    revoked.get(m).addAll(p);
                    m.commitSync();
                }
                @Override public void onPartitionsLost(Collection<TopicPartition> p) { throw new AssertionError("lost " + p); }
            });
            members.add(m);
            return m;
        }

        /** Polls all; every record must be its partition's next. */
        void poll() {
            for (KafkaConsumer<String, String> m : members)
                for (ConsumerRecord<String, String> r : m.poll(Duration.ofMillis(20))) {
                    TopicPartition tp = Check.part(r.topic(), r.partition());
                    Check.same("offset in " + tp, next.getOrDefault(tp, 0L), r.offset());
                    next.put(tp, r.offset() + 1);
                    records++;
                }
        }

        void until(String what, Callable<Boolean> ok) throws Exception { Check.eventually(what, () -> { poll(); return ok.call(); }); }

        /** Waits until the partitions are spread evenly, each with one owner. */
        void spread(int partitions) throws Exception {
            until(partitions + " partitions over " + members.size() + " members", () -> {
                Set<TopicPartition> all = new HashSet<>();
                for (KafkaConsumer<String, String> m : members) {
                    if (m.assignment().size() != partitions / members.size()) return false;
                    all.addAll(m.assignment());
                }
                return all.size() == partitions;
            });
        }

        int generation() { return members.get(0).groupMetadata().generationId(); }

        @Override public void close() { members.forEach(KafkaConsumer::close); }
    }

    /** One, two, three members, then two again: each record is read once. */
    static void rebalance(Check c, String topic, String assignor) throws Exception {
        final int partitions = 6, n = 60;
        c.topic(topic, partitions);
        try (Group g = new Group(c, topic)) {
            int written = 0;
            for (int members = 1; members <= 3; members++) {
                g.join("partition.assignment.strategy", assignor);
                c.write(topic, partitions, n);
                written += n;
                g.spread(partitions);
            }
            KafkaConsumer<String, String> first = g.members.get(0);
            if (assignor.contains("Cooperative"))
                for (TopicPartition kept : first.assignment()) Check.that("revoked, though kept: " + kept, !g.revoked.get(first).contains(kept));
            int generation = g.generation();
            Set<TopicPartition> before = first.assignment();
            g.members.remove(1).close();
            c.write(topic, partitions, n);
            written += n;
            g.spread(partitions);
            Check.that("generation " + g.generation() + " after " + generation, g.generation() > generation);
            if (assignor.contains("Sticky")) Check.that("not kept: " + before, first.assignment().containsAll(before));
            final int all = written;
            g.until(all + " records", () -> g.records == all);
            for (KafkaConsumer<String, String> m : g.members) m.commitSync();
            for (TopicPartition tp : g.next.keySet()) Check.same("committed", g.next.get(tp), first.committed(Set.of(tp)).get(tp).offset());
        }
    }

    /** From range to cooperative, a member at a time, as Kafka's documentation says. */
    static void upgrade(Check c) throws Exception {
        c.topic("upgrade", 4);
        c.write("upgrade", 4, 40);
        String range = "org.apache.kafka.clients.consumer.RangeAssignor", cooperative = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
        try (Group g = new Group(c, "upgrade")) {
            for (String list : new String[] {range, cooperative + "," + range, cooperative}) {
                for (int i = 0; i < 2; i++) {
                    KafkaConsumer<String, String> m = g.join("partition.assignment.strategy", list);
                    g.until("it is a member", () -> m.groupMetadata().generationId() > 0);
                    if (g.members.size() > 2) g.members.remove(0).close();
                    g.spread(4);
                }
            }
            g.until("40 records", () -> g.records == 40);
            Check.same("strategy", "cooperative-sticky", c.admin.describeConsumerGroups(List.of("upgrade")).describedGroups().get("upgrade").get().partitionAssignor());
        }
    }

    /** A static member that restarts has the same partitions in the same generation. */
    static void statics(Check c) throws Exception {
        c.topic("statics", 4);
        try (Group g = new Group(c, "statics")) {
            g.join("group.instance.id", "a");
            g.join("group.instance.id", "b");
            g.spread(4);
            KafkaConsumer<String, String> b = g.members.remove(1);
            Set<TopicPartition> had = b.assignment();
            int generation = g.generation();
            String id = b.groupMetadata().memberId();
            b.close();
            c.write("statics", 4, 40);
            KafkaConsumer<String, String> again = g.join("group.instance.id", "b");
            g.until("all records", () -> g.records == 40);
            Check.same("assignment", had, again.assignment());
            Check.same("generation", generation, again.groupMetadata().generationId());
            Check.same("generation of the other", generation, g.generation());
            Check.that("the member id is the old one's", !id.equals(again.groupMetadata().memberId()));
        }
    }

    /** The newer of two with one instance id has it, the older is told. */
    static void fenced(Check c) throws Exception {
        c.topic("fenced", 1);
        TopicPartition tp = Check.part("fenced", 0);
        try (KafkaConsumer<String, String> older = c.member("fenced", "group.instance.id", "one", "heartbeat.interval.ms", 1500);
             KafkaConsumer<String, String> newer = c.member("fenced", "group.instance.id", "one")) {
            for (KafkaConsumer<String, String> m : List.of(older, newer)) {
                m.subscribe(List.of("fenced"));
                Check.eventually("it has the partition", () -> { m.poll(Duration.ofMillis(20)); return !m.assignment().isEmpty(); });
                m.commitSync(Map.of(tp, new OffsetAndMetadata(m == older ? 1 : 2)));
            }
            Check.fails(FencedInstanceIdException.class, () -> { older.commitSync(Map.of(tp, new OffsetAndMetadata(3))); return null; });
            Check.fails(FencedInstanceIdException.class, () -> { for (;;) older.poll(Duration.ofMillis(50)); });
            newer.poll(Duration.ZERO);
            Check.same("assignment", Set.of(tp), newer.assignment());
            Check.same("committed", 2L, newer.committed(Set.of(tp)).get(tp).offset());
        }
    }

    static void enforced(Check c) throws Exception {
        c.topic("enforced", 2);
        try (Group g = new Group(c, "enforced")) {
            g.join();
            g.join();
            g.spread(2);
            int generation = g.generation();
            g.members.get(1).enforceRebalance("a test asks");
            g.until("a new generation", () -> g.generation() > generation);
            g.spread(2);
        }
    }
}
