"""The report's section on clocks: a sentence, a table, and the offset of each clock over time."""

import math
from typing import Any

import numpy as np

from analysis.captures.clock import Clock
from analysis.formatting import NARROW, natural, plain, seconds_with_error
from analysis.inputs.clocks import WHEN, read_clocks
from analysis.inputs.run_folder import Run
from analysis.report.charts import WIDTH, Specification, layered, of_rows, svg
from analysis.report.drawing import Drawing

# One panel for each clock: offset, error band and measurements with bars; readable without colour.


HEIGHT = 90
Panel = tuple[
    str, list[dict[str, Any]], list[dict[str, Any]]
]  # node, offset over time, measurements


def draw(panels: list[Panel], edges: list[float], label: str) -> Drawing:
    """Rows: at_s, offset_ms, low_ms, high_ms. `edges`: begin and end of the scenario, in seconds."""
    last = len(panels) - 1
    drawn = [_panel(panel, edges, number == last) for number, panel in enumerate(panels)]
    return svg({"vconcat": drawn, "spacing": 16}, "clocks", label, height=None)


def _panel(panel: Panel, edges: list[float], lowest: bool) -> Specification:
    import altair as alt

    node, line, measured = panel
    title = "seconds after the start" if lowest else None
    at = alt.X("at_s:Q", title=title, scale={"nice": False})
    scale = {"zero": False, "nice": True}
    y = alt.Y("low_ms:Q", title="ahead, ms", scale=scale, axis={"tickCount": 4})
    band = of_rows(line).mark_area(color="var(--quiet)", opacity=0.22)
    curve = of_rows(line).mark_line(color="var(--accent)", strokeWidth=2)
    rules = of_rows([{"at_s": edge} for edge in edges]).mark_rule(
        strokeDash=[5, 4], color="var(--quiet)"
    )
    bars = of_rows(measured).mark_rule(color="var(--ink)", strokeWidth=1.5)
    dots = of_rows(measured).mark_point(
        filled=True, size=38, opacity=1, shape="circle", color="var(--ink)"
    )
    layers = [
        band.encode(x=at, y=y, y2=alt.Y2("high_ms:Q")),
        curve.encode(x=at, y=alt.Y("offset_ms:Q", scale=scale)),
        bars.encode(x=at, y=alt.Y("low_ms:Q", scale=scale), y2=alt.Y2("high_ms:Q")),
        dots.encode(x=at, y=alt.Y("offset_ms:Q", scale=scale)),
    ]
    if edges:
        layers.insert(0, rules.encode(x=at))
    return layered(*layers, width=WIDTH, height=HEIGHT, title=node)


MOST_PANELS = 8  # clocks in the chart; those with the largest errors stay
POINTS = 120  # of a line
FINE_PPM = 3  # smaller errors allow a decimal digit
BEYOND = 0.05  # share of the shown time, before its beginning and after its end
LABEL = "Offset of each clock to that of the lab's machine over time, with its error"


def view(run: Run, summary: dict[str, Any], start_ns: int) -> dict[str, Any] | None:
    """The view of the template; None if all nodes use one clock."""
    known = (summary.get("clocks") or {}).get("by_node")
    if not known:
        return None
    names = sorted(known, key=natural)
    by_error = sorted(names, key=lambda node: -known[node]["error_s"])
    shown = sorted(by_error[:MOST_PANELS], key=natural)
    clocks = read_clocks(run.clocks)
    played = run.played
    panels = [
        (node, curve(clock, start_ns, played), points(clock, start_ns))
        for node in shown
        if (clock := clocks.get(node)) is not None
    ]
    edges = [(at - start_ns) / 1e9 for at in played] if played else []
    return {
        "sentence": sentence(known),
        "rate_ppm": summary["clocks"]["rate_ppm"],
        "rows": [row(node, known[node]) for node in names],
        "chart": draw(panels, edges, LABEL) if panels else None,
        "left_out": len(names) - len(shown),
    }


def sentence(known: dict[str, Any]) -> str:
    """The number of clocks, and the worst one."""
    worst = max(known, key=lambda node: known[node]["error_s"])
    error = plain(known[worst]["error_s"])
    if len(known) == 1:
        return f"{worst} has its own clock; the error of its times is at most {error}."
    return f"{len(known)} nodes have their own clocks; the error is largest for {worst}, at most {error}."


def row(node: str, known: dict[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    return {
        "node": node,
        "offsets": [signed(known[when]) for when in WHEN],
        "drift": rate(known["drift_ppm"], known["drift_error_ppm"]),
        "error": plain(known["error_s"]),
        "was_set": known["was_set"],
    }


def rate(drift: float | None, error: float | None) -> str:
    """A drift, with the digits that its error allows."""
    if drift is None or error is None:
        return "–"
    if abs(drift) <= error:
        return f"0 ± {math.ceil(abs(drift) + error)}{NARROW}ppm"
    digits = 1 if error < FINE_PPM else 0
    shown = round(drift, digits)
    off = math.ceil((error + abs(drift - shown)) * 10**digits) / 10**digits
    return f"{shown:+.{digits}f} ± {off:.{digits}f}{NARROW}ppm".replace("-", "−")


def signed(offset: dict[str, float] | None) -> str:
    """An offset with its sign and error."""
    if offset is None:
        return "–"
    value, error = offset["offset_s"], offset["error_s"]
    if abs(value) <= error:
        return f"0 ± {plain(abs(value) + error)}"
    return f"{'−' if value < 0 else '+'}{seconds_with_error(abs(value), error)}"


def curve(clock: Clock, start_ns: int, played: tuple[int, int] | None) -> list[dict[str, Any]]:
    """The offset by which times are corrected and its bounds, in ms, over all measurements and the scenario."""
    ends = [int(clock.at_ns[0]), int(clock.at_ns[-1]), *(played or ())]
    begin, end = min(ends), max(ends)
    margin = round((end - begin) * BEYOND) or 1_000_000_000
    even = begin - margin + np.linspace(0, end - begin + 2 * margin, POINTS).astype(np.int64)
    at = np.unique(np.concatenate((even, clock.at_ns)))
    offset, error = clock.offset_at(at) / 1e6, clock.error_at(at) / 1e6
    columns = ((at - start_ns) / 1e9, offset, offset - error, offset + error)
    names = ("at_s", "offset_ms", "low_ms", "high_ms")
    return [
        dict(zip(names, values, strict=True)) for values in zip(*map(_plain, columns), strict=True)
    ]


def points(clock: Clock, start_ns: int) -> list[dict[str, Any]]:
    """The measurements that count, with their errors."""
    at, offset, error = (
        (clock.at_ns - start_ns) / 1e9,
        clock.offset_ns / 1e6,
        clock.error_ns / 1e6,
    )
    columns = (at, offset, offset - error, offset + error)
    names = ("at_s", "offset_ms", "low_ms", "high_ms")
    return [
        dict(zip(names, values, strict=True)) for values in zip(*map(_plain, columns), strict=True)
    ]


def _plain(column: Any) -> list[float]:
    return [float(value) for value in column]
