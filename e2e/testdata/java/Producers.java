import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** Java's producer. */
public class Producers {
    public static void main(String[] args) throws Exception {
        Check.run(args, Map.of(
            "idempotent", Producers::idempotent,
            "idle", Producers::idle,
            "acks", Producers::acks,
            "codecs", Producers::codecs,
            "nulls", Producers::nulls,
            "times", Producers::times,
            "refused", Producers::refused,
            "transactional", Producers::transactional));
    }

    /** The default producer is idempotent: many small batches in flight, in order, once. */
    static void idempotent(Check c) throws Exception {
        final int n = 3000, partitions = 3;
        c.topic("idempotent", partitions);
        try (KafkaProducer<String, String> p = c.producer("batch.size", 200, "linger.ms", 0)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < n; i++) sent.add(p.send(new ProducerRecord<>("idempotent", i % partitions, null, "" + i)));
            for (int i = 0; i < n; i++) Check.same("offset of record " + i, (long) i / partitions, sent.get(i).get().offset());
            for (int at = 0; at < partitions; at++) {
                TopicPartition tp = Check.part("idempotent", at);
                List<ProducerState> states = c.admin.describeProducers(List.of(tp)).partitionResult(tp).get().activeProducers();
                Check.same("producers", 1, states.size());
                ProducerState state = states.get(0);
                Check.same("the last sequence", n / partitions - 1, state.lastSequence());
                Check.same("epoch", 0, state.producerEpoch());
                Check.that("no producer id: " + state, state.producerId() >= 0);
                Check.that("time " + state, Math.abs(System.currentTimeMillis() - state.lastTimestamp()) < 60_000);
                Check.that("a transaction: " + state, state.currentTransactionStartOffset().isEmpty());
            }
        }
        try (KafkaConsumer<String, String> r = c.consumer()) {
            r.assign(List.of(Check.part("idempotent", 1)));
            int next = 1;
            for (String value : Check.values(Check.read(r, n / partitions))) {
                Check.same("record", "" + next, value);
                next += partitions;
            }
        }
    }

    /** A producer whose every record is deleted under it goes on. */
    static void idle(Check c) throws Exception {
        c.topic("idle", 1);
        TopicPartition tp = Check.part("idle", 0);
        try (KafkaProducer<String, String> p = c.producer()) {
            for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 7; i++) p.send(new ProducerRecord<>("idle", "x")).get();
                c.admin.deleteRecords(Map.of(tp, RecordsToDelete.beforeOffset(7L * (round + 1)))).all().get();
            }
            Check.same("offset", 21L, p.send(new ProducerRecord<>("idle", "x")).get().offset());
        }
    }

    static void acks(Check c) throws Exception {
        c.topic("acks", 1);
        for (String acks : new String[] {"0", "1", "all"}) {
            try (KafkaProducer<String, String> p = c.producer("acks", acks, "enable.idempotence", false)) {
                for (int i = 0; i < 10; i++) p.send(new ProducerRecord<>("acks", acks)).get();
            }
        }
        TopicPartition tp = Check.part("acks", 0);
        Check.eventually("all are there", () -> c.admin.listOffsets(Map.of(tp, OffsetSpec.latest())).partitionResult(tp).get().offset() == 30);
    }

    /** Every codec, as the producer sends it and as the topic makes it. */
    static void codecs(Check c) throws Exception {
        String[] codecs = {"none", "gzip", "snappy", "lz4", "zstd"};
        for (String stored : new String[] {"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"}) {
            String topic = "codecs-" + stored;
            c.topic(topic, 1, "compression.type", stored);
            for (String sent : codecs) {
                try (KafkaProducer<String, String> p = c.producer("compression.type", sent, "linger.ms", 100)) {
                    for (int i = 0; i < 100; i++) p.send(new ProducerRecord<>(topic, sent + " " + "silt ".repeat(i)));
                }
            }
            try (KafkaConsumer<String, String> r = c.consumer()) {
                r.assign(List.of(Check.part(topic, 0)));
                List<String> got = Check.values(Check.read(r, 500));
                for (int i = 0; i < 500; i++) Check.same("record " + i, codecs[i / 100] + " " + "silt ".repeat(i % 100), got.get(i));
                r.seek(Check.part(topic, 0), 250); // inside a batch
                Check.same("records from the middle of a batch", got.subList(250, 500), Check.values(Check.read(r, 250)));
            }
        }
    }

    static void nulls(Check c) throws Exception {
        c.topic("nulls", 1);
        String[] some = {null, "", "x"};
        RecordHeaders headers = new RecordHeaders();
        headers.add("h", null).add("h", new byte[0]).add("", "y".getBytes(StandardCharsets.UTF_8)).add("h", "x".getBytes(StandardCharsets.UTF_8));
        try (KafkaProducer<String, String> p = c.producer("compression.type", "snappy")) {
            for (String key : some)
                for (String value : some) p.send(new ProducerRecord<>("nulls", 0, key, value, headers));
        }
        try (KafkaConsumer<String, String> r = c.consumer()) {
            r.assign(List.of(Check.part("nulls", 0)));
            int i = 0;
            for (ConsumerRecord<String, String> record : Check.read(r, 9)) {
                Check.same("key", some[i / 3], record.key());
                Check.same("value", some[i % 3], record.value());
                Check.same("headers", headers, record.headers());
                i++;
            }
        }
    }

    /** CreateTime is the producer's, LogAppendTime the server's, in the answer and in the record. */
    static void times(Check c) throws Exception {
        c.topic("created", 1);
        c.topic("appended", 1, "message.timestamp.type", "LogAppendTime");
        final long then = 1_500_000_000_000L;
        long before = System.currentTimeMillis();
        for (String topic : new String[] {"created", "appended"}) {
            boolean created = topic.equals("created");
            try (KafkaProducer<String, String> p = c.producer(); KafkaConsumer<String, String> r = c.consumer()) {
                long answered = p.send(new ProducerRecord<>(topic, 0, then, null, "x")).get().timestamp();
                if (created) Check.same("answered time", then, answered);
                else Check.that("answered time " + answered, answered >= before && answered <= System.currentTimeMillis());
                r.assign(List.of(Check.part(topic, 0)));
                ConsumerRecord<String, String> record = Check.read(r, 1).get(0);
                Check.same("time of the record", answered, record.timestamp());
                Check.same("its type", created ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME, record.timestampType());
                Check.same("leader epoch known", true, record.leaderEpoch().isPresent());
            }
        }
    }

    /** What the server refuses is told at once, and the producer goes on. */
    static void refused(Check c) throws Exception {
        c.topic("refused", 1, "max.message.bytes", "1000", "cleanup.policy", "compact");
        try (KafkaProducer<String, String> p = c.producer()) {
            Check.fails(RecordTooLargeException.class, () -> p.send(new ProducerRecord<>("refused", "k", "x".repeat(10_000))).get());
            Check.fails(InvalidRecordException.class, () -> p.send(new ProducerRecord<>("refused", "no key")).get());
            Check.same("offset", 0L, p.send(new ProducerRecord<>("refused", "k", "v")).get().offset());
        }
    }

    /** Until there are transactions, they are refused at once. */
    static void transactional(Check c) {
        try (KafkaProducer<String, String> p = c.producer("transactional.id", "t", "max.block.ms", 20_000)) {
            KafkaException e = Check.fails(KafkaException.class, () -> { p.initTransactions(); return null; });
            Check.that("a time-out, not a refusal: " + e, !(e instanceof TimeoutException));
            Check.that("not in words: " + e, e.getMessage().contains("does not serve transactions"));
        }
    }
}
