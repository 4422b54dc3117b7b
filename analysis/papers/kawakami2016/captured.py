"""What a lab's captures tell of waiting: readings at the office, and what they cost between brokers. Pure.

A sighting is a publication on a link (`analysis.messages`); one that travelled joined has one for each reading in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analysis.papers.kawakami2016.waiting_rows import REAL
from analysis.runfolder import Run

Row = Mapping[str, Any]
SECOND = 1_000_000_000
LAYERS = ("payload_bytes", "header_bytes", "label_bytes", "websocket_bytes")  # of a message


class Captured:
    """The publications that were seen in one run."""

    def __init__(self, run: Run, sightings: Iterable[Row]) -> None:
        self._run = run
        self._sheet = run.manifest["paper"]
        self._start_ns = int(run.manifest["play"]["start_ns"])
        self._kinds = {node.name: node.kind for node in run.nodes}
        self._seen = list(sightings)

    @property
    def counts_ns(self) -> tuple[int, int]:
        """From when to when readings count."""
        begin_ns = self._start_ns + self._sheet["learnt_s"] * SECOND
        return begin_ns, begin_ns + self._sheet["measured_s"] * SECOND

    def readings(self) -> list[dict[str, Any]]:
        """Each that came: published by its gauge's clock, there when the office's link had carried its last byte."""
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

    def total(self, line_bytes: int) -> dict[str, Any]:
        """What was published while readings count, and what it cost; of a joined message each reading has its part."""
        between = list(self._between_brokers())
        return {
            **self._of_lab(),
            "measured_s": self._sheet["measured_s"],
            "due": sum(map(self._counts, self._published().values())),
            "messages": sum(1 / row["joined"] for row in between),
            "packets": sum(row["packets"] / row["joined"] for row in between),
            "bytes": sum(row[layer] for row in between for layer in LAYERS),
            "line_bytes": line_bytes,
        }

    def lateness_s(self) -> list[float]:
        """How long after its time each was published; gauges publish at whole seconds."""
        return sorted((at - self._start_ns) % SECOND / SECOND for at in self._published().values())

    def _published(self) -> dict[str, int]:
        """When, by id, as it left the gauge."""
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
