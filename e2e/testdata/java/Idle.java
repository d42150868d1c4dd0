import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Report 18: an idempotent producer that is idle for a while. Arguments: server, its topic, and the topic whose creation it waits for. */
public class Idle {
    public static void main(String[] args) throws Exception {
        Check c = new Check(args[0]);
        try (c.admin; KafkaProducer<String, String> p = c.producer()) {
            for (int i = 0; i < 15; i++) {
                if (i == 7) Check.eventually("leave to go on", () -> c.admin.listTopics().names().get().contains(args[2]));
                Check.same("offset of record " + i, (long) i, p.send(new ProducerRecord<>(args[1], "" + i)).get().offset());
            }
        }
    }
}
