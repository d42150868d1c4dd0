// Writes and reads the batches of this folder with Kafka's own Java client.
//
//	java -cp <kafka-clients and its codecs> Golden.java write DIR   makes DIR/java-*.bin
//	java -cp <kafka-clients and its codecs> Golden.java read FILE…  prints the records
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.compress.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;

public class Golden {
    static final long TIME = 1750000000000L;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("read")) {
            for (String file : Arrays.asList(args).subList(1, args.length)) read(Path.of(file));
            return;
        }
        Path dir = Path.of(args[1]);
        Map<String, Compression> codecs = new LinkedHashMap<>();
        codecs.put("none", Compression.NONE);
        codecs.put("gzip", Compression.gzip().build());
        codecs.put("snappy", Compression.snappy().build());
        codecs.put("lz4", Compression.lz4().build());
        codecs.put("lz4-level17", Compression.lz4().level(17).build());
        codecs.put("zstd", Compression.zstd().build());
        codecs.put("zstd-level22", Compression.zstd().level(22).build());
        for (var codec : codecs.entrySet()) {
            var b = builder(codec.getValue(), -1, (short) -1, -1, false);
            fill(b, codec.getValue().type() == CompressionType.NONE ? 1_000 : 150_000);
            Files.write(dir.resolve("java-" + codec.getKey() + ".bin"), bytes(b.build()));
        }
        var b = builder(Compression.NONE, 4711, (short) 3, 42, true);
        fill(b, 1_000);
        Files.write(dir.resolve("java-transactional.bin"), bytes(b.build()));
        for (var type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            var marker = MemoryRecords.withEndTransactionMarker(77, TIME, 9, 4711, (short) 3,
                new EndTransactionMarker(type, 12));
            Files.write(dir.resolve("java-" + type.name().toLowerCase() + ".bin"), bytes(marker));
        }
    }

    static MemoryRecordsBuilder builder(Compression codec, long id, short epoch, int sequence, boolean transactional) {
        return MemoryRecords.builder(ByteBuffer.allocate(1024), RecordBatch.MAGIC_VALUE_V2, codec,
            TimestampType.CREATE_TIME, 0, RecordBatch.NO_TIMESTAMP, id, epoch, sequence, transactional, 7);
    }

    // The mixes of null, empty and full; then enough text for more than one block of each codec.
    static void fill(MemoryRecordsBuilder b, int textBytes) {
        byte[][] mix = {null, {}, {'x'}};
        long at = TIME + 5;
        for (byte[] key : mix)
            for (byte[] value : mix)
                b.append(at--, key, value, new Header[] {
                    new RecordHeader("h", (byte[]) null), new RecordHeader("h", new byte[0]),
                    new RecordHeader("h", new byte[] {'y'}), new RecordHeader("", new byte[] {'z'})});
        StringBuilder text = new StringBuilder();
        for (int i = 0; text.length() < textBytes; i++) text.append("line ").append(i * 7919 % 1000).append('\n');
        b.append(TIME, "text".getBytes(), text.toString().getBytes());
        b.append(-1, "none".getBytes(), null);
    }

    static byte[] bytes(MemoryRecords records) {
        byte[] out = new byte[records.sizeInBytes()];
        records.buffer().get(out);
        return out;
    }

    static void read(Path file) throws Exception {
        var records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file)));
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            System.out.printf("%s %s offsets %d-%d max %d producer %d/%d/%d%n", file.getFileName(), batch.compressionType(),
                batch.baseOffset(), batch.lastOffset(), batch.maxTimestamp(), batch.producerId(), batch.producerEpoch(), batch.baseSequence());
            for (org.apache.kafka.common.record.Record r : batch) {
                r.ensureValid();
                System.out.printf("%d %d %s %s", r.offset(), r.timestamp(), show(r.key()), show(r.value()));
                for (Header h : r.headers()) System.out.printf(" %s=%s", h.key(), show(h.value() == null ? null : ByteBuffer.wrap(h.value())));
                System.out.println();
            }
        }
    }

    static String show(ByteBuffer b) {
        if (b == null) return "null";
        byte[] out = new byte[b.remaining()];
        b.get(out);
        return out.length < 16 ? '"' + new String(out) + '"' : out.length + " bytes, hash " + Arrays.hashCode(out);
    }
}
