"""The thesis' figures as plain values: cells with the thesis' numbers (`paper`) and our measurement (`ours`).

A number that is not in the thesis' text is null. Pure: rows in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from analysis.papers.lee2016.cells import DELAY, TRAFFIC, Sheet

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
    """One lab of the reproduction: its cells, and their rows from Spark."""

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
    """The other lab's delays, beside the main lab's of the same rate and method."""
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
    """The model's bound for the largest number of urgent messages in front."""
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


# Checks of the reproduction: a sentence with the numbers behind it. Pure.


ORDER = ("default", "pq-pc", "dmpq-10000", "dmpq-1443", "preemptive")
DIVIDED = ("dmpq-10000", "dmpq-5000", "dmpq-1443", "dmpq-1000")
UNDIVIDED = ("pq-pc",)
KERNEL = ("dmpq-1443-kernel",)
WITHIN = 1.15  # times the model's bound: allows for headers and the machine
FEW_MESSAGES = "so few messages tell no slope"
JUDGED_SCALE = 1  # with scaled time the machine's milliseconds exceed the margin of the bound
OURS_OF_THEIRS = 0.8
GROWS_BELOW = 10  # kB/s


def checks(lab: Measured) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured), and the numbers."""
    return [
        _order(lab),
        _growth(lab),
        _bounded(lab, "PQ-PC's delays are within 1.15 x TS + TP", UNDIVIDED),
        _bounded(lab, "DMPQ-PC's delays are within 1.15 x its bound at every rate", DIVIDED),
        _bounded(lab, "the same where the kernel is asked instead of the client", KERNEL),
        _check_packets(lab),
        _ours_faster(lab),
        _ours_smaller(lab, "toward the client", ("down_bytes",)),
        _ours_smaller(lab, "both ways", ("down_bytes", "up_bytes")),
    ]


def _check(name: str, ok: bool | None, found: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "found": found}


def _rate(lab: Measured) -> int:
    return int(lab.sheet.thesis["largest_delay_rate_kBps"])


def _largest(lab: Measured, series: str, rate: int) -> float | None:
    for node, _ in lab.cells(DELAY, (series,), rate):
        row = lab.delays.get(node)
        return row["largest_s"] if row else None
    return None


def _order(lab: Measured) -> dict[str, Any]:
    rate = _rate(lab)
    largest = [(series, _largest(lab, series, rate)) for series in ORDER]
    known = [(series, value) for series, value in largest if value is not None]
    values = [value for _, value in known]
    falls = all(a > b for a, b in pairwise(values))
    found = " > ".join(f"{series} {value:.3g} s" for series, value in known)
    whole = len(known) == len(ORDER)
    return _check(
        f"largest delay at {rate} kB/s: default > PQ-PC > DMPQ-PC 10000 > 1443 > ours",
        falls if whole else None,
        found,
    )


def _growth(lab: Measured) -> dict[str, Any]:
    rows = [
        (cell["rate_kBps"], lab.delays[node]["growth"], cell["growth"])
        for node, cell in lab.cells(DELAY, ("default",))
        if cell["rate_kBps"] < GROWS_BELOW and node in lab.delays
    ]
    grows = all(growth is not None and growth > model / 2 for _, growth, model in rows)
    found = ", ".join(
        f"{rate} kB/s: {growth or 0:.2f} (model {model:.2f})" for rate, growth, model in rows
    )
    name = "default grows without bound below 10 kB/s (seconds each second)"
    if rows and lab.sheet.scale != JUDGED_SCALE:
        return _check(name, None, f"{found}; not judged: {FEW_MESSAGES}")
    return _check(name, grows if rows else None, found)


def _bounded(lab: Measured, name: str, series: tuple[str, ...]) -> dict[str, Any]:
    ratios = [
        (row["largest_of_bound"], cell)
        for node, cell in lab.cells(DELAY, series)
        if (row := lab.delays.get(node)) and row["largest_of_bound"] is not None
    ]
    if not ratios:
        return _check(name, None, "not measured")
    beyond = [(ratio, cell) for ratio, cell in ratios if ratio > WITHIN]
    worst, where = max(ratios, key=lambda pair: pair[0])
    found = f"{len(ratios) - len(beyond)} of {len(ratios)} cells; largest {worst:.3f} x ({_named(where)})"
    if series != UNDIVIDED and lab.sheet.scale != JUDGED_SCALE:
        return _check(name, None, f"{found}; not judged: time runs {lab.sheet.scale} times as fast")
    return _check(name, not beyond, found)


def _named(cell: Row) -> str:
    return f"{cell['series']} at {cell['rate_kBps']} kB/s"


def _check_packets(lab: Measured) -> dict[str, Any]:
    wrong, right = [], 0
    for node, cell in lab.cells(TRAFFIC, (*UNDIVIDED, *DIVIDED, *KERNEL)):
        packets = packets_of_standard(lab, node)
        if packets == cell["packets_of_standard"]:
            right += 1
        else:
            wrong.append(f"{_named(cell)}: {packets} for {cell['packets_of_standard']}")
    found = f"{right} of {right + len(wrong)} cells" + "".join(f"; {text}" for text in wrong[:3])
    return _check(
        "packets for one SM are the formula's, to the packet",
        not wrong if right + len(wrong) else None,
        found,
    )


def _ours_faster(lab: Measured) -> dict[str, Any]:
    rate = _rate(lab)
    ours, theirs = _largest(lab, "preemptive", rate), _largest(lab, "dmpq-1443", rate)
    name = f"ours at {rate} kB/s is at most 0.8 x DMPQ-PC, DV 1443"
    if ours is None or theirs is None:
        return _check(name, None, "not measured")
    found = f"{ours:.3f} s of {theirs:.3f} s: {ours / theirs:.2f} x"
    return _check(name, ours <= OURS_OF_THEIRS * theirs, found)


def _ours_smaller(lab: Measured, way: str, names: tuple[str, ...]) -> dict[str, Any]:
    name = f"ours sends no more bytes than DMPQ-PC, DV 1443, {way}"
    pairs = list(_pairs(lab, names))
    if not pairs:
        return _check(name, None, "not measured")
    rate, ours, theirs = max(pairs, key=lambda pair: pair[1] / pair[2])
    more = sum(ours > theirs for _, ours, theirs in pairs)
    here = [f"; {a / b:.3f} x at {at} kB/s" for at, a, b in pairs if at == _rate(lab) != rate]
    found = (
        f"{len(pairs) - more} of {len(pairs)} rates; at most {ours:,} for {theirs:,} bytes "
        f"({ours / theirs:.3f} x) at {rate} kB/s{''.join(here)}"
    )
    return _check(name, not more, found)


def _pairs(lab: Measured, names: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
    """Rate, our bytes, theirs."""
    theirs = {cell["rate_kBps"]: node for node, cell in lab.cells(TRAFFIC, ("dmpq-1443",))}
    for node, cell in lab.cells(TRAFFIC, ("preemptive",)):
        rows = [lab.traffic.get(node), lab.traffic.get(theirs.get(cell["rate_kBps"], ""))]
        if all(row is not None and row["arrived"] == row["messages"] for row in rows):
            ours, other = (sum(row[name] for name in names) for row in rows if row)
            yield cell["rate_kBps"], ours, other
