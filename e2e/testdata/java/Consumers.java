import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.OffsetMetadataTooLarge;

/** Java's consumer by itself: commits, positions, what it is assigned. Members together are in Members. */
public class Consumers {
    public static void main(String[] args) throws Exception {
        Check.run(args, Map.of(
            "commits", Consumers::commits,
            "automatic", Consumers::automatic,
            "positions", Consumers::positions,
            "times", Consumers::times,
            "resets", Consumers::resets,
            "pattern", Consumers::pattern,
            "late", Consumers::late));
    }

    static void commits(Check c) throws Exception {
        c.topic("commits", 2);
        c.write("commits", 2, 20);
        TopicPartition p0 = Check.part("commits", 0), p1 = Check.part("commits", 1);
        try (KafkaConsumer<String, String> r = c.member("commits")) {
            r.subscribe(List.of("commits"));
            Check.read(r, 20);
            Check.same("nothing is committed", 0L, r.committed(Set.of(p0, p1)).values().stream().filter(o -> o != null).count());
            r.commitSync(Map.of(p0, new OffsetAndMetadata(3, Optional.of(0), "note")));
            Map<TopicPartition, OffsetAndMetadata> committed = r.committed(Set.of(p0, p1));
            Check.same("committed", new OffsetAndMetadata(3, Optional.of(0), "note"), committed.get(p0));
            Check.same("not committed", null, committed.get(p1));

            AtomicReference<Object> outcome = new AtomicReference<>();
            r.commitAsync((offsets, e) -> outcome.set(e == null ? offsets.keySet() : e));
            Check.eventually("the answer", () -> { r.poll(Duration.ZERO); return outcome.get() != null; });
            Check.same("committed without waiting", Set.of(p0, p1), outcome.get());
            Check.same("position", 10L, r.position(p0));
            Check.same("committed", 10L, r.committed(Set.of(p0)).get(p0).offset());

            OffsetAndMetadata tooLong = new OffsetAndMetadata(4, "x".repeat(5000));
            Check.fails(OffsetMetadataTooLarge.class, () -> { r.commitSync(Map.of(p0, tooLong)); return null; });
            Check.same("committed still", 10L, r.committed(Set.of(p0)).get(p0).offset());
            r.commitSync(Map.of(p1, new OffsetAndMetadata(7)));
        }
        try (KafkaConsumer<String, String> r = c.member("commits")) {
            r.subscribe(List.of("commits"));
            Check.same("what was not committed", List.of("15", "17", "19"), Check.values(Check.read(r, 3)));
        }
        // Without a subscription: a group that has only offsets.
        try (KafkaConsumer<String, String> r = c.member("simple")) {
            r.assign(List.of(p0));
            Check.read(r, 10);
            r.commitSync();
            Check.same("committed", 10L, r.committed(Set.of(p0)).get(p0).offset());
        }
    }

    static void automatic(Check c) throws Exception {
        c.topic("automatic", 1);
        c.write("automatic", 1, 10);
        TopicPartition tp = Check.part("automatic", 0);
        try (KafkaConsumer<String, String> r = c.consumer("group.id", "automatic", "auto.commit.interval.ms", 50)) {
            r.subscribe(List.of("automatic"));
            Check.read(r, 10);
            Check.eventually("a commit", () -> {
                r.poll(Duration.ofMillis(20));
                OffsetAndMetadata at = r.committed(Set.of(tp)).get(tp);
                return at != null && at.offset() == 10;
            });
            c.write("automatic", 1, 5);
            Check.read(r, 5);
        } // and what was read last is committed by the close
        try (KafkaConsumer<String, String> r = c.member("automatic")) {
            Check.same("committed at the close", 15L, r.committed(Set.of(tp)).get(tp).offset());
        }
    }

    static void positions(Check c) throws Exception {
        c.topic("positions", 2);
        c.write("positions", 2, 20);
        TopicPartition p0 = Check.part("positions", 0), p1 = Check.part("positions", 1);
        List<TopicPartition> both = List.of(p0, p1);
        try (KafkaConsumer<String, String> r = c.member("positions")) {
            r.subscribe(List.of("positions"));
            Check.read(r, 20);
            r.seek(p0, 8);
            Check.same("after seeking", List.of("16", "18"), Check.values(Check.read(r, 2)));
            r.seekToBeginning(List.of(p1));
            Check.same("from the beginning", 10, Check.read(r, 10).size());
            r.seekToEnd(both);
            Check.same("position at the end", 10L, r.position(p1));
            Check.same("first offsets", Map.of(p0, 0L, p1, 0L), r.beginningOffsets(both));
            Check.same("end offsets", Map.of(p0, 10L, p1, 10L), r.endOffsets(both));

            r.pause(List.of(p0));
            Check.same("paused", Set.of(p0), r.paused());
            c.write("positions", 2, 4);
            Check.same("while one is paused", List.of("1", "3"), Check.values(Check.read(r, 2)));
            r.resume(List.of(p0));
            Check.same("once it is resumed", List.of("0", "2"), Check.values(Check.read(r, 2)));
            Check.same("lag", 0L, r.currentLag(p0).orElse(-1));
        }
    }

