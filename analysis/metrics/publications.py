"""publications: one row for each publication in a node's log; and what logs say of receptions and drops."""

import pyarrow as pa
import pyarrow.compute as pc

from analysis.metrics.tables import conform, count, grouped, schema

SCHEMA = schema("""
    id string, origin string, topic string, priority int, payload_bytes long, published_ns long, late_s double,
    place array<long>
""")
ROW = "a publication that a node's log reports"
COLUMNS = {
    "late_s": "how much later than the scenario's time it was published; 0 if it was injected",
    "place": "where it was published, as the whole numbers on the wire; null without places",
}
RECEPTIONS = schema("id string, receiver string, handed long, suppressed long")
DROPS = schema("id string, dropper string, peer string")
# The records of single messages in a log.
RECORDED = ("publish", "receive", "duplicate", "drop")


def publications(logs: pa.Table, from_ns: int = 0) -> pa.Table:
    """The `publish` records from this time on. A line that was truncated when its node was killed is no record."""
    mine = _published(logs).filter(pc.field("t") >= from_ns).sort_by("t")
    first = pc.index_in(pc.unique(mine["id"]), mine["id"])
    mine = mine.take(first)
    late_s = pc.divide(mine["late_ns"].cast(pa.float64()), 1e9)
    names = ("id", "node", "topic", "priority", "size", "t")
    columns = [*(mine[name] for name in names), late_s, mine["place"]]
    return pa.table(columns, names=SCHEMA.names).cast(SCHEMA)


def count_before(logs: pa.Table, from_ns: int) -> int:
    """Number of publications before this time."""
    return len(pc.unique(_published(logs).filter(pc.field("t") < from_ns)["id"]))


def _published(logs: pa.Table) -> pa.Table:
    return logs.filter((pc.field("event") == "publish") & pc.field("id").is_valid())


def receptions(logs: pa.Table) -> pa.Table:
    """How often each node's application received each message, and how often a duplicate was discarded, by its log."""
    came = logs.filter(pc.field("event").isin(["receive", "duplicate"]) & pc.field("id").is_valid())
    rows = pa.table(
        {
            "id": came["id"],
            "receiver": came["node"],
            "handed": count(pc.equal(came["event"], "receive")),
            "suppressed": count(pc.equal(came["event"], "duplicate")),
        }
    )
    found = grouped(
        rows, ["id", "receiver"], handed=("handed", "sum"), suppressed=("suppressed", "sum")
    )
    return conform(found, RECEPTIONS)


def drops(logs: pa.Table) -> pa.Table:
    """Messages dropped by full queues, with node and peer; a closed link has no queue."""
    rows = logs.filter(
        (pc.field("event") == "drop") & pc.field("id").is_valid() & pc.field("peer").is_valid()
    )
    closed = pc.fill_null(pc.starts_with(rows["reason"], "there is no link"), False)
    rows = rows.filter(pc.invert(closed))
    named = pa.table([rows["id"], rows["node"], rows["peer"]], names=DROPS.names)
    return conform(grouped(named, DROPS.names), DROPS)
