"""The thesis' figures as plain values: cells with what the thesis says (`paper`) and what was measured (`ours`).

A number that the thesis' text does not tell is null. Pure: rows in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.papers.lee2016.sheet import DELAY, TRAFFIC, Sheet

Row = Mapping[str, Any]
BY_METHOD = ("default", "pq-pc", "dmpq-10000", "preemptive")
BY_DV = ("dmpq-10000", "dmpq-5000", "dmpq-1443", "dmpq-1000", "dmpq-1443-kernel", "preemptive")
ALL = (*BY_METHOD[:3], *BY_DV[1:])
OF_DELAY = (
    "messages",
    "arrived",
    "p10_s",
    "p50_s",
    "p90_s",
    "p95_s",
    "p99_s",
    "largest_s",
    "growth",
)
OF_BYTES = ("down_bytes", "retransmitted_bytes", "up_bytes")
OF_PACKETS = ("down_packets", "data_packets", "retransmitted_packets", "up_packets", "answers")


@dataclass(frozen=True, slots=True)
class Measured:
    """One lab of the reproduction: its cells, and the rows that Spark found for them."""

    sheet: Sheet
    delays: Mapping[str, Row]  # node: row
    traffic: Mapping[str, Row]

    def cells(
        self, experiment: str, series: Iterable[str], rate: int | None = None
    ) -> Iterator[tuple[str, Row]]:
        """Node and cell, by series and rate."""
        wanted = tuple(series)
        found = [
            (node, cell)
            for node, cell in self.sheet.cells.items()
            if cell["experiment"] == experiment
            and cell["series"] in wanted
            and rate in (None, cell["rate_kBps"])
        ]
        found.sort(key=lambda pair: (wanted.index(pair[1]["series"]), pair[1]["rate_kBps"]))
        yield from found


def figures(main: Measured, others: Iterable[Measured] = ()) -> list[dict[str, Any]]:
    """All figures and tables, in the thesis' order, and our own at the end."""
    thesis = main.sheet.thesis
    return [
        _figure("5.4", "Delay of urgent messages by rate and method", _delays(main, BY_METHOD)),
        *(
            _figure(number, f"Delays at {rate} kB/s by method", _delays(main, BY_METHOD, rate))
            for number, rate in thesis["shares_by_method"].items()
        ),
        _figure("5.11", "Bytes for ten messages of each kind", _traffic(main, OF_BYTES)),
        _figure("5.12", "Packets for ten messages of each kind", _traffic(main, OF_PACKETS)),
        _figure("5.13", "Delay of urgent messages by rate and DV", _delays(main, BY_DV)),
        *(
            _figure(number, f"Delays at {rate} kB/s by DV", _delays(main, BY_DV, rate))
            for number, rate in thesis["shares_by_dv"].items()
        ),
        _figure("table 5.6", "Packets for one standard message", _packets(main)),
        _figure(
            "table 7.1",
            f"Largest delay of an urgent message at {thesis['largest_delay_rate_kBps']} kB/s",
            _delays(main, ALL, thesis["largest_delay_rate_kBps"]),
        ),
        *(
            _figure(
                f"on the {other.sheet.emulator}",
                f"The same with the stricter {other.sheet.emulator}, {other.sheet.scale} times as fast",
                _beside(main, other),
            )
            for other in others
        ),
    ]


def _figure(number: str, title: str, cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"figure": number, "title": title, "cells": list(cells)}


def _head(cell: Row) -> dict[str, Any]:
    return {name: cell[name] for name in ("rate_kBps", "series", "method", "dv", "ack")}


def _delays(
    lab: Measured, series: Iterable[str], rate: int | None = None
) -> Iterator[dict[str, Any]]:
    for node, cell in lab.cells(DELAY, series, rate):
        row = lab.delays.get(node, {})
        ours = {name: row.get(name) for name in OF_DELAY}
        ours["censored"] = (row.get("messages") or 0) - (row.get("arrived") or 0)
        yield {
            **_head(cell),
            "standard_s": cell["standard_s"],
            "paper": _paper_of(lab.sheet, cell),
            "ours": ours,
            "bound": _bound(cell, row),
        }


def _beside(main: Measured, other: Measured) -> Iterator[dict[str, Any]]:
    """The other lab's delays, with the main lab's of the same rate and way."""
    same = {(cell["series"], cell["rate_kBps"]): cell["ours"] for cell in _delays(main, ALL)}
    for cell in _delays(other, ALL):
        ours = same.get((cell["series"], cell["rate_kBps"]))
        yield {**cell, main.sheet.emulator: ours}


def _paper_of(sheet: Sheet, cell: Row) -> dict[str, Any] | None:
    thesis = sheet.thesis
    if cell["rate_kBps"] != thesis["largest_delay_rate_kBps"]:
        return None
    largest = thesis["largest_delay_s"].get(cell["series"])
    if largest is None:
        return None
    growth = thesis["growth"] if cell["series"] == "default" else None
    return {"largest_s": largest, "growth": growth}


def _bound(cell: Row, row: Row) -> dict[str, Any] | None:
    """The model's largest delay, with as many urgent messages in front as there were at most."""
    if cell["bound"] is None:
        return {"growth": cell["growth"]} if cell["method"] == "fifo" else None
    return {
        "largest_s": row.get("largest_bound_s"),
        "largest_of_bound": row.get("largest_of_bound"),
    }


def _traffic(lab: Measured, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for node, cell in lab.cells(TRAFFIC, ALL):
        row = lab.traffic.get(node, {})
        ours = {name: row.get(name) for name in ("messages", "arrived", *names)}
        yield {**_head(cell), "paper": None, "ours": ours, "bound": None}


def _packets(lab: Measured) -> Iterator[dict[str, Any]]:
    for node, cell in lab.cells(TRAFFIC, ALL):
        expected = cell["packets_of_standard"]
        yield {
            **_head(cell),
            "paper": None if expected is None else {"packets": expected},
            "ours": {"packets": packets_of_standard(lab, node)},
            "bound": None,
        }


def packets_of_standard(lab: Measured, node: str) -> float | None:
    """New data packets for one SM, an urgent message being one packet; None unless all have come."""
    row = lab.traffic.get(node)
    if row is None or row["arrived"] < row["messages"]:
        return None
    count = lab.sheet.messages_of_traffic
    return float((row["data_packets"] - count) / count)
