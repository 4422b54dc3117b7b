"""The report's section on link utilization: a heat map of links over time, of bounded size."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.formatting import natural, percent
from analysis.inputs.results import table
from analysis.inputs.run_folder import Run
from analysis.report.charts import HOVER, WIDTH, layered, of_rows, svg
from analysis.report.drawing import Drawing

# The heat map: the opacity is the utilization; a dot marks full cells, and each row has its peak in numbers.


ROW = 17  # pixels of a link
NAMES, PEAKS = 150, 70  # pixels for names and for peaks


def draw(rows: list[dict[str, Any]], peaks: dict[str, float], full: float, label: str) -> Drawing:
    """`rows`: line (link and direction), from_s, to_s, share, in order; `peaks`: of each line."""
    import altair as alt

    lines = list(peaks)
    shown = [
        {
            **row,
            "filled": min(1.0, row["share"]),
            "hover": f"{row['line']}, {row['from_s']:g} to {row['to_s']:g} s: {percent(row['share'])}",
        }
        for row in rows
    ]
    y = alt.Y(
        "line:N",
        title=None,
        sort=lines,
        scale={"paddingInner": 0.12},
        axis={"domain": False, "ticks": False, "labelLimit": NAMES, "labelOverlap": False},
    )
    x = alt.X("from_s:Q", title="seconds after the start", scale={"nice": False, "zero": True})
    cells = (
        of_rows(shown)
        .mark_rect(color="var(--accent)")
        .encode(
            y=y,
            x=x,
            x2=alt.X2("to_s:Q"),
            fillOpacity=alt.FillOpacity(
                "filled:Q", scale={"domain": [0, 1], "range": [0.05, 1]}, legend=None
            ),
            description=alt.Description(HOVER),
        )
    )
    middles = [
        {**row, "from_s": (row["from_s"] + row["to_s"]) / 2}
        for row in shown
        if round(row["share"], 2) >= full  # as it is displayed
    ]
    dots = of_rows(middles).mark_point(
        shape="circle", size=9, filled=True, opacity=1, color="var(--paper)"
    )
    labels = [{"line": line, "text": percent(peak)} for line, peak in peaks.items()]
    peak = of_rows(labels).mark_text(align="left", fontSize=11)
    width = WIDTH - NAMES - PEAKS
    chart = layered(
        cells,
        dots.encode(y=y, x=alt.X("from_s:Q"), description=alt.Description(HOVER)),
        peak.encode(y=y, x=alt.XValue(width + 8), text=alt.Text("text:N")),  # type: ignore[no-untyped-call]
        width=width,
        height=len(lines) * ROW,
    )
    return svg(chart, "link_utilization", label, height=None)


MOST_LINES = 40  # links and directions in the chart; the fullest stay
MOST_COLUMNS = 60  # intervals of time
FULL = 0.9  # cells from this share on have a dot


def view(run: Run, summary: dict[str, Any]) -> dict[str, Any] | None:
    """The view of the template; None without limited links or traffic, or if the metric is missing."""
    measured = summary.get("link_utilization")
    if measured is None:
        return None
    use = table(run, "link_utilization", ["link", "direction", "unit", "share"])
    cells, left_out, units = heat(use)
    if not cells:
        return None
    peaks: dict[str, float] = {}
    for cell in cells:
        peaks[cell["line"]] = max(cell["share"], peaks.get(cell["line"], 0.0))
    unit_s = measured["unit_s"]
    label = f"Utilization of each link over time; the highest: {_fullest(peaks)}"
    rows = [
        {
            **cell,
            "from_s": cell["column"] * units * unit_s,
            "to_s": (cell["column"] + 1) * units * unit_s,
        }
        for cell in cells
    ]
    return {
        "chart": draw(rows, peaks, FULL, label),
        "left_out": left_out,
        "stretch_s": units * unit_s,
        "joined": units,
        "unit_s": unit_s,
        "full": percent(FULL),
    }


def heat(
    use: pa.Table, most_lines: int = MOST_LINES, most_columns: int = MOST_COLUMNS
) -> tuple[list[dict[str, Any]], int, int]:
    """Cells (line, column, share), the number of lines left out, and the units in a column; the fullest unit counts.

    Units before the time that counts are left out, and so are links without a limit.
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
    return f"{line}, {percent(peaks[line])}"
