import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What the tests of Java's clients share: clients with their defaults, and assertions. */
class Check {
    static final Duration PATIENCE = Duration.ofSeconds(30);

    final String server;
    final Admin admin;

    Check(String server) {
        this.server = server;
        admin = Admin.create(Map.of("bootstrap.servers", server));
    }

    /** A test: a method that takes what all share. */
    interface Test { void run(Check c) throws Exception; }

    /** Runs the named test; arguments are the server and the name. */
    static void run(String[] args, Map<String, Test> tests) throws Exception {
        Test test = tests.get(args[1]);
        if (test == null) throw new AssertionError("the tests are " + new TreeSet<>(tests.keySet()));
        Check c = new Check(args[0]);
        try (c.admin) { test.run(c); }
    }

    static <T> void same(String what, T want, T got) {
        if (!Objects.equals(want, got)) throw new AssertionError(what + ": " + got + ", want " + want);
    }

    static void that(String what, boolean ok) {
        if (!ok) throw new AssertionError(what);
    }

    /** Waits until a condition holds. */
    static void eventually(String what, Callable<Boolean> ok) throws Exception {
        for (long end = System.nanoTime() + PATIENCE.toNanos(); !ok.call(); Thread.sleep(10))
            that("never: " + what, System.nanoTime() < end);
    }

    /** What something fails with, unwrapped. */
    static <E extends Throwable> E fails(Class<E> type, Callable<?> what) {
        try {
            what.call();
        } catch (Throwable e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            if (type.isInstance(cause)) return type.cast(cause);
            throw new AssertionError("wanted a " + type.getSimpleName() + ", not", cause);
        }
        throw new AssertionError("no " + type.getSimpleName());
    }

    static <E extends Throwable> E fails(Class<E> type, KafkaFuture<?> future) { return fails(type, future::get); }

    /** Settings: these besides the server. */
    Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", server));
        for (int i = 0; i < pairs.length; i += 2) config.put((String) pairs[i], pairs[i + 1]);
        return config;
    }

    KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    KafkaConsumer<String, String> consumer(Object... pairs) {
        Map<String, Object> config = config("auto.offset.reset", "earliest");
        config.putAll(config(pairs));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    /** A group's member that commits when it is told to. */
    KafkaConsumer<String, String> member(String group, Object... pairs) { return member(group, config(pairs)); }

    KafkaConsumer<String, String> member(String group, Map<String, Object> more) {
        Map<String, Object> config = config("auto.offset.reset", "earliest", "enable.auto.commit", false, "group.id", group);
        config.putAll(more);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    void topic(String name, int partitions, String... configs) throws Exception {
        Map<String, String> all = new HashMap<>();
        for (int i = 0; i < configs.length; i += 2) all.put(configs[i], configs[i + 1]);
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(all))).all().get();
    }

    /** Writes records 0 to n-1, in turns to each partition, and waits for them. */
    void write(String topic, int partitions, int n) {
        try (KafkaProducer<String, String> p = producer()) {
            for (int i = 0; i < n; i++) p.send(new ProducerRecord<>(topic, i % partitions, null, String.valueOf(i)));
        }
    }

    /** Reads n records of whatever the consumer has, and checks that no more come at once. */
    static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> c, int n) throws Exception {
        List<ConsumerRecord<String, String>> got = new ArrayList<>();
        eventually(n + " records", () -> {
            c.poll(Duration.ofMillis(100)).forEach(got::add);
            return got.size() >= n;
        });
        same("records", n, got.size());
        return got;
    }

    static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).collect(Collectors.toList());
    }

    static TopicPartition part(String topic, int partition) { return new TopicPartition(topic, partition); }
}
