"""forwards: publications that each node handled, by priority, and the copies that it sent.

A node takes part in a topic if it or one of its clients publishes or subscribes to it, as the captures show. Another
node that handles a publication of the topic only relays it.
"""

import pyarrow as pa
import pyarrow.compute as pc

from analysis.inputs.subscriptions import INTEREST_PREFIX
from analysis.metrics.tables import conform, grouped, schema, summed

# Counts from hops; all hops of a message must be in one table. Pure.


NEEDED = ["id", "src", "dst", "origin", "topic", "priority", "copies", "sent", "repeated"]
COUNTS = ("published", "handled", "forwarded", "copies", "sent_again", "repeated")
FORWARDS_BY_TOPIC = pa.schema(
    [
        ("node", pa.string()),
        ("topic", pa.string()),
        ("priority", pa.int32()),
        *((name, pa.int64()) for name in COUNTS),
    ]
)


def count_forwards(hops: pa.Table) -> pa.Table:
    """By node, topic and priority, as FORWARDS_BY_TOPIC: messages that a node had, and copies that it sent."""
    of = ["id", "topic", "priority", "origin"]
    # A message may cross from one node to another several times, as a different hop each time.
    sent = summed(hops.filter(pc.field("sent") > 0), ["src", "dst", *of], ["sent", "repeated"])
    came = hops.filter(pc.field("copies") > 0)
    zeros = pa.array([0] * came.num_rows, pa.int64())
    ends = [
        sent.select(["src", *of, "sent", "repeated"]).append_column(
            "sent_again", pc.subtract(sent["sent"], 1)
        ),
        came.select(["dst", *of])
        .append_column("sent", zeros)
        .append_column("repeated", zeros)
        .append_column("sent_again", zeros),
    ]
    names = ["node", *of, "copies", "repeated", "sent_again"]
    touched = pa.concat_tables([end.rename_columns(names) for end in ends])
    each = summed(touched, ["node", *of], ["copies", "repeated", "sent_again"])
    own = pc.equal(each["node"], each["origin"])
    counted = {
        **{
            name: each[name]
            for name in ("node", "topic", "priority", "copies", "sent_again", "repeated")
        },
        "published": own.cast(pa.int64()),
        "handled": pa.array([1] * each.num_rows, pa.int64()),
        "forwarded": pc.and_(pc.invert(own), pc.greater(each["copies"], 0)).cast(pa.int64()),
    }
    return summed(pa.table(counted), ["node", "topic", "priority"], list(COUNTS)).select(
        FORWARDS_BY_TOPIC.names
    )


SCHEMA = schema("""
    node string, priority int, published long, handled long, forwarded long, copies long, sent_again long,
    repeated long, relayed long, relayed_copies long
""")
ROW = "a node and level"
COLUMNS = {
    "node": "node",
    "published": "publications of its own",
    "handled": "publications that came to the node or left it",
    "forwarded": "publications of others that it sent",
    "copies": "all copies that it sent, of its own publications, too",
    "sent_again": "copies whose receiver had been sent the same publication by this node before",
    "repeated": "copies that were marked as repetitions",
    "relayed": "of `handled`: publications on topics that the node takes no part in",
    "relayed_copies": "copies of these",
}
PARTICIPANTS = schema("node string, topic string")


def forwards(by_topic: pa.Table, participants: pa.Table) -> pa.Table:
    """Sum `by_topic` over topics, and separate relays by participation.

    `forwarded`: publications of other nodes of which it sent a copy. `copies`: all copies sent, of its own, too;
    `sent_again`: copies to a receiver that had been sent one before; `repeated`: those marked as repetitions.
    """
    taking_part = {(row["node"], row["topic"]) for row in participants.to_pylist()}
    places = zip(by_topic["node"].to_pylist(), by_topic["topic"].to_pylist(), strict=True)
    relays = pa.array([place not in taking_part for place in places], pa.bool_())
    rows = by_topic.append_column("relayed", pc.if_else(relays, by_topic["handled"], 0))
    rows = rows.append_column("relayed_copies", pc.if_else(relays, by_topic["copies"], 0))
    return conform(summed(rows, ["node", "priority"], SCHEMA.names[2:]), SCHEMA)


def participants(messages: pa.Table) -> pa.Table:
    """The nodes that subscribed to a topic, advertised or published it; and their brokers."""
    announced = pc.is_in(messages["kind"], pa.array(["SUBSCRIBE", "ADVERTISE"]))
    published = pc.and_(
        pc.equal(messages["kind"], "PUBLISH"),
        pc.fill_null(pc.equal(messages["src"], messages["origin"]), False),
    )
    mine = messages.filter(pc.or_(announced, published))
    topic = pc.replace_substring_regex(mine["topic"], INTEREST_PREFIX, "")
    ends = [pa.table([mine[end], topic], schema=PARTICIPANTS) for end in ("src", "dst")]
    return conform(grouped(pa.concat_tables(ends), PARTICIPANTS.names), PARTICIPANTS)
