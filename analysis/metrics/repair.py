"""repair: a row for each broker that died: who noticed, who moved, and how long until all got everything again."""

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analysis.metrics.nothing import nothing
from analysis.repairs import BY_LOG, Death, Event, Published, repairs, told_deaths, unstopped
from analysis.runfolder import Run

SCHEMA = """
    node string, died_ns long, told_by string, noticed_s double, guests long, moved long, moved_s double, flows long,
    flows_hit long, lost long, healed boolean, repair_s double
"""


def repair(
    run: Run,
    deliveries: DataFrame,
    messages: DataFrame,
    events: Sequence[Event],
    brokers: Collection[str],
) -> DataFrame:
    """Deaths are those of the manifest, and lives of brokers that ended without `stop` in their log."""
    deaths = told_deaths(run.manifest, brokers)
    told = {death.node for death in deaths}
    for node, logged_ns, again_ns in unstopped(events, brokers):
        if node not in told:
            seen_ns = _last_seen(messages, node, again_ns)
            deaths.append(Death(node, max(logged_ns, seen_ns), BY_LOG))
    if not deaths:
        return nothing(deliveries.sparkSession, SCHEMA)
    rows = repairs(deaths, _publications(deliveries), events, brokers)
    return deliveries.sparkSession.createDataFrame(rows, SCHEMA)


def _last_seen(messages: DataFrame, node: str, before_ns: int) -> int:
    """When the captures show the last message from this node."""
    sent = messages.where("direction = 'up' and link = src").where(
        (sf.col("src") == node) & (sf.col("last_ns") < before_ns)
    )
    (row,) = sent.agg(sf.max("last_ns").alias("last_ns")).collect()
    return row.last_ns or 0


def _publications(deliveries: DataFrame) -> list[Published]:
    whole = sf.count("*") == sf.count("received_ns")
    rows = (
        deliveries.groupBy("id", "origin", "topic", "priority", "published_ns")
        .agg(
            sf.count("*").alias("expected"),
            sf.count("received_ns").alias("delivered"),
            sf.when(whole, sf.max("received_ns")).alias("done_ns"),
        )
        .select(*Published._fields)
        .collect()
    )
    return [Published(*row) for row in rows]
