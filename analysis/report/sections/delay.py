"""The report's section on delays: by level in a table, as a distribution, over publish time; and lost deliveries."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.formatting import NARROW, seconds, seconds_with_error
from analysis.metrics import clock_errors
from analysis.report.charts import (
    DASHES,
    EDGE,
    HOVER,
    LEVELS,
    WIDE_RANGE,
    by_level,
    delay_axis,
    label_spots,
    layered,
    of_rows,
    specification,
    svg,
    wide,
)
from analysis.report.drawing import Drawing
from analysis.report.sections.headline import delay_with_error
from nodes.protocol.wire import LEVEL_NAMES

MOST_POINTS = 800  # of a level in a chart; a reader cannot distinguish more
MOST_LOST = 50  # rows of the table
# What a reader sees of a delivery with the pointer on its mark.
_POINT = (
    *("id", "origin", "receiver", "topic", "priority"),
    *("published_ns", "delay_s", "hops", "reason"),
)


def level_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Delay and hops by priority, most urgent first."""
    rows = []
    for level in sorted(summary["by_priority"], reverse=True):
        count = summary["by_priority"][level]
        delay, hops = summary["delay_s"].get(level), summary["hops"].get(level)
        rows.append(
            {
                "level": level,
                "meaning": LEVEL_NAMES[int(level)],
                **count,
                "delays": [
                    delay_with_error(summary, level, q) if delay else "–"
                    for q in ("p50", "p95", "p99", "max")
                ],
                "late_of": _late_of(count),
                "hops_mean": f"{hops['mean']:.2f}" if hops else "–",
                "hops_max": hops["max"] if hops else "–",
            }
        )
    return rows


def _late_of(count: dict[str, Any]) -> str:
    """Number of deliveries after the level's deadline; a dash without a deadline."""
    deadline, late = count.get("deadline_s"), count.get("late")
    return "–" if deadline is None or late is None else f"{late} (after {seconds(deadline)})"


def share_rows(deliveries: pa.Table) -> list[dict[str, Any]]:
    """The distribution of the delay by level, as shares of all expected deliveries, thinned for the chart."""
    rows = []
    for level in _levels(deliveries):
        of_level = deliveries.filter(pc.field("priority") == level)
        delays = sorted(of_level["delay_s"].drop_null().to_pylist())
        rows += [
            {
                "level": str(level),
                "delay_s": delays[place],
                "share": (place + 1) / of_level.num_rows,
            }
            for place in _thinned(len(delays))
        ]
    return rows


