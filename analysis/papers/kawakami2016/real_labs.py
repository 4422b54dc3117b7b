"""Captures of labs on real links, in the same tables as those of simulated labs.

`testbed reproduce` lists their runs in the folder of the reproduction, or says why there are none.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import Run, read_run
from analysis.metrics.fidelity import Evidence, verdict
from analysis.papers.kawakami2016.freshness import REAL, quantile
from analysis.scan import TOTALS, packets, scan_alone, table_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]


# Readings at the office, and their cost between brokers, from a lab's captures. Pure.
#
# A sighting is a publication on a link (`analysis.protocols.messages`); a joined message has one for each reading in
# it.


SECOND = 1_000_000_000
LAYERS = ("payload_bytes", "header_bytes", "label_bytes", "websocket_bytes")  # of a message


class Captured:
    """The publications in the captures of one run."""

    def __init__(self, run: Run, sightings: Iterable[Row]) -> None:
        self._run = run
        self._sheet = run.manifest["paper"]
        self._start_ns = int(run.manifest["play"]["start_ns"])
        self._kinds = {node.name: node.kind for node in run.nodes}
        self._seen = list(sightings)

    @property
    def counts_ns(self) -> tuple[int, int]:
        """Begin and end of the measurement."""
        begin_ns = self._start_ns + self._sheet["learnt_s"] * SECOND
        return begin_ns, begin_ns + self._sheet["measured_s"] * SECOND

    def readings(self) -> list[dict[str, Any]]:
        """The readings that arrived: publish time by the gauge's clock, arrival of the last byte at the office."""
        begin_ns, _ = self.counts_ns
        came: dict[str, Row] = {}
        for row in sorted(self._seen, key=lambda row: int(row["last_ns"])):
            if row["link"] == self._sheet["office"] and row["complete"]:
                came.setdefault(row["id"], row)
        return [
            {
                **self._of_lab(),
                "gauge": row["origin"],
                "published_s": (row["published_ns"] - begin_ns) / SECOND,
                "came_s": (row["last_ns"] - begin_ns) / SECOND,
            }
            for row in came.values()
        ]

    def total(self, link_bytes: int) -> dict[str, Any]:
        """Number and cost of the readings in the measurement; a reading has its share of a joined message."""
        between = list(self._between_brokers())
        return {
            **self._of_lab(),
            "measured_s": self._sheet["measured_s"],
            "due": sum(map(self._counts, self._published().values())),
            "messages": sum(1 / row["joined"] for row in between),
            "packets": sum(row["packets"] / row["joined"] for row in between),
            "bytes": sum(row[layer] for row in between for layer in LAYERS),
            "line_bytes": link_bytes,
        }

    def lateness_s(self) -> list[float]:
        """Lateness of each publication; gauges publish at whole seconds."""
        return sorted((at - self._start_ns) % SECOND / SECOND for at in self._published().values())

    def _published(self) -> dict[str, int]:
        """Publish time by id, from the gauges' links."""
        return {
            row["id"]: row["published_ns"]
            for row in self._seen
            if self._kinds[row["link"]] == "sensor" and row["direction"] == "up"
        }

    def _between_brokers(self) -> Iterator[Row]:
        for row in self._seen:
            ends = (self._kinds.get(row["link"]), self._kinds.get(row["dst"]))
            sent = ends == ("broker", "broker") and row["direction"] == "up"
            if sent and self._counts(row["published_ns"]):
                yield row

    def _counts(self, published_ns: int) -> bool:
        begin_ns, end_ns = self.counts_ns
        return begin_ns <= published_ns < end_ns

    def _of_lab(self) -> dict[str, Any]:
        named = {name: self._sheet[name] for name in ("trial", "sites", "wait_ms")}
        return {"lab": REAL, **named}


NAMES = "labs.json"  # in the folder of a reproduction: {"runs": [folders], "without": why there are none, or null}


@dataclass(slots=True)
class Labs:
    """Rows of the tables `waiting_readings` and `waiting`, and the fidelity of each run."""

    readings: list[Row] = field(default_factory=list)
    totals: list[Row] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)
    without: str | None = None


def read_labs(spark: "SparkSession", folder: Path) -> Labs:
    """Measure all runs; if their captures cannot be read, `without` says why."""
    try:
        named = json.loads((folder / NAMES).read_text())
    except OSError:
        return Labs(without="this reproduction has no labs on real lines")
    labs = Labs(without=named["without"])
    try:
        for place in named["runs"]:
            _add(labs, spark, read_run(Path(place)))
    except AnalysisError as error:
        return Labs(without=f"what labs on real lines captured cannot be read: {error.message}")
    return labs


def _add(labs: Labs, spark: "SparkSession", run: Run) -> None:
    with TemporaryDirectory(prefix="testbed-scan-") as folder:
        totals = scan_alone(spark.sparkContext, run, Path(folder))[TOTALS]
        sightings = pq.read_table(
            table_path(Path(folder), "messages"), filters=[("kind", "=", "PUBLISH")]
        )
    seen, links = Captured(run, sightings.to_pylist()), totals.to_pylist()
    readings, total = seen.readings(), seen.total(_link_bytes(spark, run, *seen.counts_ns))
    if not readings:
        raise AnalysisError(f"no reading came to the office in {run.name}", "")
    labs.readings += readings
    labs.totals.append(total)
    labs.runs.append(
        {
            "run": run.name,
            "folder": str(run.folder),
            "emulator": run.emulator,
            "fidelity": verdict(run, _evidence(run, seen, readings, links)),
        }
    )


def _link_bytes(spark: "SparkSession", run: Run, begin_ns: int, end_ns: int) -> int:
    """Bytes of all packets on the sites' links in this time."""
    from pyspark.sql import functions as sf

    lab_links = tuple(node for node in run.nodes if node.kind == "router")
    at = sf.col("ts_ns")
    carried = packets(spark, replace(run, nodes=lab_links)).where((at >= begin_ns) & (at < end_ns))
    (row,) = carried.agg(sf.sum("wirelen").alias("size")).collect()
    return int(row["size"] or 0)


def _evidence(run: Run, seen: Captured, readings: Sequence[Row], links: Sequence[Row]) -> Evidence:
    late, delays = seen.lateness_s(), sorted(row["came_s"] - row["published_s"] for row in readings)
    return Evidence(
        late_p99_s=quantile(late, 0.99),
        lost_tail_links=tuple(sorted(_where(links, "lost_tail_bytes"))),
        missing_bytes=_where(links, "missing_bytes"),
        compressed_messages=sum(_where(links, "compressed_messages").values()),
        unlogged_messages=0,  # logs are not read
        unseen_receptions=0,
        lost_deliveries=len(late) - len(readings),
        least_delay_p99_s=quantile(delays, 0.99),
        orphan_pieces=sum(_where(links, "orphan_pieces").values()),
    )


def _where(links: Sequence[Row], what: str) -> dict[str, int]:
    """link -> sum over both directions, if it is not 0."""
    sums: dict[str, int] = {}
    for row in links:
        if row[what]:
            sums[row["link"]] = sums.get(row["link"], 0) + row[what]
    return sums
