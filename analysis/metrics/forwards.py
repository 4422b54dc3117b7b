"""forwards: what each node did with publications, by priority: how many it handled, and how many copies it sent.

A node takes part in a topic if it or one of its guests publishes or wants it, as the captures show. Whoever handles a
publication of another topic only relays it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analysis.wishes import ABOUT
from nodes.wire import REPEATED

SCHEMA = """
    node string, priority int, published long, handled long, passed_on long, copies long, again long, repeated long,
    relayed long, relayed_copies long
"""


def forwards(messages: DataFrame, from_ns: int = 0) -> DataFrame:
    """Of what was published from this moment on.

    `passed_on`: publications of others of which it sent a copy. `copies`: all it sent, its own publications' too;
    `again`: those of them that their receiver had been sent before, and `repeated`: those marked so.
    """
    sent = (sf.col("direction") == "up") & (sf.col("link") == sf.col("src"))
    came = (sf.col("direction") == "down") & (sf.col("link") == sf.col("dst")) & sf.col("complete")
    handled = (
        messages.where("kind = 'PUBLISH'")
        .where(sf.col("published_ns") >= from_ns)
        .where(sent | came)
        .groupBy("id", sf.col("link").alias("node"), "topic", "priority", "origin")
        .agg(
            _count(sent).alias("copies"),
            _count(sent & (sf.col("flags").bitwiseAND(REPEATED) > 0)).alias("repeated"),
            sf.size(sf.collect_set(sf.when(sent, sf.col("dst")))).alias("receivers"),
        )
        .withColumn("again", sf.col("copies") - sf.col("receivers"))
        .join(sf.broadcast(_participants(messages)), ["node", "topic"], "left")
    )
    own = sf.col("node") == sf.col("origin")
    sends = sf.col("copies") > 0
    relays = sf.col("takes_part").isNull()
    return handled.groupBy("node", "priority").agg(
        _count(own).alias("published"),
        sf.count("*").alias("handled"),
        _count(~own & sends).alias("passed_on"),
        *(sf.sum(name).alias(name) for name in ("copies", "again", "repeated")),
        _count(relays).alias("relayed"),
        sf.sum(sf.when(relays, sf.col("copies")).otherwise(0)).alias("relayed_copies"),
    )


def _participants(messages: DataFrame) -> DataFrame:
    """node, topic: who asked for a topic, announced or published something on it; and whom they told."""
    told = messages.where(
        "kind in ('SUBSCRIBE', 'ADVERTISE') or (kind = 'PUBLISH' and src = origin)"
    )
    topic = sf.regexp_replace("topic", ABOUT, "").alias("topic")
    ends = [told.select(sf.col(end).alias("node"), topic) for end in ("src", "dst")]
    return ends[0].union(ends[1]).distinct().withColumn("takes_part", sf.lit(True))


def _count(condition: Column) -> Column:
    """How many rows it holds for; flags are not known in traces of earlier versions."""
    return sf.sum(sf.coalesce(condition, sf.lit(False)).cast("long"))
