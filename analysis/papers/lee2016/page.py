"""report.html of a reproduction: checks first, then each figure; no scripts, no external resources."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis.papers.lee2016.cells import Sheet
from analysis.report import pages
from analysis.report.charts import delay_axis, layered, of_rows, specification, svg
from analysis.report.drawing import Drawing

# The figures as charts. Series differ by colour and by dash or shape.


COLOURS = {
    "default": "var(--level-1)",
    "pq-pc": "var(--level-3)",
    "dmpq-10000": "var(--level-2)",
    "dmpq-5000": "var(--layer-ip)",
    "dmpq-1443": "var(--layer-websocket)",
    "dmpq-1000": "var(--layer-ethernet)",
    "dmpq-1443-kernel": "var(--good)",
    "preemptive": "var(--level-5)",
}
SHAPES = {
    "default": "circle",
    "pq-pc": "square",
    "dmpq-10000": "triangle-up",
    "dmpq-5000": "triangle-down",
    "dmpq-1443": "diamond",
    "dmpq-1000": "triangle-right",
    "dmpq-1443-kernel": "triangle-left",
    "preemptive": "cross",
}
DASHES = {
    "default": [1, 0],
    "pq-pc": [8, 3],
    "dmpq-10000": [4, 3],
    "dmpq-5000": [2, 2],
    "dmpq-1443": [6, 2, 2, 2],
    "dmpq-1000": [1, 3],
    "dmpq-1443-kernel": [10, 4],
    "preemptive": [1, 0],
}
BESIDE = 0.08  # kB/s from one series to the next, so that their points do not hide each other
SMALL = 200


def scatter(
    points: Sequence[Mapping[str, Any]],
    curve: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    name: str,
    label: str,
) -> Drawing:
    """Each urgent message by rate, with bounds as lines. `points`: series, rate, delay_s; `curve` the same."""
    import altair as alt

    shown = [key for key in titles if any(point["series"] == key for point in points)]
    rows = [
        {
            "title": titles[point["series"]],
            "rate": point["rate"] + BESIDE * (shown.index(point["series"]) - len(shown) / 2),
            "delay_s": point["delay_s"],
        }
        for point in points
    ]
    lines = [{**row, "title": titles.get(row["series"], row["series"])} for row in curve]
    at = _rate_axis()
    axis = delay_axis([*rows, *lines], alt.Y)
    drawn = (
        of_rows(rows)
        .mark_point(size=26, strokeWidth=1.3, opacity=0.7)
        .encode(
            x=at,
            y=axis,
            color=_by_series(alt.Color, shown, titles, COLOURS),
            shape=_by_series(alt.Shape, shown, titles, SHAPES),
        )
    )
    bounds = (
        of_rows(lines)
        .mark_line(strokeWidth=1.5, strokeDash=[4, 3], color="var(--ink)", opacity=0.6)
        .encode(x=at, y=axis, detail=alt.Detail("title:N"))
    )
    return svg(layered(bounds, drawn) if lines else specification(drawn), name, label)


def shares(
    delays: Mapping[str, Sequence[float | None]], titles: Mapping[str, str], name: str, label: str
) -> Drawing:
    """Share of urgent messages that arrived within a time, for each series; None has not arrived."""
    import altair as alt

    shown = [key for key in titles if delays.get(key)]
    rows = [
        {"title": titles[key], "delay_s": delay, "share": (place + 1) / len(delays[key])}
        for key in shown
        for place, delay in enumerate(sorted(value for value in delays[key] if value is not None))
    ]
    drawn = (
        of_rows(rows)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=delay_axis(rows, alt.X),
            y=alt.Y("share:Q", title="arrived", scale={"domain": [0, 1]}, axis={"format": "%"}),
            color=_by_series(alt.Color, shown, titles, COLOURS),
            strokeDash=_by_series(alt.StrokeDash, shown, titles, DASHES),
        )
    )
    return svg(specification(drawn), name, label, height=SMALL)


def by_rate(
    rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str], what: str, name: str, label: str
) -> Drawing:
    """One line for each series. `rows`: series, rate, value."""
    import altair as alt

    shown = [key for key in titles if any(row["series"] == key for row in rows)]
    titled = [{**row, "title": titles[row["series"]]} for row in rows]
    drawn = (
        of_rows(titled)
        .mark_line(strokeWidth=2, point={"size": 30})
        .encode(
            x=_rate_axis(),
            y=alt.Y("value:Q", title=what, scale={"zero": False}),
            color=_by_series(alt.Color, shown, titles, COLOURS),
            strokeDash=_by_series(alt.StrokeDash, shown, titles, DASHES),
        )
    )
    return svg(specification(drawn), name, label)


def _rate_axis() -> Any:
    import altair as alt

    return alt.X(
        "rate:Q",
        title="rate of the line, kB/s",
        scale={"nice": False, "zero": False, "padding": 12},
        axis={"format": "d", "tickMinStep": 1},
    )


def _by_series(
    channel: Any, shown: Sequence[str], titles: Mapping[str, str], values: Mapping[str, Any]
) -> Any:
    names = [titles[key] for key in shown]
    return channel(
        "title:N",
        title=None,
        sort=names,
        scale={"domain": names, "range": [values[key] for key in shown]},
        legend={"orient": "right", "symbolSize": 120},
    )


Points = Sequence[Mapping[str, Any]]
STEPS = 40  # points that differ by less than 1/40 are merged


def write_page(folder: Path, result: Mapping[str, Any], sheet: Sheet, points: list[Points]) -> Path:
    """Write the page; returns its path."""
    return pages.write(folder / "report.html", render(result, sheet, points))


def render(result: Mapping[str, Any], sheet: Sheet, points: list[Points]) -> str:
    """The page's HTML. `points`: the urgent messages of each run."""
    shown = _Drawings(sheet, points[0])
    return pages.render(
        "lee2016.html",
        result=result,
        titles=sheet.titles,
        figures=[{**figure, "drawing": shown.of(figure)} for figure in result["figures"]],
    )


