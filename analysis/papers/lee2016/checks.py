"""What must be true of a reproduction, each as one sentence with the numbers behind it. Pure."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from analysis.papers.lee2016.figures import Measured, Row, packets_of_standard
from analysis.papers.lee2016.sheet import DELAY, TRAFFIC

ORDER = ("default", "pq-pc", "dmpq-10000", "dmpq-1443", "preemptive")
DIVIDED = ("dmpq-10000", "dmpq-5000", "dmpq-1443", "dmpq-1000")
UNDIVIDED = ("pq-pc",)
KERNEL = ("dmpq-1443-kernel",)
WITHIN = 1.15  # of the model's bound: headers, and the time of the machine
FEW_MESSAGES = "so few messages tell no slope"
JUDGED_SCALE = (
    1  # where time is scaled, milliseconds of the machine count for more than the bound leaves
)
OURS_OF_THEIRS = 0.8
GROWS_BELOW = 10  # kB/s


def checks(lab: Measured) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured here), and the numbers."""
    return [
        _order(lab),
        _growth(lab),
        _bounded(lab, "PQ-PC's delays are within 1.15 x TS + TP", UNDIVIDED),
        _bounded(lab, "DMPQ-PC's delays are within 1.15 x its bound at every rate", DIVIDED),
        _bounded(lab, "the same where the kernel is asked instead of the client", KERNEL),
        _packets(lab),
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


def _packets(lab: Measured) -> dict[str, Any]:
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
