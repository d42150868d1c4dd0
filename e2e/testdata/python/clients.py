"""kafka-python: its producer and its consumer, with their defaults where a test is not about a setting."""

import time
from concurrent.futures import ThreadPoolExecutor

from check import eventually, fails, run, same, server
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaError, MessageSizeTooLargeError, NoOffsetForPartitionError
from kafka.structs import OffsetAndMetadata


def topic(name, partitions=1, **configs):
    admin = KafkaAdminClient(bootstrap_servers=server)
    admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1, "configs": {k.replace("_", "."): v for k, v in configs.items()}}})
    admin.close()


def producer(**config):
    return KafkaProducer(bootstrap_servers=server, **config)


def write(name, partitions, n):
    """Writes 0 to n-1, in turns to each partition."""
    p = producer()
    for i in range(n):
        p.send(name, b"%d" % i, partition=i % partitions)
    p.flush()
    p.close()


# How long a poll of a group's member lasts. What kafka-python 3.0.12 is answered
# after the poll in which it asked to join has ended is lost: it joins anew, and
# where it is the leader everybody has to (join_group_async, where _join_task is
# done). So a poll is far longer than a rebalance, and members poll at once.
POLL_MS = 1000


def consumer(*topics, **config):
    return KafkaConsumer(*topics, bootstrap_servers=server, auto_offset_reset="earliest", **config)


def read(c, n):
    """Reads n records, and checks that no more come at once."""
    got = []

    def enough():
        for records in c.poll(timeout_ms=POLL_MS).values():
            got.extend(records)
        return len(got) >= n

    eventually(f"{n} records", enough)
    same("records", n, len(got))
    return got


