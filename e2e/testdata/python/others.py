"""Clients of other families: confluent-kafka (the newest librdkafka) and aiokafka."""

import asyncio
import time

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AIONewTopic
from check import PATIENCE, eventually, fails, run, same, server
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, NewTopic


def create(name, partitions=1, **configs):
    admin = AdminClient({"bootstrap.servers": server, "allow.auto.create.topics": False})
    admin.create_topics([NewTopic(name, partitions, 1, config={k.replace("_", "."): v for k, v in configs.items()})])[name].result()
    return admin


def consumer(group, **config):
    return Consumer({"bootstrap.servers": server, "group.id": group, "auto.offset.reset": "earliest", **{k.replace("_", "."): v for k, v in config.items()}})


def produce(name, values, partition=0, timestamp=0, **config):
    """Produces values and returns what their deliveries report."""
    p = Producer({"bootstrap.servers": server, **{k.replace("_", "."): v for k, v in config.items()}})
    delivered = []

    def report(err, message):
        if err is not None:
            raise KafkaException(err)
        delivered.append(message)

    for value in values:
        p.produce(name, value, partition=partition, timestamp=timestamp, on_delivery=report)
    p.flush(30)
    same("delivered", len(values), len(delivered))
    return delivered


def read(c, n):
    got = []

    def enough():
        message = c.poll(0.1)
        if message is not None:
            if message.error():
                raise KafkaException(message.error())
            got.append(message)
        return len(got) >= n

    eventually(f"{n} records", enough)
    return got


def times():
    """Report 1: offsets for times between records."""
    create("c-times")
    for at in (2, 4, 6, 8):
        produce("c-times", [b"x"], timestamp=at)
    c = consumer("c-times")
    found = [c.offsets_for_times([TopicPartition("c-times", 0, at)], timeout=30)[0] for at in range(2, 10)]
    same("offsets", [0, 1, 1, 2, 2, 3, 3, -1], [tp.offset for tp in found])
    c.close()


def appended():
    """Report 3: the time in a delivery report is the log's, where the log says so."""
    create("c-created")
    create("c-appended", message_timestamp_type="LogAppendTime")
    for name, kind in ("c-created", TIMESTAMP_CREATE_TIME), ("c-appended", TIMESTAMP_LOG_APPEND_TIME):
        before = time.time() * 1000
        delivered = produce(name, [b"x"], timestamp=1)[0].timestamp()
        same(f"type, {name}", kind, delivered[0])
        if kind == TIMESTAMP_CREATE_TIME:
            same("time", 1, delivered[1])
        else:
            assert before - 1 <= delivered[1] <= time.time() * 1000, delivered
        c = consumer("c-appended")
        c.assign([TopicPartition(name, 0, 0)])
        same(f"as consumed, {name}", delivered, read(c, 1)[0].timestamp())
        c.close()


def transactional():
    """Until there are transactions, they are refused at once, and in words."""
    p = Producer({"bootstrap.servers": server, "transactional.id": "t"})
    e = fails(KafkaException, lambda: p.init_transactions(PATIENCE)).args[0]
    same("error", (KafkaError.CLUSTER_AUTHORIZATION_FAILED, True), (e.code(), e.fatal()))
    assert "does not serve transactions" in e.str(), e.str()


def admin():
    """Reports 9 and 10: settings by both ways to alter them, and topics that are not there."""
    a = create("c-admin", retention_ms="100000", max_message_bytes="5000")

    def resource(**configs):
        entries = [ConfigEntry(k.replace("_", "."), v, incremental_operation=AlterConfigOpType.SET) for k, v in configs.items()]
        return ConfigResource(ConfigResource.Type.TOPIC, "c-admin", incremental_configs=entries)

    def described():
        r = ConfigResource(ConfigResource.Type.TOPIC, "c-admin")
        return a.describe_configs([r])[r].result()

    same("set at creation", ("100000", "5000"), (described()["retention.ms"].value, described()["max.message.bytes"].value))
    a.incremental_alter_configs([resource(retention_ms="200000")])[resource()].result()
    same("one altered", ("200000", "5000"), (described()["retention.ms"].value, described()["max.message.bytes"].value))
    r = ConfigResource(ConfigResource.Type.TOPIC, "c-admin", set_config={"retention.ms": "300000"})
    a.alter_configs([r])[r].result()
    same("one altered the older way", ("300000", "1048588"), (described()["retention.ms"].value, described()["max.message.bytes"].value))
    same("the other's source", ConfigSource.DEFAULT_CONFIG.value, described()["max.message.bytes"].source)
    assert described()["max.message.bytes"].synonyms, "no synonyms"

    missing = ConfigResource(ConfigResource.Type.TOPIC, "c-missing")
    e = fails(KafkaException, lambda: a.describe_configs([missing])[missing].result())
    same("configs of no topic", "UNKNOWN_TOPIC_OR_PART", e.args[0].name())
    same("no topic", "UNKNOWN_TOPIC_OR_PART", a.list_topics("c-missing", timeout=30).topics["c-missing"].error.name())
    assert "c-missing" not in a.list_topics(timeout=30).topics, "asking about a topic made it"


