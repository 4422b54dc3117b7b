"""Charts as SVG text: rendered once, so that the report needs no script and prints as it looks.

Colours are the page's CSS variables, so a chart follows the reader's light or dark mode; priorities also differ by dash
and shape.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.report import drawing
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    import altair as alt


# Places for the names of curves, so that each is beside its own curve and on no other. Pure.


HEIGHTS = tuple(number / 40 for number in range(2, 39))  # shares at which a name may stand
HALF = 0.03  # half the height of a name, as a share
APART = 0.07  # names are at least so far above each other
Curve = list[tuple[float, float]]  # share reached, delay; both rising


def label_spots(rows: Sequence[dict[str, Any]], wide_range: float) -> list[dict[str, Any]]:
    """A place for the name of each level: delay_s, share, text; the most urgent level chooses first.

    A name is to the right of its place, where the distance to the next curve on the right is largest.
    """
    curves: dict[str, Curve] = {}
    for row in rows:
        curves.setdefault(row["level"], []).append((row["share"], row["delay_s"]))
    delays = [row["delay_s"] for row in rows]
    at: Callable[[float], float] = math.log10 if wide(delays, wide_range) else float
    end = at(max(delays)) if delays else 0.0
    spots: list[dict[str, Any]] = []
    for level in sorted(curves, reverse=True):
        others = [curve for name, curve in curves.items() if name != level]
        free = [h for h in HEIGHTS if all(abs(h - spot["share"]) >= APART for spot in spots)]
        reached = [h for h in free if h <= curves[level][-1][0]] or [curves[level][-1][0]]
        best = max(reached, key=lambda height: _free_width(curves[level], others, height, at, end))
        spots.append(
            {"delay_s": _when(curves[level], best), "share": best, "text": f"level {level}"}
        )
    return spots


def wide(delays: Sequence[float], wide_range: float) -> bool:
    """Whether the delays need a logarithmic axis; delays of 0 do not count."""
    known = [delay for delay in delays if delay > 0]
    return bool(known) and max(known) / min(known) > wide_range


def _free_width(
    curve: Curve, others: list[Curve], height: float, at: Callable[[float], float], end: float
) -> float:
    """The free width to the right of the curve at this height."""
    own = at(_when(curve, height))
    ends = [end, at(_when(curve, height + HALF))]
    for other in others:
        low, high = (at(_when(other, share)) for share in (height - HALF, height + HALF))
        if low <= own <= high:
            return 0.0
        ends.append(low)
    return min((spot - own for spot in ends if spot > own), default=0.0)


def _when(curve: Curve, share: float) -> float:
    """The delay at which the curve reaches this share, or its end."""
    return curve[min(bisect_left(curve, (share, -math.inf)), len(curve) - 1)][1]


LEVELS = ("5", "4", "3", "2", "1")
DASHES = ([1, 0], [8, 3], [4, 3], [2, 2], [1, 3])
TIME_LABEL = "datum.value < 1 ? format(datum.value * 1000, '.6~g') + ' ms' : format(datum.value, '.6~g') + ' s'"
WIDTH, HEIGHT = 780, 280
SMALL_HEIGHT = 110
WIDE_RANGE = 20  # from here on the delays are drawn on a logarithmic axis
MOST_DECADES = 4  # with marks at 1, 2 and 5; the labels of more would touch
EDGE = 1.08  # how far a logarithmic axis goes beyond the data
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "aria": False,  # the whole chart has a label; one for each mark would be most of the page
    # The reader's font may be 10 % wider than the one in which labels are measured here.
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


# Altair describes single marks only: it copies the parts of what it composes several times, and hashes their rows.


Specification = dict[str, Any]  # of Vega-Lite


def data_of(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """These rows as the data of a specification."""
    return {"values": rows}


def of_rows(rows: list[dict[str, Any]]) -> "alt.Chart":
    """A chart of these rows; `mark_...` and `encode` say how to draw them."""
    import altair as alt

    return alt.Chart(data_of(rows))


def specification(mark: "alt.Chart") -> Specification:
    """The specification of a single mark, with its rows as they are."""
    import altair as alt

    bare = mark.copy(deep=False)
    bare.data = alt.Undefined
    # In the context of a part, altair adds no schema, no theme and no empty data.
    part = bare.to_dict(validate=False, context={"top_level": False, "data": None})
    return part if mark.data is alt.Undefined else {"data": mark.data, **part}


def layered(*marks: "alt.Chart", **properties: Any) -> Specification:
    """The specification of marks in one panel, the first mark at the bottom; `properties`: of the panel."""
    return {"layer": [specification(mark) for mark in marks], **properties}


def delay_axis(
    rows: list[dict[str, Any]],
    axis: "type[alt.X] | type[alt.Y]",
    most_decades: float = MOST_DECADES,
    title: str | None = "delay",
) -> Any:
    delays = [row["delay_s"] for row in rows if row["delay_s"] > 0]
    if not wide(delays, WIDE_RANGE):
        return axis(
            "delay_s:Q",
            title=title,
            scale={"zero": True, "nice": True},
            axis={"labelExpr": TIME_LABEL, "tickCount": 6},
        )
    domain = [min(delays) / EDGE, max(delays) * EDGE]
    marks = log_marks(domain[0], domain[1], most_decades)
    return axis(
        "delay_s:Q",
        title=title,
        scale={"type": "log", "domain": domain, "nice": False},
        axis={"labelExpr": TIME_LABEL, "values": marks, "labelOverlap": False},
    )


def log_marks(low: float, high: float, most_decades: float = MOST_DECADES) -> list[float]:
    """1, 2 and 5 of each power of ten from low to high; over many powers only 1, because labels need space."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) <= most_decades else (1,)
    marks = [float(f"{step}e{power}") for power in powers for step in steps]
    return [mark for mark in marks if low <= mark <= high]