def share_bars(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Error bars of the median, 95 % and 99 % of each level, at their places on its curve, if they were reached."""
    return [
        {
            "level": level,
            "share": part,
            "low_s": delay[name] - error,
            "high_s": delay[name] + error,
        }
        for level, delay in summary["delay_s"].items()
        for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        if delay[name] is not None and (error := clock_errors.error_of(summary, level, name))
    ]


def time_rows(
    deliveries: pa.Table, start_ns: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Deliveries and losses over publish time; if there are too many, the slowest of each level stay."""
    came: list[dict[str, Any]] = []
    lost: list[dict[str, Any]] = []
    for level in _levels(deliveries):
        of_level = deliveries.filter(pc.field("priority") == level)
        arrived = of_level.filter(pc.field("delay_s").is_valid())
        ranked = arrived.sort_by([("delay_s", "descending")])
        shown = pa.array(_slowest_and_spread(ranked.num_rows), pa.int64())
        came += _points(ranked.take(shown), start_ns)
        missing = of_level.filter(pc.field("delay_s").is_null())
        lost += _points(missing.slice(0, MOST_POINTS - len(lost)), start_ns)
    return came, lost


def _points(deliveries: pa.Table, start_ns: int) -> list[dict[str, Any]]:
    columns = [*_POINT, *_error_column(deliveries)]
    return [_point(row, start_ns) for row in deliveries.select(columns).to_pylist()]


def _point(row: dict[str, Any], start_ns: int) -> dict[str, Any]:
    at_s, level = (row["published_ns"] - start_ns) / 1e9, str(row["priority"])
    what = f"level {level}, {row['topic']}: {row['origin']} → {row['receiver']}"
    when = f"published after {at_s:.3f}{NARROW}s, message {row['id']}"
    point = {"level": level, "at_s": at_s}
    if row["delay_s"] is None:
        return {**point, "hover": f"lost, {what}: {row['reason']}, {when}"}
    took = seconds_with_error(row["delay_s"], row.get(clock_errors.COLUMN) or 0.0)
    hops = "1 hop" if row["hops"] == 1 else f"{row['hops']} hops"
    hover = f"{took}, {what}, {hops}, {when}"
    return {**point, "delay_s": row["delay_s"], "hover": hover, **_bar(row)}


def _error_column(deliveries: pa.Table) -> list[str]:
    return [clock_errors.COLUMN] if clock_errors.known(deliveries) else []


def _bar(row: dict[str, Any]) -> dict[str, float]:
    """The bounds of the delay; empty where it is exact."""
    error = row.get(clock_errors.COLUMN)
    return {"low_s": row["delay_s"] - error, "high_s": row["delay_s"] + error} if error else {}


def _slowest_and_spread(count: int) -> list[int]:
    """Which of so many deliveries are drawn, the slowest one first."""
    slowest = MOST_POINTS // 4
    if count <= MOST_POINTS:
        return [*range(count)]
    step = (count - slowest) // (3 * MOST_POINTS // 4) + 1
    return [*range(slowest), *range(slowest, count, step)]


def _levels(deliveries: pa.Table) -> list[int]:
    return sorted(set(deliveries["priority"].to_pylist()), reverse=True)


def _thinned(count: int) -> Iterable[int]:
    """Indices from the first to the last, at most MOST_POINTS."""
    if count <= MOST_POINTS:
        return range(count)
    return sorted({round(n * (count - 1) / (MOST_POINTS - 1)) for n in range(MOST_POINTS)})


def lost_rows(deliveries: pa.Table) -> list[dict[str, Any]]:
    """The first lost deliveries, the most urgent ones first."""
    lost = deliveries.filter(pc.field("status") == "lost")
    order = [("priority", "descending"), ("published_ns", "ascending"), ("receiver", "ascending")]
    columns = ["id", "priority", "topic", "origin", "receiver", "published_ns", "reason"]
    return list(lost.sort_by(order).select(columns).slice(0, MOST_LOST).to_pylist())


SHAPES = ("triangle-up", "diamond", "square", "cross", "circle")
BESIDE: dict[str, Any] = {"align": "left", "dx": 7, "fontSize": 12}  # a name beside its curve


def delay_shares(
    rows: list[dict[str, Any]], label: str, bars: list[dict[str, Any]] | None = None
) -> Drawing:
    """Share of the expected deliveries that arrived within a time. `rows`: level, delay_s, share.

    `bars`: level, share, low_s, high_s: error bars of single points.
    """
    import altair as alt

    rows = on_axis(rows)
    lines = (
        of_rows(rows)
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=delay_axis(rows, alt.X),
            y=alt.Y(
                "share:Q",
                title="arrived, of all expected",
                scale={"domain": [0, 1]},
                axis={"format": "%", "tickCount": 5},
            ),
            color=by_level(alt.Color, _present(rows), _colours(rows)),
            strokeDash=by_level(alt.StrokeDash, _present(rows), _of_levels(rows, DASHES)),
        )
    )
    names = of_rows(label_spots(rows, WIDE_RANGE)).encode(
        x=alt.X("delay_s:Q"), y=alt.Y("share:Q"), text=alt.Text("text:N")
    )
    behind = names.mark_text(**BESIDE, stroke="var(--card)", strokeWidth=5, strokeJoin="round")
    drawn = [lines, behind, names.mark_text(**BESIDE)]
    if bars:
        across = of_rows(shown_bars(bars, rows)).mark_rule(strokeWidth=1.5, color="var(--ink)")
        drawn.insert(
            1, across.encode(x=alt.X("low_s:Q"), x2=alt.X2("high_s:Q"), y=alt.Y("share:Q"))
        )
    return svg(layered(*drawn), "shares", label)


