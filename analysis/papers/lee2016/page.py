"""report.html of a reproduction: checks first, then each figure; no scripts, nothing fetched from elsewhere."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis import pages
from analysis.papers.lee2016 import charts
from analysis.papers.lee2016.sheet import Sheet

Points = Sequence[Mapping[str, Any]]
STEPS = 40  # points that differ by less than a fortieth are one


def write_page(folder: Path, result: Mapping[str, Any], sheet: Sheet, points: list[Points]) -> Path:
    """Write it and say where it is."""
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
    """Those that can be told from each other on a logarithmic axis: of points that would hide each other, one."""
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
        """None: a table is enough."""
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
        return Markup(charts.shares(chosen, self._sheet.titles, name, figure["title"]))

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
        drawn = charts.scatter(points, curve, self._sheet.titles, name, label) if points else None
        return Markup(drawn) if drawn else None

    def _by_rate(self, cells: Points, name: str, label: str) -> Markup | None:
        what = "down_bytes" if name == "figure-5-11" else "down_packets"
        rows = [
            {"series": cell["series"], "rate": cell["rate_kBps"], "value": cell["ours"][what]}
            for cell in cells
            if cell["ours"][what] is not None
        ]
        title = f"{what.removeprefix('down_')} toward the client"
        drawn = charts.by_rate(rows, self._sheet.titles, title, name, label) if rows else None
        return Markup(drawn) if drawn else None
