"""deliveries: one row for each message and each subscriber who should get it: delivered, or lost and where."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analysis.faults import Downtimes, was_down
from analysis.follow import Hop, Journey, homes_at
from analysis.wishes import Wishes

SCHEMA = """
    id string, receiver string, origin string, topic string, priority int, payload_bytes long, published_ns long,
    status string, reason string, hops int, path array<string>, received_ns long, delay_s double, duplicates long,
    confirmed boolean, handed long, held_back long
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
    ]
)
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
) -> DataFrame:
    """A message is delivered when all its bytes were seen on the receiver's link.

    `wishes`: who should get what. `receptions`: id, receiver, how often its application got the message and how often
    it was held back, by the receivers' own account. `drops`: id, dropper, peer, by the droppers' own account.
    `connected`: receiver -> when it was linked to which broker, in the order of time. `down`: who was ended on purpose.
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
    links, ended = dict(connected or {}), dict(down or {})

    def follow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole = list(batches)
        if whole:
            table = pa.Table.from_batches(whole)
            yield from _follow(table, wishes, central, links, ended).to_batches()

    return known.repartition("id").mapInArrow(follow, SCHEMA)


def _follow(
    known: pa.Table,
    wishes: Wishes,
    brokers: Collection[str],
    connected: Mapping[str, Sequence[tuple[int, str]]],
    down: Downtimes,
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
    columns: dict[str, list[Any]] = {name: [] for name in ARROW_SCHEMA.names}
    for identity, origin, topic, priority, size, logged_ns, place in _rows(known, 0, PUBLICATION):
        mine = hops.get(identity, [])
        journey = Journey(origin, mine, brokers, drops.get(identity, ()))
        published_ns = mine[0].published_ns if mine else logged_ns
        for receiver in wishes.receivers(topic, priority, place):
            if receiver == origin:
                continue
            homes = homes_at(connected.get(receiver, ()), published_ns)
            status, reason, path, received_ns, duplicates = journey.outcome(receiver, homes)
            if reason is not None and was_down(down, receiver, published_ns):
                reason = f"{receiver} was down"
            handed, held_back = receptions.get((identity, receiver), (0, 0))
            row = (
                identity,
                receiver,
                origin,
                topic,
                priority,
                size,
                published_ns,
                status,
                reason,
                len(path) - 1 if path else None,
                path,
                received_ns,
                (received_ns - published_ns) / 1e9 if received_ns is not None else None,
                duplicates,
                handed > 0,
                handed,
                held_back,
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return pa.table(columns, schema=ARROW_SCHEMA)


def _rows(known: pa.Table, what: int, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of one kind as tuples."""
    chosen = known.filter(pc.field("what") == what)
    return zip(*(chosen[name].to_pylist() for name in names), strict=True)
