"""Report 18: an idempotent producer of librdkafka that is idle for a while."""

import sys

from check import eventually, same, server
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

topic, go = sys.argv[2:]  # it goes on once the topic go exists
delivered = []


def report(err, message):
    delivered.append((err, message.offset()))


producer = Producer({"bootstrap.servers": server, "enable.idempotence": True, "linger.ms": 0})
admin = AdminClient({"bootstrap.servers": server, "allow.auto.create.topics": False})


def send(values):
    for i in values:
        producer.produce(topic, str(i), on_delivery=report)
        producer.flush(30)


def may_go_on():
    try:
        return go in admin.list_topics(timeout=30).topics
    except KafkaException:
        return False  # the server is away


send(range(7))
eventually("leave to go on", may_go_on)
send(range(7, 15))
same("delivered", [(None, i) for i in range(15)], delivered)
