"""deliveries: one row for each message and each subscriber who should get it: delivered, or lost and where."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from analysis import clock_errors
from analysis.clocks import NONE, Clocks
from analysis.faults import Downtimes, was_down
from analysis.follow import Hop, Journey, Parts, homes_at
from analysis.wishes import Wishes

SCHEMA = """
    id string, receiver string, origin string, topic string, priority int, payload_bytes long, published_ns long,
    status string, reason string, hops int, path array<string>, received_ns long, delay_s double, duplicates long,
    confirmed boolean, handed long, held_back long, queue_s double, transmission_s double, propagation_s double,
    retransmission_s double, deadline_s double, late boolean, delay_error_s double, out_of_order boolean
"""
ARROW_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("receiver", pa.string()),
        ("origin", pa.string()),
        ("topic", pa.string()),
        ("priority", pa.int32()),
        ("payload_bytes", pa.int64()),
        ("published_ns", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("hops", pa.int32()),
        ("path", pa.list_(pa.string())),
        ("received_ns", pa.int64()),
        ("delay_s", pa.float64()),
        ("duplicates", pa.int64()),
        ("confirmed", pa.bool_()),
        ("handed", pa.int64()),
        ("held_back", pa.int64()),
        *((name, pa.float64()) for name in (*Parts._fields, "deadline_s")),
        ("late", pa.bool_()),
        ("delay_error_s", pa.float64()),
    ]
)
FOLLOWED = SCHEMA.replace(
    ", out_of_order boolean", ""
)  # before deliveries are set beside each other
PUBLICATION = ("id", "origin", "topic", "priority", "payload_bytes", "published_ns", "place")
HOP = ("id", *Hop._fields)
RECEPTION = ("id", "receiver", "handed", "held_back")
DROP = ("id", "dropper", "peer")


def deliveries(
    publications: DataFrame,
    hops: DataFrame,
    receptions: DataFrame,
    drops: DataFrame,
    wishes: Wishes,
    brokers: Collection[str],
    connected: Mapping[str, Sequence[tuple[int, str]]] | None = None,
    down: Downtimes | None = None,
    deadlines: Mapping[int, float] | None = None,
    clocks: Clocks = NONE,
) -> DataFrame:
    """A message is delivered when all its bytes were seen on the receiver's link.

    `wishes`: who should get what. `receptions`: id, receiver, how often its application got the message and how often
    it was held back, by the receivers' own account. `drops`: id, dropper, peer, by the droppers' own account.
    `connected`: receiver -> when it was linked to which broker, in the order of time. `down`: who was ended on purpose.
    `deadlines`: level -> seconds after which a delivery is late. `clocks`: of nodes that have one of their own.
    All times are the lab machine's already; `delay_error_s` is what they may be off for it.
    """
    # All that is known of a message meets in one partition: one shuffle, and each message is followed there.
    kinds = ((publications, PUBLICATION), (hops, HOP), (receptions, RECEPTION), (drops, DROP))
    parts = [
        frame.select(*names, sf.lit(number).alias("what"))
        for number, (frame, names) in enumerate(kinds)
    ]
    known = parts[0]
    for part in parts[1:]:
        known = known.unionByName(part, allowMissingColumns=True)
    central = frozenset(brokers)
    links, ended, due = dict(connected or {}), dict(down or {}), dict(deadlines or {})

    def follow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole = list(batches)
        if whole:
            table = pa.Table.from_batches(whole)
            found = _follow(table, wishes, central, links, ended, due)
            yield from _with_errors(found, clocks).to_batches()

    return in_order(known.repartition("id").mapInArrow(follow, FOLLOWED))


def in_order(followed: DataFrame) -> DataFrame:
    """With `out_of_order`: whether a receiver had something of the same flow first that was published later."""
    flow = Window.partitionBy("receiver", "origin", "topic", "priority")
    later = flow.orderBy(sf.col("published_ns").desc()).rangeBetween(Window.unboundedPreceding, -1)
    overtaken = sf.coalesce(
        sf.min("received_ns").over(later) < sf.col("received_ns"), sf.lit(False)
    )
    return followed.withColumn(
        "out_of_order", sf.when(sf.col("received_ns").isNotNull(), overtaken)
    )


def _follow(
    known: pa.Table,
    wishes: Wishes,
    brokers: Collection[str],
    connected: Mapping[str, Sequence[tuple[int, str]]],
    down: Downtimes,
    deadlines: Mapping[int, float],
) -> pa.Table:
    """The deliveries of all messages of a partition."""
    hops: defaultdict[str, list[Hop]] = defaultdict(list)
    for identity, *values in _rows(known, 1, HOP):
        hops[identity].append(Hop(*values))
    receptions = {
        (identity, receiver): (handed, held_back)
        for identity, receiver, handed, held_back in _rows(known, 2, RECEPTION)
    }
    drops: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for identity, dropper, peer in _rows(known, 3, DROP):
        drops[identity].append((dropper, peer))
    schema = ARROW_SCHEMA.remove(len(ARROW_SCHEMA) - 1)  # the error comes when all are known
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for identity, origin, topic, priority, size, logged_ns, place in _rows(known, 0, PUBLICATION):
        mine = hops.get(identity, [])
        journey = Journey(origin, mine, brokers, drops.get(identity, ()))
        published_ns = mine[0].published_ns if mine else logged_ns
        for receiver in wishes.receivers(topic, priority, place):
            if receiver == origin:
                continue
            homes = homes_at(connected.get(receiver, ()), published_ns)
            found = journey.outcome(receiver, homes)
            reason, received_ns = found.reason, found.received_ns
            if reason is not None and was_down(down, receiver, published_ns):
                reason = f"{receiver} was down"
            handed, held_back = receptions.get((identity, receiver), (0, 0))
            delay_s = (received_ns - published_ns) / 1e9 if received_ns is not None else None
            deadline_s = deadlines.get(priority)
            late = None if delay_s is None or deadline_s is None else delay_s > deadline_s
            row = (
                identity,
                receiver,
                origin,
                topic,
                priority,
                size,
                published_ns,
                found.status,
                reason,
                found.hops,
                found.path,
                received_ns,
                delay_s,
                found.duplicates,
                handed > 0,
                handed,
                held_back,
                *found.parts,
                deadline_s,
                late,
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return pa.table(columns, schema=schema)


def _with_errors(found: pa.Table, clocks: Clocks) -> pa.Table:
    errors = pa.array(clock_errors.of_deliveries(found, clocks), from_pandas=True)
    return found.append_column(ARROW_SCHEMA.field(clock_errors.COLUMN), errors)


def _rows(known: pa.Table, what: int, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of one kind as tuples."""
    chosen = known.filter(pc.field("what") == what)
    return zip(*(chosen[name].to_pylist() for name in names), strict=True)