def groups():
    """Members of each protocol come and go; every record is read.

    Not always once: librdkafka may hand out what it had fetched before it gave
    the partition up and got it again.
    """
    for strategy in "range", "roundrobin", "cooperative-sticky":
        name = "c-" + strategy
        create(name, 6)
        members, seen, lost = [], set(), []

        def join():
            c = consumer(name, enable_auto_commit=False, partition_assignment_strategy=strategy, heartbeat_interval_ms=200)
            c.subscribe([name], on_revoke=commit, on_lost=lambda c, partitions: lost.append(partitions))
            members.append(c)

        def commit(c, partitions):
            read_to = [p for p in c.position(partitions) if p.offset >= 0]
            if read_to:
                c.commit(offsets=read_to, asynchronous=False)

        def poll():
            for c in members:
                message = c.poll(0.01)
                if message is not None:
                    seen.add((message.partition(), message.offset()))

        def spread():
            poll()
            owned = [{tp.partition for tp in c.assignment()} for c in members]
            return all(len(o) == 6 // len(members) for o in owned) and len(set().union(*owned)) == 6

        for count in 1, 2, 3:
            join()
            for p in range(6):
                produce(name, [b"x"] * 5, partition=p)
            eventually(f"{count} members", spread)
        # All is read, so nobody has a call back of the rebalance before it:
        # librdkafka that is closed then leaves it out, or hangs.
        eventually("90 records", lambda: (poll(), len(seen))[1] == 90)
        members.pop(0).close()
        for p in range(6):
            produce(name, [b"x"] * 5, partition=p)
        eventually("two members", spread)
        eventually("120 records", lambda: (poll(), len(seen))[1] == 120)
        same("lost", [], lost)
        tps = [TopicPartition(name, p) for p in range(6)]

        def all_committed():
            poll()
            for c in members:
                commit(c, c.assignment())
            return [tp.offset for tp in members[0].committed(tps, timeout=30)] == [20] * 6

        eventually("all is committed", all_committed)
        a = AdminClient({"bootstrap.servers": server})
        same("described", ("STABLE", 2), (lambda g: (g.state.name, len(g.members)))(a.describe_consumer_groups([name])[name].result()))
        for c in members:
            c.close()
        listed = a.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result()
        same("offsets listed", [20] * 6, [tp.offset for tp in listed.topic_partitions])
        a.delete_consumer_groups([name])[name].result()


async def in_aiokafka():
    """Report 4: null and empty are told apart; and a group's member that goes on where another was."""
    client = AIOKafkaAdminClient(bootstrap_servers=server)
    await client.start()
    await client.create_topics([AIONewTopic("a-nulls", 1, 1)])
    await client.close()
    some = [None, b"", b"x"]
    mixes = [(key, value) for key in some for value in some if (key, value) != (None, None)]
    headers = (("h", b""), ("h", b"y"), ("", b"z"), ("h", b"x"))
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=server, enable_idempotence=True, compression_type="lz4") as p:
        for i, (key, value) in enumerate(mixes):
            same("offset", i, (await p.send_and_wait("a-nulls", value, key=key, headers=list(headers))).offset)
    at = 0
    while at < len(mixes):
        async with aiokafka.AIOKafkaConsumer("a-nulls", bootstrap_servers=server, group_id="a", auto_offset_reset="earliest", enable_auto_commit=False) as c:
            for _ in range(4):
                r = await asyncio.wait_for(c.getone(), 30)
                same("record", (at, *mixes[at], headers), (r.offset, r.key, r.value, r.headers))
                at += 1
            await c.commit()


run({
    "times": times,
    "appended": appended,
    "transactional": transactional,
    "admin": admin,
    "groups": groups,
    "aiokafka": lambda: asyncio.run(in_aiokafka()),
})
