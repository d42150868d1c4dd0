"""kafka-python's admin client."""

from check import eventually, fails, run, same, server
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, MemberToRemove, OffsetSpec
from kafka.errors import NoError, OffsetOutOfRangeError, TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata

admin = KafkaAdminClient(bootstrap_servers=server)


def create(name, partitions=1, **configs):
    admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1, "configs": {k.replace("_", "."): v for k, v in configs.items()}}})


def write(name, n, **config):
    p = KafkaProducer(bootstrap_servers=server, **config)
    for i in range(n):
        p.send(name, b"%d" % i, partition=0, timestamp_ms=1000 * (i + 1))
    p.flush()
    p.close()


def topics():
    admin.create_topics({"topics-dry": {"num_partitions": 1}}, validate_only=True)
    create("topics", 2)
    fails(TopicAlreadyExistsError, lambda: create("topics"))
    listed = admin.list_topics()
    assert "topics" in listed and "topics-dry" not in listed, listed
    admin.create_partitions({"topics": 5})
    same("partitions", 5, len(admin.describe_topics(["topics"])[0]["partitions"]))
    same("described", "topics", admin.describe_topic_partitions(["topics"])["topics"][0]["name"])
    admin.delete_topics(["topics"])
    eventually("it is deleted", lambda: "topics" not in admin.list_topics())
    fails(UnknownTopicOrPartitionError, lambda: admin.delete_topics(["topics"]))


def configs():
    create("configs", retention_ms="100000")

    def described(**filters):
        return admin.describe_configs([ConfigResource("topic", "configs")], **filters)["topic"]["configs"]

    same("set", "100000", described()["retention.ms"]["value"])
    same("a default", "604800000", described(config_filter="all")["segment.ms"]["value"])
    synonyms = described(config_filter="all", include_synonyms=True)["max.message.bytes"]["synonyms"]
    same("a synonym", "message.max.bytes", synonyms[0]["name"])
    admin.alter_configs([ConfigResource("topic", "configs", {"retention.ms": "1"})], validate_only=True)
    same("after a validation", "100000", described()["retention.ms"]["value"])
    admin.alter_configs([ConfigResource("topic", "configs", {"cleanup.policy": (AlterConfigOp.APPEND, "compact"), "max.message.bytes": "5000"})])
    same("appended", {"compact", "delete"}, set(described()["cleanup.policy"]["value"].split(",")))
    same("left alone", "100000", described()["retention.ms"]["value"])
    # The older request: what it does not name would be lost, so the client names all.
    outcome = admin.alter_configs([ConfigResource("topic", "configs", {"max.message.bytes": "6000"})], incremental=False)
    same("the older way to alter", {"topic": {"configs": "OK"}}, outcome)
    eventually("it is altered", lambda: described()["max.message.bytes"]["value"] == "6000")
    same("left alone", "100000", described()["retention.ms"]["value"])
    admin.reset_configs([ConfigResource("topic", "configs", ["max.message.bytes"])])
    eventually("back to its default", lambda: described(config_filter="all")["max.message.bytes"]["value"] == "1048588")
    outcome = admin.alter_configs([ConfigResource("topic", "configs", {"retention.ms": "soon"})])
    assert "InvalidConfig" in str(outcome), outcome
    same("after a refusal", "100000", described()["retention.ms"]["value"])


def records():
    create("records", 2)
    write("records", 10)
    p0, p1 = TopicPartition("records", 0), TopicPartition("records", 1)
    for spec, want in (OffsetSpec.EARLIEST, 0), (OffsetSpec.LATEST, 10), (OffsetSpec.MAX_TIMESTAMP, 9), (4500, 4), (99000, -1):
        same(f"offset {spec}", want, admin.list_partition_offsets({p0: spec})[p0].offset)
    same("first offset left", 4, admin.delete_records({p0: 4})[p0]["low_watermark"])
    same("earliest", 4, admin.list_partition_offsets({p0: OffsetSpec.EARLIEST})[p0].offset)
    fails(OffsetOutOfRangeError, lambda: admin.delete_records({p1: 1}))
    same("producers", 1, len(list(admin.describe_producers([p0])[p0].active_producers)))