def by_level(channel: Any, levels: list[str], values: list[Any]) -> Any:
    """A channel that tells these levels apart by these values; all such channels of a chart share one legend."""
    return channel(
        "level:N",
        title="level",
        sort=levels,
        scale={"domain": levels, "range": values},
        legend={"orient": "right", "symbolSize": 220},
    )


HOVER = "hover:N"  # a row's text that a reader sees with the pointer on its mark
# A mark with such a text, as Vega writes it for screen readers.
_HOVERED = re.compile(
    r'<(path|text) aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"([^>]*?)(/?)>'
)


def _with_title(mark: re.Match[str]) -> str:
    """The text as an element, which browsers show without a script."""
    name, text, rest, closed = mark.groups()
    end = f"</{name}>" if closed else ""
    return f'<{name} class="hover"{rest}><title>{text}</title>{end}'


def svg(chart: Specification, name: str, label: str, height: int | None = HEIGHT) -> Drawing:
    """The chart as an inline SVG element: sized by the page, named for screen readers, ids of its own."""
    size = {} if height is None else {"width": WIDTH, "height": height}
    return drawing.begin({**chart, **size, "config": CONFIG}, partial(_inline, name, label))


def _inline(name: str, label: str, text: str) -> str:
    text = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = _HOVERED.sub(_with_title, text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{_escaped(label)}" ', 1)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


BAR, GAP = 15, 6  # pixels of a broker's bar
LETTERS = 10  # font size in a bar in pixels, and a letter's width relative to it
LETTER_WIDTH = 0.62


def stacked_bars(
    rows: Sequence[dict[str, Any]],
    value: str,
    title: str,
    part: str,
    parts: list[str],
    tones: list[str],
    label: str,
) -> Drawing:
    import altair as alt

    nodes = list(dict.fromkeys(row["node"] for row in rows))
    placed = with_labels(rows, value, part, parts)
    bars = (
        of_rows(placed)
        .mark_bar(height=BAR, stroke="var(--paper)", strokeWidth=1)
        .encode(
            y=alt.Y("node:N", title=None, sort=nodes, axis={"domain": False, "ticks": False}),
            x=alt.X(
                f"{value}:Q",
                title=title,
                stack="zero",
                axis={"tickMinStep": 1, "tickCount": 8, "format": ",.6~g"},
            ),
            order=alt.Order("place:Q"),
            color=alt.Color(
                f"{part}:N",
                title=part,
                sort=parts,
                scale={"domain": parts, "range": tones},
                legend={"orient": "right", "symbolType": "square"},
            ),
            description=alt.Description(HOVER),
        )
    )
    labels = (
        of_rows([row for row in placed if row["text"]])
        .mark_text(fontSize=LETTERS, color="var(--on-layer)", clip=True)
        .encode(
            y=alt.Y("node:N", title=None, sort=nodes),
            x=alt.X("middle:Q"),
            text=alt.Text("text:N"),
        )
    )
    height = len(nodes) * (BAR + GAP)
    return svg(layered(bars, labels), value.replace("_", "-"), label, height=height)


def with_labels(
    rows: Sequence[dict[str, Any]], value: str, part: str, parts: Sequence[str]
) -> list[dict[str, Any]]:
    """Add the position of each part of a bar, its middle, and its name if there is space for it."""
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["node"]] = totals.get(row["node"], 0) + row[value]
    letter = max(totals.values(), default=0) * LETTERS * LETTER_WIDTH / WIDTH
    placed, reached = [], dict.fromkeys(totals, 0.0)
    for row in sorted(rows, key=lambda row: parts.index(row[part])):
        begin = reached[row["node"]]
        reached[row["node"]] += row[value]
        name = str(row[part])
        placed.append(
            {
                **row,
                "place": parts.index(row[part]),
                "hover": f"{row['node']}, {name}: {row[value]:,.6g}",
                "middle": begin + row[value] / 2,
                "text": name if row[value] > (len(name) + 1) * letter else "",
            }
        )
    return placed
