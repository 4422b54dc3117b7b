"""forwards: what each node did with publications, by priority: how many it handled, and how many copies it sent.

A node takes part in a topic if it or one of its guests publishes or wants it, as the captures show. Whoever handles a
publication of another topic only relays it.
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

# What nodes did with messages, from their hops; those of one message must not be divided over several tables. Pure.


NEEDED = ["id", "src", "dst", "origin", "topic", "priority", "copies", "sent", "repeated"]
COUNTS = ("published", "handled", "passed_on", "copies", "again", "repeated")
FORWARDS_BY_TOPIC = pa.schema(
    [
        ("node", pa.string()),
        ("topic", pa.string()),
        ("priority", pa.int32()),
        *((name, pa.int64()) for name in COUNTS),
    ]
)


def count_forwards(hops: pa.Table) -> pa.Table:
    """By node, topic and priority, as HANDLED: how many messages it had, and what it sent of them."""
    of = ["id", "topic", "priority", "origin"]
    # A message may cross from one node to another several times, as another hop of its way each time.
    sent = _summed(hops.filter(pc.field("sent") > 0), ["src", "dst", *of], ["sent", "repeated"])
    came = hops.filter(pc.field("copies") > 0)
    nothing = pa.array([0] * came.num_rows, pa.int64())
    sides = [
        sent.select(["src", *of, "sent", "repeated"]).append_column(
            "again", pc.subtract(sent["sent"], 1)
        ),
        came.select(["dst", *of])
        .append_column("sent", nothing)
        .append_column("repeated", nothing)
        .append_column("again", nothing),
    ]
    names = ["node", *of, "copies", "repeated", "again"]
    touched = pa.concat_tables([side.rename_columns(names) for side in sides])
    each = _summed(touched, ["node", *of], ["copies", "repeated", "again"])
    own = pc.equal(each["node"], each["origin"])
    counted = {
        **{
            name: each[name]
            for name in ("node", "topic", "priority", "copies", "again", "repeated")
        },
        "published": own.cast(pa.int64()),
        "handled": pa.array([1] * each.num_rows, pa.int64()),
        "passed_on": pc.and_(pc.invert(own), pc.greater(each["copies"], 0)).cast(pa.int64()),
    }
    return _summed(pa.table(counted), ["node", "topic", "priority"], list(COUNTS)).select(
        FORWARDS_BY_TOPIC.names
    )


def _summed(rows: pa.Table, keys: list[str], columns: list[str]) -> pa.Table:
    found = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in columns])
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])


SCHEMA = """
    node string, priority int, published long, handled long, passed_on long, copies long, again long, repeated long,
    relayed long, relayed_copies long
"""


def forwards_by_topic(spark: SparkSession, hops: Path) -> DataFrame:
    """What nodes did with publications, by topic too, from the files of `hops`.

    Hops are written divided by message, so each file is looked at by itself.
    """
    files = sorted(hops.glob("*.parquet"))

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from count_forwards(pq.read_table(files[number], columns=NEEDED)).to_batches()

    numbers = spark.range(0, len(files), 1, max(1, len(files)))
    return numbers.mapInArrow(look, from_arrow_schema(FORWARDS_BY_TOPIC))


def forwards(by_topic: DataFrame, messages: DataFrame) -> DataFrame:
    """`by_topic` of publications, and who takes part in what.

    `passed_on`: publications of others of which it sent a copy. `copies`: all it sent, its own publications' too;
    `again`: those of them that their receiver had been sent before, and `repeated`: those marked so.
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
    """node, topic: who asked for a topic, announced or published something on it; and whom they told."""
    counted = messages.where(
        "kind in ('SUBSCRIBE', 'ADVERTISE') or (kind = 'PUBLISH' and src = origin)"
    )
    topic = sf.regexp_replace("topic", INTEREST_PREFIX, "").alias("topic")
    ends = [counted.select(sf.col(end).alias("node"), topic) for end in ("src", "dst")]
    return ends[0].union(ends[1]).distinct().withColumn("takes_part", sf.lit(True))
