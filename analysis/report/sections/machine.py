"""The report's section on the machine: a sentence, a chart, and the calibration."""

from typing import Any

from analysis.formatting import NARROW, percent, seconds
from analysis.inputs import calibration
from analysis.inputs.machine import SHORTEST_S, Row, read_rows
from analysis.inputs.run_folder import Run
from analysis.metrics.fidelity import LEAST_IDLE
from analysis.report.charts import (
    HEIGHT,
    MOST_DECADES,
    SMALL_HEIGHT,
    WIDTH,
    Specification,
    delay_axis,
    layered,
    of_rows,
    svg,
)
from analysis.report.drawing import Drawing


def machine(
    rows: list[dict[str, Any]], played_s: float | None, limits: dict[str, float], label: str
) -> Drawing:
    """The machine over time. `rows`: at_s, cpu_used, delay_s; `limits` of these two; the scenario is shaded."""
    import altair as alt

    window = [{"from_s": 0.0, "to_s": played_s}] if played_s is not None else []

    def panel(value: str, y: Any, limit: float, below: str | None) -> Specification:
        at = alt.X("at_s:Q", title=below, scale={"nice": False})
        drawn = of_rows(rows).mark_line(strokeWidth=1.8, color="var(--accent)").encode(x=at, y=y)
        line = of_rows([{"limit": limit}]).mark_rule(strokeDash=[5, 4], color="var(--care)")
        shade = of_rows(window).mark_rect(color="var(--line)", opacity=0.45)
        return layered(
            shade.encode(x=alt.X("from_s:Q"), x2=alt.X2("to_s:Q")),
            line.encode(y=alt.Y("limit:Q")),
            drawn,
            width=WIDTH,
            height=SMALL_HEIGHT,
            title=value,
        )

    used = alt.Y(
        "cpu_used:Q",
        title=None,
        scale={"domain": [0, 1]},
        axis={"format": "%", "tickCount": 5},
    )
    shown = [*rows, {"delay_s": limits["delay_s"]}]
    late = delay_axis(shown, alt.Y, MOST_DECADES * SMALL_HEIGHT / HEIGHT, title=None)
    panels = [
        panel("processors in use", used, limits["cpu_used"], None),
        panel(
            "latest wake-up of an ordinary process in each second",
            late,
            limits["delay_s"],
            "seconds after the start",
        ),
    ]
    return svg({"vconcat": panels, "spacing": 18}, "machine", label, height=None)


MOST_POINTS = 400  # a reader cannot distinguish more
LABEL = "Use of the processors and the latest wake-up of an ordinary process, second by second"
SIMULATED = "The speed of the machine does not affect a simulated run: virtual time waits for it."


def view(run: Run, summary: dict[str, Any], start_ns: int) -> dict[str, Any]:
    """The view of the template."""
    known = summary["fidelity"].get("machine")
    rows = read_rows(run) or ()
    return {
        "known": known,
        "sentence": SIMULATED if run.simulated else sentence(known),
        "chart": _chart(run, rows, start_ns, known) if known else None,
        "calibration": calibration.rows(run),
    }


def sentence(known: dict[str, Any] | None) -> str:
    """Whether the machine was fast enough, with numbers."""
    if known is None:
        return "Unknown: the machine was not monitored during this run."
    if not known["ok"]:
        return "No. The machine may have affected the numbers above as much as the network did:"
    if known["cpu_idle_min"] is None or known["wakeup_p99_s"] is None:
        return "No problem was found, but the monitor measured no second of the scenario."
    return (
        f"Yes. In the busiest second {percent(known['cpu_idle_min'])} of the processors' time was idle, in half of "
        f"the seconds at least {percent(known['cpu_idle_median'])}. "
        f"99{NARROW}% of the wake-ups of an ordinary process came within "
        f"{seconds(known['wakeup_p99_s'])} (limit: {seconds(known['wakeup_limit_s'])}), all within "
        f"{seconds(known['wakeup_max_s'])}."
    )


def chart_rows(rows: tuple[Row, ...], start_ns: int) -> list[dict[str, Any]]:
    """Points of the chart; if there are too many, the busiest of each interval stays."""
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


def _chart(run: Run, rows: tuple[Row, ...], start_ns: int, known: dict[str, Any]) -> Drawing | None:
    points = chart_rows(rows, start_ns)
    if not points:
        return None
    play = run.manifest.get("play")
    played_s = (int(play["end_ns"]) - start_ns) / 1e9 if play else None
    limits = {"cpu_used": 1 - LEAST_IDLE, "delay_s": known["wakeup_limit_s"]}
    return machine(points, played_s, limits, LABEL)
