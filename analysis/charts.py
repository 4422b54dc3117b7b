"""The report's charts as SVG text: drawn once, here, so that the report needs no script and prints as it looks.

Colours are the page's CSS variables, so a chart follows the reader's light or dark mode; priorities also differ by dash
and shape.
"""

import json
import math
import re
from typing import TYPE_CHECKING, Any

from analysis.curve_names import label_spots, wide

if TYPE_CHECKING:
    import altair as alt

LEVELS = ("5", "4", "3", "2", "1")
DASHES = ([1, 0], [8, 3], [4, 3], [2, 2], [1, 3])
SHAPES = ("triangle-up", "diamond", "square", "cross", "circle")
TIME_LABEL = "datum.value < 1 ? format(datum.value * 1000, '.6~g') + ' ms' : format(datum.value, '.6~g') + ' s'"
WIDTH, HEIGHT = 780, 280
SMALL_HEIGHT = 110
WIDE_RANGE = 20  # from here on the delays are drawn on a logarithmic axis
MOST_DECADES = 4  # with marks at 1, 2 and 5; the labels of more would touch
EDGE = 1.08  # how far a logarithmic axis goes beyond the data
BESIDE: dict[str, Any] = {"align": "left", "dx": 7, "fontSize": 12}  # a name beside its curve
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "aria": False,  # the whole chart has a label; one for each mark would be most of the page
    # The reader's font may be a tenth wider than the one that labels are measured with here.
    "padding": {"left": 18, "right": 5, "top": 5, "bottom": 5},
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--quiet)",
        "titleColor": "var(--quiet)",
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
    },
    "legend": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--quiet)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "symbolSize": 90,
        "columnPadding": 26,
    },
    "title": {
        "color": "var(--quiet)",
        "fontSize": 12,
        "fontWeight": "normal",
        "anchor": "start",
        "offset": 6,
    },
    "text": {"color": "var(--ink)"},
}


def delay_shares(
    rows: list[dict[str, Any]], label: str, bars: list[dict[str, Any]] | None = None
) -> str:
    """How many of the expected deliveries had arrived after which time. `rows`: level, delay_s, share.

    `bars`: level, share, low_s, high_s: what clocks may make of single points.
    """
    import altair as alt

    rows = on_axis(rows)
    lines = (
        of_rows(rows)
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=delay_axis(rows, alt.X),
            y=alt.Y(
                "share:Q", title="arrived, of all expected", scale=alt.Scale(domain=[0, 1])
            ).axis(format="%", tickCount=5),
            color=_by_level(rows, alt.Color, _colours(rows)),
            strokeDash=_by_level(rows, alt.StrokeDash, _of_levels(rows, DASHES)),
        )
    )
    names = of_rows(label_spots(rows, WIDE_RANGE)).encode(
        x=alt.X("delay_s:Q"), y=alt.Y("share:Q"), text="text:N"
    )
    behind = names.mark_text(**BESIDE, stroke="var(--card)", strokeWidth=5, strokeJoin="round")
    drawn = [lines, behind, names.mark_text(**BESIDE)]
    if bars:
        across = of_rows(shown_bars(bars, rows)).mark_rule(strokeWidth=1.5, color="var(--ink)")
        drawn.insert(1, across.encode(x=alt.X("low_s:Q"), x2="high_s:Q", y=alt.Y("share:Q")))
    return svg(alt.layer(*drawn), "shares", label)