def _apart(delays: Sequence[float | None]) -> list[float]:
    """Points that a reader can distinguish on a logarithmic axis: of overlapping points, one."""
    places = {round(math.log(delay) * STEPS): delay for delay in delays if delay}
    return list(places.values())


class _Drawings:
    """The chart of each figure, where it has one."""

    def __init__(self, sheet: Sheet, points: Points) -> None:
        self._sheet = sheet
        self._delays: defaultdict[tuple[str, int], list[float | None]] = defaultdict(list)
        for point in points:
            cell = sheet.cells[point["node"]]
            self._delays[cell["series"], cell["rate_kBps"]].append(point["delay_s"])

    def of(self, figure: Mapping[str, Any]) -> Markup | None:
        """The chart of a figure; None if the table is enough."""
        number, cells = figure["figure"], figure["cells"]
        name = f"figure-{number.replace('.', '-')}"
        if not cells or not number[0].isdigit():
            return None
        if number in ("5.4", "5.13"):
            return self._scatter(cells, name, figure["title"])
        if number in ("5.11", "5.12"):
            return self._by_rate(cells, name, figure["title"])
        chosen = {c["series"]: self._delays[c["series"], c["rate_kBps"]] for c in cells}
        if not any(delay is not None for delays in chosen.values() for delay in delays):
            return None
        return Markup(shares(chosen, self._sheet.titles, name, figure["title"]))

    def _scatter(self, cells: Points, name: str, label: str) -> Markup | None:
        points = [
            {"series": cell["series"], "rate": cell["rate_kBps"], "delay_s": delay}
            for cell in cells
            for delay in _apart(self._delays[cell["series"], cell["rate_kBps"]])
        ]
        if name == "figure-5-4":
            times = {cell["rate_kBps"]: cell["standard_s"] for cell in cells}
            curve = [{"series": "TS", "rate": r, "delay_s": s} for r, s in sorted(times.items())]
        else:
            curve = [
                {
                    "series": cell["series"],
                    "rate": cell["rate_kBps"],
                    "delay_s": cell["bound"]["largest_s"],
                }
                for cell in cells
                if cell["bound"] and cell["bound"]["largest_s"]
            ]
        drawn = scatter(points, curve, self._sheet.titles, name, label) if points else None
        return Markup(drawn) if drawn else None

    def _by_rate(self, cells: Points, name: str, label: str) -> Markup | None:
        what = "down_bytes" if name == "figure-5-11" else "down_packets"
        rows = [
            {"series": cell["series"], "rate": cell["rate_kBps"], "value": cell["ours"][what]}
            for cell in cells
            if cell["ours"][what] is not None
        ]
        title = f"{what.removeprefix('down_')} toward the client"
        drawn = by_rate(rows, self._sheet.titles, title, name, label) if rows else None
        return Markup(drawn) if drawn else None