    static void times(Check c) throws Exception {
        c.topic("looked-up", 1);
        TopicPartition tp = Check.part("looked-up", 0);
        try (KafkaProducer<String, String> p = c.producer("compression.type", "lz4", "linger.ms", 100)) {
            for (long at = 2; at <= 8; at += 2) p.send(new ProducerRecord<>("looked-up", 0, at, null, "x"));
        }
        try (KafkaConsumer<String, String> r = c.consumer()) {
            long[] want = {0, 1, 1, 2, 2, 3, 3};
            for (int i = 0; i < want.length; i++) {
                OffsetAndTimestamp at = r.offsetsForTimes(Map.of(tp, 2L + i)).get(tp);
                Check.same("offset for time " + (2 + i), want[i], at.offset());
                Check.same("time at offset " + at.offset(), 2 * at.offset() + 2, at.timestamp());
            }
            Check.same("nothing is so late", null, r.offsetsForTimes(Map.of(tp, 9L)).get(tp));
        }
    }

    /** Where a consumer begins that has no offset, or one that is gone. */
    static void resets(Check c) throws Exception {
        c.topic("resets", 1);
        c.write("resets", 1, 10);
        TopicPartition tp = Check.part("resets", 0);
        try (KafkaConsumer<String, String> r = c.member("resets", "auto.offset.reset", "none")) {
            r.subscribe(List.of("resets"));
            Check.fails(NoOffsetForPartitionException.class, () -> { for (;;) r.poll(Duration.ofMillis(100)); });
        }
        c.admin.deleteRecords(Map.of(tp, RecordsToDelete.beforeOffset(4))).all().get();
        for (String reset : new String[] {"earliest", "latest", "none"}) {
            try (KafkaConsumer<String, String> r = c.member("resets", "auto.offset.reset", reset)) {
                r.assign(List.of(tp));
                r.seek(tp, 2);
                switch (reset) {
                    case "earliest" -> Check.same("records", List.of("4", "5", "6", "7", "8", "9"), Check.values(Check.read(r, 6)));
                    case "latest" -> Check.eventually("the end", () -> { r.poll(Duration.ofMillis(50)); return r.position(tp) == 10; });
                    default -> Check.fails(OffsetOutOfRangeException.class, () -> { for (;;) r.poll(Duration.ofMillis(100)); });
                }
            }
        }
    }

    /** A pattern's topics are found as they appear, and given up when they are deleted. */
    static void pattern(Check c) throws Exception {
        c.topic("pattern-1", 1);
        try (KafkaConsumer<String, String> r = c.member("pattern", "metadata.max.age.ms", 100)) {
            r.subscribe(Pattern.compile("pattern-.*"));
            Set<TopicPartition> one = Set.of(Check.part("pattern-1", 0)), both = Set.of(Check.part("pattern-1", 0), Check.part("pattern-2", 0));
            Check.eventually("one topic", () -> { r.poll(Duration.ofMillis(50)); return r.assignment().equals(one); });
            c.topic("pattern-2", 1);
            Check.eventually("two topics", () -> { r.poll(Duration.ofMillis(50)); return r.assignment().equals(both); });
            c.admin.deleteTopics(List.of("pattern-2")).all().get();
            Check.eventually("one topic again", () -> { r.poll(Duration.ofMillis(50)); return r.assignment().equals(one); });
        }
    }

    /** Who polls too late is put out of its group, cannot commit, and comes back. */
    static void late(Check c) throws Exception {
        c.topic("late", 1);
        c.write("late", 1, 10);
        TopicPartition tp = Check.part("late", 0);
        List<Collection<TopicPartition>> lost = new ArrayList<>();
        try (KafkaConsumer<String, String> r = c.member("late", "max.poll.interval.ms", 2000, "heartbeat.interval.ms", 500)) {
            AtomicInteger assigned = new AtomicInteger();
            r.subscribe(List.of("late"), new Members.Listener() {
                @Override public void onPartitionsAssigned(Collection<TopicPartition> p) { assigned.incrementAndGet(); }
                @Override public void onPartitionsLost(Collection<TopicPartition> p) { lost.add(new HashSet<>(p)); }
            });
            Check.read(r, 10);
            Check.eventually("the group is empty", () -> c.admin.describeConsumerGroups(List.of("late")).describedGroups().get("late").get().members().isEmpty());
            Check.fails(CommitFailedException.class, () -> { r.commitSync(); return null; });
            List<ConsumerRecord<String, String>> again = new ArrayList<>();
            Check.eventually("all over again", () -> { r.poll(Duration.ofMillis(50)).forEach(again::add); return again.size() == 10; });
            Check.same("times that it was assigned", 2, assigned.get());
            Check.same("lost", List.of(Set.of(tp)), lost);
            r.commitSync();
            Check.same("committed", 10L, r.committed(Set.of(tp)).get(tp).offset());
        }
    }
}
