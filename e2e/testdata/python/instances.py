"""Report 16: two consumers with one instance id, one 100 ms after the other, round after round, and a third beside them."""

import time

from check import PATIENCE, eventually, fails, run, same, server
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
FENCED = (KafkaError.FENCED_INSTANCE_ID, KafkaError._FENCED, KafkaError._FATAL)


class Member:
    """A consumer that commits each record that it reads, and knows what it owns."""

    owners = {}  # (partition, offset): who committed it

    def __init__(self, name, instance):
        config = {"bootstrap.servers": server, "group.id": "instances", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        config.update({"heartbeat.interval.ms": 200, "client.id": name})
        if instance:
            config["group.instance.id"] = instance
        else:  # one that leaves while the server is away is missed soon
            config["session.timeout.ms"] = 6000
        self.name, self.fenced, self.owned = name, False, set()
        self.c = Consumer(config)
        self.c.subscribe(["instances"], on_assign=self.assign, on_revoke=self.revoke, on_lost=self.revoke)

    def assign(self, c, partitions):
        self.owned |= {p.partition for p in partitions}

    def revoke(self, c, partitions):
        self.owned -= {p.partition for p in partitions}

    def poll(self):
        message = self.c.poll(0.01)
        if message is None:
            return
        if message.error():
            self.fenced = self.fenced or message.error().code() in FENCED
            return
        at = (message.partition(), message.offset())
        try:
            self.c.commit(message=message, asynchronous=False)
        except KafkaException as e:
            self.fenced = self.fenced or e.args[0].code() in FENCED
            return  # it is not the owner, or does not know
        other = Member.owners.setdefault(at, self.name)
        assert other == self.name, f"{at} belongs to {other} and to {self.name}"


def refused(c):
    e = fails(KafkaException, lambda: c.commit(offsets=[TopicPartition("instances", 0, 0)], asynchronous=False))
    return e.args[0].code() in FENCED  # and not only because the server is gone for a moment


def rounds(count, restarts=False):
    admin = AdminClient({"bootstrap.servers": server})
    admin.create_topics([NewTopic("instances", PARTITIONS, 1)])["instances"].result()
    producer = Producer({"bootstrap.servers": server})
    for i in range(count):
        for p in range(PARTITIONS):
            for _ in range(5):
                producer.produce("instances", b"x", partition=p)
                producer.poll(0)
        older = Member(f"older {i}", "one")
        members = [older]
        begin = time.monotonic()
        while time.monotonic() < begin + 0.1:
            older.poll()
        newer = Member(f"newer {i}", "one")
        members.append(newer)
        if i % 2 == 1:
            members.append(Member(f"third {i}", None))
        out, others = older, members[1:]

        def settled():
            nonlocal out, others
            for m in members:
                m.poll()
            if restarts and newer.fenced:  # the older had not got in before the server went, and came in after it
                out, others = newer, [m for m in members if m is not newer]
            return out.fenced and all(len(m.owned) == PARTITIONS // len(others) for m in others) and len(set().union(*(m.owned for m in others))) == PARTITIONS

        eventually(f"round {i}: one of the two is fenced, the others have the partitions", settled)
        same("others that are fenced", [], [m.name for m in others if m.fenced])

        def reads():
            for m in others:
                m.poll()
            return len(Member.owners) > i

        eventually(f"round {i}: a record is committed", reads)
        eventually("its commit is refused", lambda: refused(out.c))
        for m in reversed(members):
            m.c.close()
    producer.flush(PATIENCE)
    assert len(Member.owners) > count, f"only {len(Member.owners)} records were committed"


run({"twenty": lambda: rounds(20), "eight": lambda: rounds(8, restarts=True)})