def delay_over_time(rows: list[dict[str, Any]], lost: list[dict[str, Any]], label: str) -> str:
    """Each delivery at its publish time. `rows`: level, at_s, delay_s; `lost`: level, at_s, drawn along the top."""
    import altair as alt

    rows = on_axis(rows)
    at = alt.X("at_s:Q", title="published, seconds after the start", scale=alt.Scale(nice=True))
    shown = rows + lost
    points = (
        of_rows(rows)
        .mark_point(size=42, filled=False, strokeWidth=1.6, opacity=0.85)
        .encode(
            x=at,
            y=delay_axis(rows, alt.Y),
            color=_by_level(shown, alt.Color, _colours(shown)),
            shape=_by_level(shown, alt.Shape, _of_levels(shown, SHAPES)),
        )
    )
    crosses = (
        of_rows(lost)
        .mark_text(text="✕", fontSize=13, baseline="bottom", dy=-2)
        .encode(x=at, y=alt.value(0), color=_by_level(shown, alt.Color, _colours(shown)))
    )
    drawn = [points, crosses] if lost else [points]
    if any("low_s" in row for row in rows):
        bars = of_rows(shown_bars(rows, rows)).mark_rule(strokeWidth=1, opacity=0.6)
        colour = _by_level(shown, alt.Color, _colours(shown))
        ends = {"y": alt.Y("low_s:Q"), "y2": "high_s:Q"}
        drawn.insert(0, bars.encode(x=at, **ends, color=colour))
    return svg(alt.layer(*drawn) if len(drawn) > 1 else points, "times", label)


def on_axis(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Clocks may make delays 0 or less, for which a logarithmic axis has no place: they stand at its beginning."""
    delays = [row["delay_s"] for row in rows]
    if not wide(delays, WIDE_RANGE) or min(delays) > 0:
        return rows
    low = min(delay for delay in delays if delay > 0)
    return [{**row, "delay_s": max(row["delay_s"], low)} for row in rows]


def shown_bars(bars: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As far as the axis of these delays goes: a logarithmic one has no place for what is not above 0."""
    delays = [row["delay_s"] for row in rows if row["delay_s"] > 0]
    if not wide(delays, WIDE_RANGE):
        return [one for one in bars if "low_s" in one]
    low, high = min(delays) / EDGE, max(delays) * EDGE
    return [
        {**one, "low_s": max(low, one["low_s"]), "high_s": min(high, one["high_s"])}
        for one in bars
        if one.get("high_s", 0) > low and one["low_s"] < high
    ]


def layers(rows: list[dict[str, Any]], order: dict[str, str], label: str) -> str:
    """What the bytes on the links were. `rows`: where, name, place, share, middle, text; `order`: layer, name."""
    import altair as alt

    tones = [f"var(--layer-{layer})" for layer in order]
    names = list(order.values())
    base = of_rows(rows).encode(
        y=alt.Y("where:N", title=None, sort=None).axis(domain=False, ticks=False, labelFontSize=13),
        x=alt.X("share:Q", title="share of the bytes on these links", stack="zero")
        .axis(format="%")
        .scale(domain=[0, 1]),
        order=alt.Order("place:Q"),
    )
    bars = base.mark_bar(stroke="var(--paper)", strokeWidth=1.5, height=26).encode(
        color=alt.Color("name:N", title=None, sort=names)
        .scale(domain=names, range=tones)
        .legend(orient="bottom", columns=4, symbolType="square")
    )
    words = (
        of_rows([row for row in rows if row["text"]])
        .mark_text(fontSize=11, color="var(--on-layer)", clip=True)
        .encode(y=alt.Y("where:N", sort=None), x=alt.X("middle:Q"), text="text:N")
    )
    count = len({row["where"] for row in rows})
    return svg(bars + words, "layers", label, height=count * 40)


def machine(
    rows: list[dict[str, Any]], played_s: float | None, limits: dict[str, float], label: str
) -> str:
    """How busy the machine was. `rows`: at_s, cpu_used, delay_s; `limits` of these two; the scenario is shaded."""
    import altair as alt

    window = [{"from_s": 0.0, "to_s": played_s}] if played_s is not None else []

    def panel(value: str, y: Any, limit: float, below: str | None) -> Any:
        at = alt.X("at_s:Q", title=below, scale=alt.Scale(nice=False))
        drawn = of_rows(rows).mark_line(strokeWidth=1.8, color="var(--accent)").encode(x=at, y=y)
        line = of_rows([{"limit": limit}]).mark_rule(strokeDash=[5, 4], color="var(--care)")
        shade = of_rows(window).mark_rect(color="var(--line)", opacity=0.45)
        layers = [
            shade.encode(x=alt.X("from_s:Q"), x2="to_s:Q"),
            line.encode(y=alt.Y("limit:Q")),
            drawn,
        ]
        return alt.layer(*layers).properties(width=WIDTH, height=SMALL_HEIGHT, title=value)

    used = alt.Y("cpu_used:Q", title=None, scale=alt.Scale(domain=[0, 1])).axis(
        format="%", tickCount=5
    )
    shown = [*rows, {"delay_s": limits["delay_s"]}]
    late = delay_axis(shown, alt.Y, MOST_DECADES * SMALL_HEIGHT / HEIGHT).title(None)
    panels = [
        panel("processors in use", used, limits["cpu_used"], None),
        panel(
            "latest wake-up of an ordinary process in each second",
            late,
            limits["delay_s"],
            "seconds after the start",
        ),
    ]
    return svg(alt.vconcat(*panels, spacing=18), "machine", label, height=None)


def of_rows(rows: list[dict[str, Any]]) -> "alt.Chart":
    """A chart of these; they are data, which nobody needs to hold against Vega's schema one by one."""
    import altair as alt
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]