def delay_over_time(rows: list[dict[str, Any]], lost: list[dict[str, Any]], label: str) -> Drawing:
    """Each delivery at its publish time. `rows`: level, at_s, delay_s; `lost`: level, at_s, drawn along the top."""
    import altair as alt

    rows = on_axis(rows)
    at = alt.X("at_s:Q", title="published, seconds after the start", scale={"nice": True})
    shown = rows + lost
    points = (
        of_rows(rows)
        .mark_point(size=42, filled=False, strokeWidth=1.6, opacity=0.85)
        .encode(
            x=at,
            y=delay_axis(rows, alt.Y),
            color=by_level(alt.Color, _present(shown), _colours(shown)),
            shape=by_level(alt.Shape, _present(shown), _of_levels(shown, SHAPES)),
            description=alt.Description(HOVER),
        )
    )
    crosses = (
        of_rows(lost)
        .mark_text(text="✕", fontSize=13, baseline="bottom", dy=-2)
        .encode(
            x=at,
            y=alt.YValue(0),  # type: ignore[no-untyped-call]
            color=by_level(alt.Color, _present(shown), _colours(shown)),
            description=alt.Description(HOVER),
        )
    )
    drawn = [points, crosses] if lost else [points]
    if any("low_s" in row for row in rows):
        bars = of_rows(shown_bars(rows, rows)).mark_rule(strokeWidth=1, opacity=0.6)
        colour = by_level(alt.Color, _present(shown), _colours(shown))
        ends = {"y": alt.Y("low_s:Q"), "y2": alt.Y2("high_s:Q")}
        drawn.insert(0, bars.encode(x=at, **ends, color=colour))
    return svg(layered(*drawn) if len(drawn) > 1 else specification(points), "times", label)


def on_axis(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Move delays of 0 or less, which clock errors may cause, to the beginning of a logarithmic axis."""
    delays = [row["delay_s"] for row in rows]
    if not wide(delays, WIDE_RANGE) or min(delays) > 0:
        return rows
    low = min(delay for delay in delays if delay > 0)
    return [{**row, "delay_s": max(row["delay_s"], low)} for row in rows]


def shown_bars(bars: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Clip error bars to the axis of these delays."""
    delays = [row["delay_s"] for row in rows if row["delay_s"] > 0]
    if not wide(delays, WIDE_RANGE):
        return [one for one in bars if "low_s" in one]
    low, high = min(delays) / EDGE, max(delays) * EDGE
    return [
        {**one, "low_s": max(low, one["low_s"]), "high_s": min(high, one["high_s"])}
        for one in bars
        if one.get("high_s", 0) > low and one["low_s"] < high
    ]


def _present(rows: list[dict[str, Any]]) -> list[str]:
    shown = {row["level"] for row in rows}
    return [level for level in LEVELS if level in shown]


def _of_levels(rows: list[dict[str, Any]], values: tuple[Any, ...]) -> list[Any]:
    return [values[LEVELS.index(level)] for level in _present(rows)]


def _colours(rows: list[dict[str, Any]]) -> list[str]:
    return [f"var(--level-{level})" for level in _present(rows)]


def shares_chart(deliveries: Any, summary: dict[str, Any]) -> Drawing | None:
    rows = share_rows(deliveries)
    label = "Share of expected deliveries that had arrived, over the delay, by level"
    bars = share_bars(summary)
    return delay_shares(rows, label, bars) if rows else None


def times_chart(deliveries: Any, start_ns: int) -> Drawing | None:
    came, lost = time_rows(deliveries, start_ns)
    label = "Delay of each delivery over its publish time, by level"
    return delay_over_time(came, lost, label) if came else None