def cluster():
    described = admin.describe_cluster()
    node = described["brokers"][0]
    host, port = server.split(":")
    same("address", (host, int(port)), (node["host"], node["port"]))
    create("cluster")
    write("cluster", 10, batch_size=0)

    def size():
        for broker in admin.describe_log_dirs(["cluster"]):
            for directory in broker["log_dirs"]:
                for t in directory["topics"]:
                    return t["partitions"][0]["partition_size"]

    eventually("its bytes", lambda: 600 < (size() or 0) < 1000)
    elected = admin.elect_leaders(0, {"cluster": [0]})
    same("outcome of an election", 84, elected.replica_election_results[0].partition_result[0].error_code)  # ELECTION_NOT_NEEDED
    same("reassignments", {}, admin.list_partition_reassignments())


def groups():
    create("groups", 2)
    write("groups", 10)
    p0, p1 = TopicPartition("groups", 0), TopicPartition("groups", 1)

    def listed(**filters):
        return {g["group_id"] for g in admin.list_groups(**filters)} & {"python-live", "python-offsets"}

    def described(name):
        return admin.describe_groups([name])[name]

    outcome = admin.alter_group_offsets("python-offsets", {p0: OffsetAndMetadata(3, "m", -1), p1: OffsetAndMetadata(0, "", -1)})
    same("outcome", {p0: NoError, p1: NoError}, outcome)
    got = admin.list_group_offsets("python-offsets")["python-offsets"]
    same("offsets", {p0: (3, "m"), p1: (0, "")}, {tp: (o.offset, o.metadata) for tp, o in got.items()})
    same("an offset", 3, admin.list_group_offsets({"python-offsets": [p0]})["python-offsets"][p0].offset)
    for spec, want in (OffsetSpec.LATEST, 10), (OffsetSpec.EARLIEST, 0), (7, 7), (70, 10):
        admin.reset_group_offsets("python-offsets", {p0: spec})
        same(f"reset to {spec}", want, admin.list_group_offsets("python-offsets")["python-offsets"][p0].offset)

    c = KafkaConsumer("groups", bootstrap_servers=server, group_id="python-live", client_id="me", group_instance_id="mine", heartbeat_interval_ms=200)
    eventually("it is assigned", lambda: (c.poll(timeout_ms=1000), len(c.assignment()))[1] == 2)
    same("listed", {"python-live", "python-offsets"}, listed())
    same("stable", {"python-live"}, listed(states_filter=["Stable"]))
    same("empty", {"python-offsets"}, listed(states_filter=["Empty"]))
    same("classic", {"python-live", "python-offsets"}, listed(types_filter=["classic"]))
    same("of KIP-848", set(), listed(types_filter=["consumer"]))
    group = described("python-live")
    same("group", ("Stable", "consumer", "range", 1), (group["group_state"], group["protocol_type"], group["protocol_data"], len(group["members"])))
    member = group["members"][0]
    same("member", ("me", "mine", "/127.0.0.1", c.group_metadata().member_id), (member["client_id"], member["group_instance_id"], member["client_host"], member["member_id"]))
    same("an unknown one", "Dead", described("python-none")["group_state"])

    outcome = admin.alter_group_offsets("python-live", {p0: OffsetAndMetadata(1, "", -1)})
    assert outcome[p0] is not NoError, outcome
    same("delete while it is live", {"python-live": "NonEmptyGroupError"}, admin.delete_groups(["python-live"]))
    removed = admin.remove_group_members("python-live", [MemberToRemove(group_instance_id="mine")])
    same("removed", [NoError], list(removed.values()))
    same("members", 0, len(described("python-live")["members"]))
    c.close()
    same("delete an offset", {p1: NoError}, admin.delete_group_offsets("python-offsets", [p1]))
    same("what is left", {p0}, set(admin.list_group_offsets("python-offsets")["python-offsets"]))
    same("delete", {"python-offsets": "OK", "python-none": "GroupIdNotFoundError"}, admin.delete_groups(["python-offsets", "python-none"]))
    same("listed then", set(), listed() - {"python-live"})


run({"topics": topics, "configs": configs, "records": records, "cluster": cluster, "groups": groups})
admin.close()
