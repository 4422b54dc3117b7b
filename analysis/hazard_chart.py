"""The chart of a hazard: rain, index and levels over the scenario's own time, one below the other."""

from itertools import pairwise
from typing import Any

from analysis.charts import DASHES, LEVELS, SMALL_HEIGHT, WIDTH, of_rows, svg

NAMES = 110  # pixels for what lines are called
_BESIDE: dict[str, Any] = {"align": "left", "dx": 6, "fontSize": 11}
_SPREAD = (("most", [1, 0]), ("median", [6, 3]), ("least", [2, 3]))  # with their dashes
UPPER = LEVELS[:-1]  # at level 1 or above are all


def draw(
    curves: list[dict[str, Any]],
    levels: list[dict[str, Any]],
    failures: list[float],
    words: dict[str, Any],
    label: str,
) -> str:
    """`curves`: at, rain and index, each with most, median and least; `levels`: at, level, sites; `failures`: times.

    `words`: titles, the end of time and the threshold; times in the unit that the axis names.
    """
    import altair as alt

    panels = []
    if any(row["rain"] for row in curves):
        panels.append(_spread(curves, "rain", words["rain"], None, words))
    panels.append(_spread(curves, "index", words["index"], words["threshold"], words))
    panels.append(_levels(levels, failures, words))
    together = alt.vconcat(*panels, spacing=20).resolve_scale(
        color="independent", strokeDash="independent"
    )
    return svg(together, "hazard", label, height=None)


def _time(words: dict[str, Any], title: str | None = None) -> Any:
    import altair as alt

    return alt.X("at:Q", title=title, scale=alt.Scale(domain=[0, words["end"]], nice=False))


def _spread(
    curves: list[dict[str, Any]],
    name: str,
    title: str,
    threshold: float | None,
    words: dict[str, Any],
) -> Any:
    """The most, the median and the least of all sites; where they are all one, one line."""
    import altair as alt

    parts = [
        (part, dash)
        for part, dash in _SPREAD
        if part == "most" or any(row[name][part] != row[name]["most"] for row in curves)
    ]
    rows = [
        {"at": row["at"], "value": row[name][part], "part": part}
        for part, _ in parts
        for row in curves
    ]
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=name == "rain", nice=True))
    drawn = (
        of_rows(rows)
        .mark_line(strokeWidth=2, color="var(--accent)")
        .encode(
            x=_time(words),
            y=y.axis(tickCount=5),
            strokeDash=alt.StrokeDash("part:N")
            .scale(domain=[part for part, _ in parts], range=[dash for _, dash in parts])
            .legend(None),
        )
    )
    last = curves[-1]
    ends = [{"at": words["end"], "value": last[name][part], "text": part} for part, _ in parts]
    named = ends if len(parts) > 1 and _apart(ends, rows) else []
    layers = [drawn, _text(named, words)]
    if threshold is not None:
        rule = of_rows([{"value": threshold}])
        layers.append(
            rule.mark_rule(strokeDash=[5, 4], color="var(--care)").encode(y=alt.Y("value:Q"))
        )
    return alt.layer(*layers).properties(width=WIDTH - NAMES, height=SMALL_HEIGHT, title=title)


def _apart(ends: list[dict[str, Any]], rows: list[dict[str, Any]]) -> bool:
    """Whether names at the lines' ends would not lie on each other."""
    values = [row["value"] for row in rows]
    heights = sorted(end["value"] for end in ends)
    room = (max(values) - min(values)) / 8
    return all(later - sooner > room for sooner, later in pairwise(heights))


def _text(rows: list[dict[str, Any]], words: dict[str, Any]) -> Any:
    import altair as alt

    return (
        of_rows(rows).mark_text(**_BESIDE).encode(x=_time(words), y=alt.Y("value:Q"), text="text:N")
    )


def _levels(rows: list[dict[str, Any]], failures: list[float], words: dict[str, Any]) -> Any:
    import altair as alt

    y = alt.Y("sites:Q", title=None, scale=alt.Scale(domain=[0, words["sites"]], nice=False))
    lines = (
        of_rows(rows)
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=_time(words, words["time"]),
            y=y.axis(tickCount=5, format="d"),
            color=_by_level(alt.Color, [f"var(--level-{level})" for level in UPPER]),
            strokeDash=_by_level(alt.StrokeDash, list(DASHES[: len(UPPER)])),
        )
    )
    marks = (
        of_rows([{"at": at} for at in failures])
        .mark_text(text="✕", fontSize=12, baseline="bottom", dy=-2, color="var(--level-5)")
        .encode(x=_time(words, words["time"]), y=alt.value(0))
    )
    chart = alt.layer(lines, marks) if failures else lines
    return chart.properties(width=WIDTH - NAMES, height=SMALL_HEIGHT * 1.6, title=words["levels"])


def _by_level(channel: Any, values: list[Any]) -> Any:
    """One legend for colour and dash, so that either is enough."""
    return (
        channel("level:N", title="level", sort=list(UPPER))
        .scale(domain=list(UPPER), range=values)
        .legend(orient="right", symbolSize=220)
    )
