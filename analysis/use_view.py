"""How full each link was over time: a heat map of links and seconds, of bounded size."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from analysis import findings, use_chart
from analysis.receivers import natural
from analysis.runfolder import Run

MOST_LINES = 40  # links and directions in the chart; the fullest stay
MOST_COLUMNS = 60  # stretches of time
FULL = 0.9  # cells from this share on have a mark


def view(run: Run, summary: dict[str, Any]) -> dict[str, Any] | None:
    """None if no link has a limit, nothing was seen, or the run was analysed before use was measured."""
    told = summary.get("use")
    if told is None:
        return None
    use = findings.table(run, "use", ["link", "direction", "unit", "share"])
    cells, left_out, units = heat(use)
    if not cells:
        return None
    peaks: dict[str, float] = {}
    for cell in cells:
        peaks[cell["line"]] = max(cell["share"], peaks.get(cell["line"], 0.0))
    unit_s = told["unit_s"]
    label = f"Share of its rate that each link carried over time; the fullest: {_fullest(peaks)}"
    rows = [
        {
            **cell,
            "from_s": cell["column"] * units * unit_s,
            "to_s": (cell["column"] + 1) * units * unit_s,
        }
        for cell in cells
    ]
    return {
        "chart": Markup(use_chart.draw(rows, peaks, FULL, label)),
        "left_out": left_out,
        "stretch_s": units * unit_s,
        "joined": units,
        "unit_s": unit_s,
        "full": findings.percent(FULL),
    }


def heat(
    use: pa.Table, most_lines: int = MOST_LINES, most_columns: int = MOST_COLUMNS
) -> tuple[list[dict[str, Any]], int, int]:
    """Cells (line, column, share), lines left out, and units in a column, of which the fullest counts.

    What was before the time that counts is not shown, nor are lines without a limit.
    """
    counted = use.filter((pc.field("unit") >= 0) & pc.field("share").is_valid())
    if not counted.num_rows:
        return [], 0, 1
    units = -(-(pc.max(counted["unit"]).as_py() + 1) // most_columns)
    line = pc.binary_join_element_wise(counted["link"], counted["direction"], " ")
    column = pc.divide(counted["unit"].cast(pa.int64()), pa.scalar(units, pa.int64()))
    cells = pa.table({"line": line, "column": column, "share": counted["share"]})
    found = cells.group_by(["line", "column"]).aggregate([("share", "max")])
    peaks = found.group_by("line").aggregate([("share_max", "max")]).to_pylist()
    peaks.sort(key=lambda row: (-row["share_max_max"], natural(row["line"])))
    shown = {row["line"] for row in peaks[:most_lines]}
    rows = [
        {"line": row["line"], "column": row["column"], "share": row["share_max"]}
        for row in found.to_pylist()
        if row["line"] in shown
    ]
    rows.sort(key=lambda row: (natural(row["line"]), row["column"]))
    return rows, len(peaks) - len(shown), units


def _fullest(peaks: dict[str, float]) -> str:
    line = max(peaks, key=lambda name: peaks[name])
    return f"{line}, {findings.percent(peaks[line])}"