def idempotent():
    """The default producer: many small batches in flight, in order, once, and its state as the server has it."""
    topic("idempotent", 2)
    p = producer(batch_size=200)
    sent = [p.send("idempotent", b"%d" % i, partition=i % 2) for i in range(2000)]
    for i, f in enumerate(sent):
        same(f"offset of record {i}", i // 2, f.get(timeout=30).offset)
    tp = TopicPartition("idempotent", 1)
    admin = KafkaAdminClient(bootstrap_servers=server)
    states = list(admin.describe_producers([tp])[tp].active_producers)
    same("producers", 1, len(states))
    same("last sequence", 999, states[0].last_sequence)
    same("epoch", 0, states[0].producer_epoch)
    admin.close()
    p.close()
    c = consumer()
    c.assign([tp])
    same("records", [b"%d" % i for i in range(1, 2000, 2)], [r.value for r in read(c, 1000)])
    c.close()


def acks():
    topic("acks")
    for how in (0, 1, "all"):
        p = producer(acks=how, enable_idempotence=False)
        for _ in range(10):
            f = p.send("acks", b"x")
        if how != 0:
            f.get(timeout=30)
        p.flush()
        p.close()
    c = consumer()
    tp = TopicPartition("acks", 0)
    eventually("all are there", lambda: c.end_offsets([tp])[tp] == 30)
    c.close()


def codecs():
    topic("codecs")
    names = [None, "gzip", "snappy", "lz4", "zstd"]
    for name in names:
        p = producer(compression_type=name, linger_ms=100)
        for i in range(50):
            p.send("codecs", b"silt " * i, key=b"%d" % i, headers=[("h", str(name).encode())])
        p.flush()
        p.close()
    c = consumer("codecs")
    for i, r in enumerate(read(c, 250)):
        same("record", (b"%d" % (i % 50), b"silt " * (i % 50), [("h", str(names[i // 50]).encode())]), (r.key, r.value, r.headers))
    c.seek(TopicPartition("codecs", 0), 125)
    same("from inside a batch", list(range(125, 250)), [r.offset for r in read(c, 125)])
    c.close()


def nulls():
    topic("nulls")
    p = producer()
    some = [None, b"", b"x"]
    mixes = [(key, value) for key in some for value in some if (key, value) != (None, None)]  # which it refuses
    headers = [("h", b""), ("h", b"y"), ("", b"z"), ("h", b"x")]
    for key, value in mixes:
        p.send("nulls", value, key=key, headers=headers)
    p.flush()
    p.close()
    c = consumer("nulls")
    for mix, r in zip(mixes, read(c, len(mixes))):
        same("record", (mix, headers), ((r.key, r.value), r.headers))
    c.close()


def times():
    topic("created")
    topic("appended", message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    p = producer()
    for name, kind in ("created", 0), ("appended", 1):
        answered = p.send(name, b"x", timestamp_ms=1500000000000).get(timeout=30).timestamp
        c = consumer(name)
        r = read(c, 1)[0]
        same(f"type of time, {name}", kind, r.timestamp_type)
        same(f"time, {name}", answered, r.timestamp)
        if kind == 0:
            same("time", 1500000000000, r.timestamp)
        else:
            assert before <= r.timestamp <= time.time() * 1000, r.timestamp
        c.close()
    p.close()


def refused():
    topic("refused", max_message_bytes="1000")
    p = producer()
    fails(MessageSizeTooLargeError, lambda: p.send("refused", b"x" * 10000).get(timeout=30))
    p.close()
    p = producer()
    same("offset", 0, p.send("refused", b"x").get(timeout=30).offset)
    p.close()


def transactional():
    """Until there are transactions, they are refused at once."""
    p = producer(transactional_id="t", max_block_ms=20000)
    e = fails(KafkaError, p.init_transactions)
    assert "ClusterAuthorizationFailed" in str(e), repr(e)
    p.close()


def commits():
    topic("commits", 2)
    write("commits", 2, 20)
    p0, p1 = TopicPartition("commits", 0), TopicPartition("commits", 1)
    c = consumer("commits", group_id="commits", enable_auto_commit=False)
    read(c, 20)
    same("nothing is committed", None, c.committed(p0))
    c.commit({p0: OffsetAndMetadata(3, "note", 0)})
    same("committed", OffsetAndMetadata(3, "note", 0), c.committed(p0, metadata=True))
    outcome = []
    c.commit_async({p1: OffsetAndMetadata(7, "", -1)}, callback=lambda offsets, response: outcome.append(response))
    eventually("the answer", lambda: (c.poll(timeout_ms=10), outcome)[1])
    same("committed without waiting", 7, c.committed(p1))
    c.close()
    c = consumer("commits", group_id="commits", enable_auto_commit=False)
    same("the rest", {0: list(range(3, 10)), 1: list(range(7, 10))}, by_partition(read(c, 10)))
    c.close()
    # It commits by itself, the last when it is closed.
    c = consumer("commits", group_id="automatic", auto_commit_interval_ms=100)
    read(c, 20)
    eventually("a commit", lambda: (c.poll(timeout_ms=10), c.committed(p0))[1] == 10)
    write("commits", 2, 2)
    read(c, 2)
    c.close()
    c = consumer(group_id="automatic")
    same("committed at the close", 11, c.committed(p0))
    c.close()


def by_partition(records):
    offsets = {}
    for r in records:
        offsets.setdefault(r.partition, []).append(r.offset)
    return offsets


def positions():
    topic("positions", 2)
    write("positions", 2, 20)
    p0, p1 = TopicPartition("positions", 0), TopicPartition("positions", 1)
    c = consumer("positions", group_id="positions", enable_auto_commit=False)
    read(c, 20)
    c.seek(p0, 8)
    same("after seeking", [b"16", b"18"], [r.value for r in read(c, 2)])
    c.seek_to_beginning(p1)
    read(c, 10)
    c.seek_to_end(p0, p1)
    same("position at the end", 10, c.position(p1))
    same("first offsets", {p0: 0, p1: 0}, c.beginning_offsets([p0, p1]))
    same("end offsets", {p0: 10, p1: 10}, c.end_offsets([p0, p1]))
    c.pause(p0)
    write("positions", 2, 4)
    same("while one is paused", [b"1", b"3"], [r.value for r in read(c, 2)])
    c.resume(p0)
    same("once it is resumed", [b"0", b"2"], [r.value for r in read(c, 2)])
    c.close()

    topic("looked-up")
    p = producer(compression_type="gzip", linger_ms=100)
    for at in (2, 4, 6, 8):
        p.send("looked-up", b"x", timestamp_ms=at)
    p.flush()
    p.close()
    tp = TopicPartition("looked-up", 0)
    c = consumer()
    found = [c.offsets_for_times({tp: at})[tp] for at in range(2, 10)]
    same("offsets for times", [0, 1, 1, 2, 2, 3, 3, None], [f and f.offset for f in found])
    c.close()
    strict = KafkaConsumer("looked-up", bootstrap_servers=server, group_id="strict", auto_offset_reset="none")

    def poll():
        for _ in range(100):
            strict.poll(timeout_ms=100)

    fails(NoOffsetForPartitionError, poll)
    strict.close()


class Group:
    """Members, polled at once; each commits by itself before it gives a partition up."""

    def __init__(self, name, assignor):
        self.name, self.assignor, self.members = name, assignor, []
        self.next, self.records = {}, 0
        self.threads = ThreadPoolExecutor()

    def join(self, **config):
        m = consumer(self.name, group_id=self.name, auto_commit_interval_ms=60000, heartbeat_interval_ms=200, partition_assignment_strategy=(self.assignor,), **config)
        self.members.append(m)
        return m

    def poll(self):
        for polled in self.threads.map(lambda m: m.poll(timeout_ms=POLL_MS), self.members):
            for tp, records in polled.items():
                for r in records:
                    same(f"offset in {tp}", self.next.get(tp, 0), r.offset)
                    self.next[tp] = r.offset + 1
                    self.records += 1

    def until(self, what, ok):
        eventually(what, lambda: (self.poll(), ok())[1])

    def spread(self, partitions):
        """Waits until the partitions are spread evenly, each with one owner."""
        each = partitions // len(self.members)

        def even():
            owned = [m.assignment() for m in self.members]
            return all(len(o) == each for o in owned) and len(set().union(*owned)) == partitions

        self.until(f"{partitions} partitions over {len(self.members)} members", even)

    def close(self):
        for m in self.members:
            m.close()


def rebalance(name, assignor):
    """One, two, three members, then two again: each record is read once."""
    topic(name, 6)
    g = Group(name, assignor)
    for members in 1, 2, 3:
        g.join()
        write(name, 6, 60)
        g.spread(6)
    g.members.pop(1).close()
    write(name, 6, 60)
    g.spread(6)
    g.until("240 records", lambda: g.records == 240)
    for m in g.members:
        m.commit()
    g.until("all is committed", lambda: all(g.members[0].committed(tp) == offset for tp, offset in g.next.items()))
    g.close()


def statics():
    """A static member that restarts has the same partitions in the same generation; a newer one fences it."""
    topic("statics", 2)
    g = Group("statics", RangePartitionAssignor)
    g.join(group_instance_id="a")
    b = g.join(group_instance_id="b")
    g.spread(2)
    had, generation = b.assignment(), b.group_metadata().generation_id
    g.members.remove(b)
    b.close()
    again = g.join(group_instance_id="b")
    g.spread(2)
    same("assignment", had, again.assignment())
    same("generation", [generation] * 2, [m.group_metadata().generation_id for m in g.members])
    g.members.remove(again)
    g.join(group_instance_id="b")
    g.spread(2)
    fails(FencedInstanceIdError, lambda: again.commit({list(had)[0]: OffsetAndMetadata(0, "", -1)}))
    g.close()


def late():
    """Who polls too late is put out of its group, and cannot commit."""
    topic("late")
    write("late", 1, 10)
    c = consumer("late", group_id="late", enable_auto_commit=False, max_poll_interval_ms=1000, heartbeat_interval_ms=200, session_timeout_ms=6000)
    read(c, 10)
    admin = KafkaAdminClient(bootstrap_servers=server)
    eventually("the group is empty", lambda: admin.describe_groups(["late"])["late"]["group_state"] == "Empty")
    admin.close()
    fails(CommitFailedError, c.commit)
    c.close()


run({
    "idempotent": idempotent,
    "acks": acks,
    "codecs": codecs,
    "nulls": nulls,
    "times": times,
    "refused": refused,
    "transactional": transactional,
    "commits": commits,
    "positions": positions,
    "eager": lambda: rebalance("eager", RangePartitionAssignor),
    "cooperative": lambda: rebalance("cooperative", CooperativeStickyAssignor),
    "statics": statics,
    "late": late,
})
