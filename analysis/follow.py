"""Follows messages: a task gets all records of some messages, and writes their hops, publications and deliveries.

The order of deliveries is judged by another task, which gets all deliveries of a receiver from a publisher.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analysis.captures.parquet import GrowingFile
from analysis.inputs.clocks import Clocks
from analysis.inputs.link_settings import PathToCore
from analysis.inputs.logs import LOG
from analysis.inputs.manifest import Downtimes
from analysis.inputs.subscriptions import Subscriptions
from analysis.metrics import deliveries, events, forwards, hops, overhead, publications
from analysis.metrics.delay_parts import Paths
from analysis.metrics.messages import SCHEMA as MESSAGES
from analysis.metrics.tables import conform, summed
from analysis.scan import CONNECTS, LAST, RECORDS, SIGHTINGS, TOTALS, table_path
from analysis.spark.blobs import FOR_DRIVER, Item, by_name, pack, split

FOLLOWED = "deliveries"
FORWARDS, IGNORED = "forwards", "ignored"  # for the driver
WRITTEN = {
    "hops": hops.SCHEMA,
    "publications": publications.SCHEMA,
    "deliveries": deliveries.SCHEMA,
}
SIGHTING = pa.schema([MESSAGES.field(name) for name in hops.NEEDED])


@dataclass(frozen=True, slots=True)
class Following:
    """What all tasks need to know."""

    folder: Path  # of the tables, which the workers of a cluster must see
    buckets: int
    brokers: Collection[str]
    subscriptions: Subscriptions
    paths: tuple[PathToCore, ...]
    headers: Mapping[tuple[str, str], float] | None  # None: from the totals of the scan
    down: Downtimes
    deadlines: Mapping[int, float]
    clocks: Clocks
    from_ns: int  # publications before do not count
    until_ns: int | None  # end of the observation; None: with the last message


def follow(known: Following, number: int, items: Iterable[Item]) -> Iterator[Item]:
    """Follow the messages of a bucket: write their hops and publications; pass on deliveries, and sums."""
    mine = []
    for key, item in items:
        if key == FOR_DRIVER:
            yield key, item
        else:
            mine.append(item)
    if number == known.buckets:  # the driver's
        return
    tables = by_name(mine)
    del mine
    logs = tables.get(RECORDS, LOG.empty_table())
    crossed = hops.hops(tables.get(SIGHTINGS, SIGHTING.empty_table()), _paths(known, tables))
    published = publications.publications(logs, known.from_ns)
    _write(known.folder, "hops", number, crossed)
    _write(known.folder, "publications", number, published)
    links = events.connected(
        events.listed(tables.get(CONNECTS, events.SCHEMA.empty_table())), known.brokers
    )
    found = deliveries.deliveries(
        deliveries.Followed(
            published, crossed, publications.receptions(logs), publications.drops(logs)
        ),
        known.subscriptions,
        known.brokers,
        links,
        known.down,
        known.deadlines,
        known.clocks,
        pc.max(tables[LAST]["last_ns"]).as_py() if known.until_ns is None else known.until_ns,
    )
    for bucket, rows in split(found, ["receiver", "origin"], known.buckets):
        yield bucket, (FOLLOWED, pack(rows))
    yield FOR_DRIVER, (FORWARDS, pack(forwards.count_forwards(crossed)))
    ignored = publications.count_before(logs, known.from_ns) if known.from_ns else 0
    yield FOR_DRIVER, (IGNORED, pack(pa.table({"messages": [ignored]})))


def _paths(known: Following, tables: Mapping[str, pa.Table]) -> Paths:
    headers = known.headers
    if headers is None:
        totals = tables.get(TOTALS, overhead.LINKS_SCHEMA.empty_table())
        headers = overhead.header_bytes(summed(totals, ["link", "direction"], overhead.HEADERS))
    return Paths(known.paths, headers)


def judge_order(
    known: Following, number: int, items: Iterable[Item]
) -> Iterator[tuple[str, bytes]]:
    """Write the deliveries of a bucket with their order; the driver collects the rest."""
    mine = []
    for key, item in items:
        if key == FOR_DRIVER:
            yield item
        else:
            mine.append(item)
    if number < known.buckets:
        followed = by_name(mine).get(FOLLOWED)
        rows = (
            deliveries.SCHEMA.empty_table()
            if followed is None
            else conform(deliveries.in_order(followed), deliveries.SCHEMA)
        )
        order = [(name, "ascending") for name in ("published_ns", "id", "receiver")]
        _write(known.folder, "deliveries", number, rows.sort_by(order))


def _write(folder: Path, name: str, number: int, rows: pa.Table) -> None:
    path = table_path(folder, name) / f"part-{number:05}.parquet"
    with GrowingFile(path, WRITTEN[name]) as file:
        for batch in rows.to_batches():
            file.write(batch)