def delay_axis(
    rows: list[dict[str, Any]],
    axis: "type[alt.X] | type[alt.Y]",
    most_decades: float = MOST_DECADES,
) -> Any:
    import altair as alt

    delays = [row["delay_s"] for row in rows if row["delay_s"] > 0]
    if not wide(delays, WIDE_RANGE):
        scale = alt.Scale(zero=True, nice=True)
        return axis("delay_s:Q", title="delay", scale=scale).axis(labelExpr=TIME_LABEL, tickCount=6)
    domain = [min(delays) / EDGE, max(delays) * EDGE]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    marks = log_marks(domain[0], domain[1], most_decades)
    return axis("delay_s:Q", title="delay", scale=scale).axis(
        labelExpr=TIME_LABEL, values=marks, labelOverlap=False
    )


def log_marks(low: float, high: float, most_decades: float = MOST_DECADES) -> list[float]:
    """1, 2 and 5 of each power of ten from low to high; over many powers only the 1, as labels need room."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) <= most_decades else (1,)
    marks = [float(f"{step}e{power}") for power in powers for step in steps]
    return [mark for mark in marks if low <= mark <= high]


def _present(rows: list[dict[str, Any]]) -> list[str]:
    shown = {row["level"] for row in rows}
    return [level for level in LEVELS if level in shown]


def _of_levels(rows: list[dict[str, Any]], values: tuple[Any, ...]) -> list[Any]:
    return [values[LEVELS.index(level)] for level in _present(rows)]


def _colours(rows: list[dict[str, Any]]) -> list[str]:
    return [f"var(--level-{level})" for level in _present(rows)]


def _by_level(rows: list[dict[str, Any]], channel: Any, values: list[Any]) -> Any:
    return (
        channel("level:N", title="level", sort=_present(rows))
        .scale(domain=_present(rows), range=values)
        .legend(orient="right", symbolSize=220)
    )


def svg(chart: Any, name: str, label: str, height: int | None = HEIGHT) -> str:
    """The chart as an inline SVG element: sized by the page, named for screen readers, ids of its own."""
    import vl_convert

    sized = chart if height is None else chart.properties(width=WIDTH, height=height)
    drawn = sized.configure(**CONFIG)
    text: str = vl_convert.vegalite_to_svg(json.loads(drawn.to_json(validate=False)))
    text = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    opening = f'<svg role="img" aria-label="{_escaped(label)}" '
    return text.replace("<svg ", opening, 1)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
