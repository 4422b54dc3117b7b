"""forwards: publications that each node handled, by priority, and the copies that it sent.

A node takes part in a topic if it or one of its clients publishes or subscribes to it, as the captures show. Another
node that handles a publication of the topic only relays it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from analysis.inputs.subscriptions import INTEREST_PREFIX

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
    sent = _summed(hops.filter(pc.field("sent") > 0), ["src", "dst", *of], ["sent", "repeated"])
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
    each = _summed(touched, ["node", *of], ["copies", "repeated", "sent_again"])
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
    return _summed(pa.table(counted), ["node", "topic", "priority"], list(COUNTS)).select(
        FORWARDS_BY_TOPIC.names
    )


def _summed(rows: pa.Table, keys: list[str], columns: list[str]) -> pa.Table:
    found = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in columns])
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])


SCHEMA = """
    node string, priority int, published long, handled long, forwarded long, copies long, sent_again long,
    repeated long, relayed long, relayed_copies long
"""


def forwards_by_topic(spark: SparkSession, hops: Path) -> DataFrame:
    """Count forwards by node, topic and priority from the files of `hops`.

    Hops are partitioned by message, so each file is counted by itself.
    """
    files = sorted(hops.glob("*.parquet"))

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from count_forwards(pq.read_table(files[number], columns=NEEDED)).to_batches()

    numbers = spark.range(0, len(files), 1, max(1, len(files)))
    return numbers.mapInArrow(count, from_arrow_schema(FORWARDS_BY_TOPIC))


def forwards(by_topic: DataFrame, messages: DataFrame) -> DataFrame:
    """Sum `by_topic` over topics, and separate relays by participation.

    `forwarded`: publications of other nodes of which it sent a copy. `copies`: all copies sent, of its own, too;
    `sent_again`: copies to a receiver that had been sent one before; `repeated`: those marked as repetitions.
    """
    relays = sf.col("takes_part").isNull()

    def relayed(name: str) -> Column:
        return sf.sum(sf.when(relays, sf.col(name)).otherwise(0))

    joined = by_topic.join(sf.broadcast(_participants(messages)), ["node", "topic"], "left")
    return joined.groupBy("node", "priority").agg(
        *(sf.sum(name).alias(name) for name in COUNTS),
        relayed("handled").alias("relayed"),
        relayed("copies").alias("relayed_copies"),
    )


def _participants(messages: DataFrame) -> DataFrame:
    """node, topic: the nodes that subscribed to a topic, advertised or published it; and their brokers."""
    counted = messages.where(
        "kind in ('SUBSCRIBE', 'ADVERTISE') or (kind = 'PUBLISH' and src = origin)"
    )
    topic = sf.regexp_replace("topic", INTEREST_PREFIX, "").alias("topic")
    ends = [counted.select(sf.col(end).alias("node"), topic) for end in ("src", "dst")]
    return ends[0].union(ends[1]).distinct().withColumn("takes_part", sf.lit(True))
