"""The report's part on the machine: one sentence, one chart, and what calibration found."""

from typing import Any

from markupsafe import Markup

from analysis import calibration, charts
from analysis.findings import NARROW, percent, seconds
from analysis.headroom import LEAST_IDLE
from analysis.machine import SHORTEST_S, Row, read_rows
from analysis.runfolder import Run

MOST_POINTS = 400  # more would not be told apart
LABEL = "Use of the processors and the latest wake-up of an ordinary process, second by second"
SIMULATED = "It does not matter: the run was simulated, and virtual time waits for a slow machine."


def view(run: Run, summary: dict[str, Any], start_ns: int) -> dict[str, Any]:
    """For the template."""
    known = summary["fidelity"].get("machine")
    rows = read_rows(run) or ()
    return {
        "known": known,
        "sentence": SIMULATED if run.simulated else sentence(known),
        "chart": _chart(run, rows, start_ns, known) if known else None,
        "calibration": calibration.rows(run),
    }


def sentence(known: dict[str, Any] | None) -> str:
    """Yes or no, and by how much."""
    if known is None:
        return "Nobody knows: the machine was not watched while this run was made."
    if not known["ok"]:
        return "No. The numbers above may be the machine's as much as the network's:"
    if known["cpu_idle_min"] is None or known["wakeup_p99_s"] is None:
        return (
            "Nothing speaks against it, but there is little to go by: no second of the run counts."
        )
    return (
        f"Yes. In the busiest second {percent(known['cpu_idle_min'])} of the processors' time was idle, in half of "
        f"the seconds at least {percent(known['cpu_idle_median'])}. "
        f"99{NARROW}% of the wake-ups of an ordinary process came within "
        f"{seconds(known['wakeup_p99_s'])} (limit: {seconds(known['wakeup_limit_s'])}), all within "
        f"{seconds(known['wakeup_max_s'])}."
    )


def chart_rows(rows: tuple[Row, ...], start_ns: int) -> list[dict[str, Any]]:
    """Points of the chart; of too many, the busiest of each stretch stays."""
    points = [
        {
            "at_s": (row.begin_ns + row.end_ns - 2 * start_ns) / 2e9,
            "cpu_used": 1.0 - row.cpu_idle,
            "delay_s": row.wakeup_max_s,
        }
        for row in rows
        if row.span_s >= SHORTEST_S and row.cpu_idle is not None and row.wakeup_max_s is not None
    ]
    step = -(-len(points) // MOST_POINTS)
    return [
        {
            "at_s": points[begin]["at_s"],
            "cpu_used": max(point["cpu_used"] for point in points[begin : begin + step]),
            "delay_s": max(point["delay_s"] for point in points[begin : begin + step]),
        }
        for begin in range(0, len(points), max(1, step))
    ]


def _chart(run: Run, rows: tuple[Row, ...], start_ns: int, known: dict[str, Any]) -> Markup | None:
    points = chart_rows(rows, start_ns)
    if not points:
        return None
    play = run.manifest.get("play")
    played_s = (int(play["end_ns"]) - start_ns) / 1e9 if play else None
    limits = {"cpu_used": 1 - LEAST_IDLE, "delay_s": known["wakeup_limit_s"]}
    return Markup(charts.machine(points, played_s, limits, LABEL))
