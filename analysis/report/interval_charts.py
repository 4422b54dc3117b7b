"""Charts of sweeps and reproductions: means over trials with their intervals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.report.charts import WIDTH, data_of, layered, log_marks, of_rows, svg
from analysis.report.drawing import Drawing

COLOURS = (
    *("var(--level-1)", "var(--level-5)", "var(--level-2)", "var(--layer-websocket)"),
    *("var(--good)", "var(--level-3)", "var(--layer-ip)", "var(--layer-ethernet)"),
)
SHAPES = (
    *("circle", "triangle-up", "square", "diamond", "cross"),
    *("triangle-down", "triangle-right", "triangle-left"),
)
DASHES = ([1, 0], [8, 3], [4, 3], [2, 2], [6, 2, 2, 2], [1, 3], [10, 4], [3, 1])
# way, at, panel, mean, low, high; with `beyond` a lower bound, because the value itself is not known
Point = Mapping[str, Any]
PANEL_HEIGHT = 230
NUMBER = ",.9~g"
ACROSS = {"format": NUMBER, "grid": False, "tickCount": 4}  # the axis of `at`, if it is a number
MOST_DECADES = 2  # with marks at 1, 2 and 5
EDGE = 1.15  # how far a logarithmic axis goes beyond the data
SHORT_NAME = 24  # letters
WIDE_RANGE = 30  # from here on values are drawn on a logarithmic axis


def dots(
    points: Sequence[Point], panels: Sequence[str], axes: tuple[str, str], name: str, label: str
) -> Drawing:
    """Categories (`at`) side by side, one panel beside the other; each series (`way`) has its own colour and shape."""
    import altair as alt

    rows, ways = _whole(points), _ways(points)
    at = alt.X("at:N", title=axes[0], sort=None, axis={"labelAngle": 0})
    beside = alt.XOffset("way:N", sort=ways)
    y = _values(rows, axes[1])
    drawn = [
        _intervals(y).encode(x=at, xOffset=beside, color=_by_way(alt.Color, ways, COLOURS)),
        _known(rows, _chart())
        .mark_point(size=42, strokeWidth=1.6, filled=True)
        .encode(
            x=at,
            xOffset=beside,
            y=y,
            color=_by_way(alt.Color, ways, COLOURS),
            shape=_by_way(alt.Shape, ways, SHAPES),
        ),
        *(
            mark.encode(x=at, xOffset=beside, y=y, color=_by_way(alt.Color, ways, COLOURS))
            for mark in _beyond(rows)
        ),
    ]
    return _panels(drawn, rows, panels, name, label)


def lines(
    points: Sequence[Point],
    panels: Sequence[str],
    axes: tuple[str, str],
    name: str,
    label: str,
    doubling: bool = False,
    with_zero: bool = False,
    shares: bool = False,
) -> Drawing:
    """Numbers (`at`) along the axis; `doubling`: on a logarithmic axis of base 2.

    `with_zero`: values on an axis that is logarithmic from 1 on and includes 0.
    `shares`: values are between 0 and 1.
    """
    import altair as alt

    rows, ways = _whole(points), _ways(points)
    scale = {"type": "log", "base": 2} if doubling else {"nice": False}
    marks = {"values": sorted({row["at"] for row in rows})} if doubling else {}
    at = alt.X("at:Q", title=axes[0], scale=scale, axis={**marks, **ACROSS})
    if shares:
        y = alt.Y("mean:Q", title=axes[1], scale={"domain": [0, 1]})
    else:
        y = _values_with_zero(rows, axes[1]) if with_zero else _values(rows, axes[1])
    bounds = any(map(_is_bound, rows))  # beside them, a line may be a single point
    drawn = [
        _intervals(y).encode(x=at, color=_by_way(alt.Color, ways, COLOURS)),
        _known(rows, _chart())
        .mark_line(strokeWidth=2, point={"size": 30} if doubling or bounds else False)
        .encode(
            x=at,
            y=y,
            color=_by_way(alt.Color, ways, COLOURS),
            strokeDash=_by_way(alt.StrokeDash, ways, DASHES),
        ),
        *(
            mark.encode(x=at, y=y, color=_by_way(alt.Color, ways, COLOURS))
            for mark in _beyond(rows)
        ),
    ]
    return _panels(drawn, rows, panels, name, label)


def bars(
    points: Sequence[Point], panels: Sequence[str], axes: tuple[str, str], name: str, label: str
) -> Drawing:
    """Numbers (`at`) along the axis, series side by side; heights on an axis that includes 0."""
    import altair as alt

    rows, ways = _whole(points), _ways(points)
    at = alt.X("at:O", title=axes[0], axis={"labelAngle": 0})
    beside = alt.XOffset("way:N", sort=ways)
    y = _values_with_zero(rows, axes[1])
    colour = _by_way(alt.Color, ways, COLOURS)
    drawn = [
        _chart().mark_bar().encode(x=at, xOffset=beside, y=y, color=colour),
        _intervals(y).encode(x=at, xOffset=beside, color=alt.ColorValue("var(--ink)")),
    ]
    return _panels(drawn, rows, panels, name, label)


def apart(points: Sequence[Point], panels: Mapping[str, str], name: str, label: str) -> Drawing:
    """Lines in panels that share only the series: each panel has its own axes; `panels` names the lower one."""
    import altair as alt

    rows, ways = _whole(points), _ways(points)
    drawn = []
    for panel, across in panels.items():
        own = [row for row in rows if row["panel"] == panel]
        if not own:
            continue
        at = alt.X("at:Q", title=across, scale={"nice": False}, axis=ACROSS)
        y = alt.Y(
            "mean:Q", title=None, scale={"zero": True}, axis={"tickCount": 5, "format": NUMBER}
        )
        colour, dash = _by_way(alt.Color, ways, COLOURS), _by_way(alt.StrokeDash, ways, DASHES)
        line = _chart().mark_line(strokeWidth=2, point={"size": 25})
        drawn.append(
            layered(
                _intervals(y).encode(x=at, color=colour),
                line.encode(x=at, y=y, color=colour, strokeDash=dash),
                data=data_of(own),
                width=WIDTH // len(panels) - 60,
                height=PANEL_HEIGHT,
                title=panel,
            )
        )
    return svg({"hconcat": drawn, "spacing": 30}, name, label, height=None)


def goals(
    points: Sequence[Point],
    limits: Mapping[str, float],
    axes: tuple[str, str],
    name: str,
    label: str,
) -> Drawing:
    """Ratios in panels, each with a dashed limit."""
    import altair as alt

    rows, ways = _whole(points), _ways(points)
    panels = []
    for panel, limit in limits.items():
        own = [row for row in rows if row["panel"] == panel]
        at = alt.X("at:N", title=axes[0], sort=None, axis={"labelAngle": 0})
        y = _values([*own, {"mean": limit}], axes[1])
        dot = of_rows(own).mark_point(size=55, filled=True)
        line = of_rows([{"mean": limit}]).mark_rule(strokeDash=[5, 4], color="var(--care)")
        shown = dot.encode(
            x=at,
            xOffset=alt.XOffset("way:N", sort=ways),
            y=y,
            color=_by_way(alt.Color, ways, COLOURS),
            shape=_by_way(alt.Shape, ways, SHAPES),
        )
        panels.append(
            layered(
                shown,
                line.encode(y=alt.Y("mean:Q")),
                width=WIDTH // len(limits) - 60,
                height=PANEL_HEIGHT,
                title=panel,
            )
        )
    return svg({"hconcat": panels, "spacing": 30}, name, label, height=None)


def _whole(points: Iterable[Point]) -> list[dict[str, Any]]:
    """Add an interval of width 0 where there is none."""
    return [
        {
            **point,
            **{side: point["mean"] if point.get(side) is None else point[side] for side in _SIDES},
        }
        for point in points
    ]


_SIDES = ("low", "high")


def _ways(points: Iterable[Point]) -> list[str]:
    return list(dict.fromkeys(point["way"] for point in points))


def _chart() -> Any:
    import altair as alt

    return alt.Chart()


def _known(rows: Sequence[Point], chart: Any) -> Any:
    """Without the points of which only a bound is known."""
    return chart.transform_filter("!datum.beyond") if any(map(_is_bound, rows)) else chart


def _beyond(rows: Sequence[Point]) -> list[Any]:
    """The mark of a bound: an open triangle that points to where the value is; none without bounds."""
    if not any(map(_is_bound, rows)):
        return []
    mark = _chart().transform_filter("datum.beyond")
    return [mark.mark_point(shape="triangle-up", size=90, strokeWidth=1.8, filled=False)]


def _is_bound(point: Point) -> bool:
    return bool(point.get("beyond"))


def _intervals(y: Any) -> Any:
    import altair as alt

    low = y.copy(deep=False)
    low.shorthand = "low:Q"
    return _chart().mark_rule(strokeWidth=1.2, opacity=0.7).encode(y=low, y2=alt.Y2("high:Q"))


def _values(rows: Sequence[Point], what: str) -> Any:
    import altair as alt

    values = [row["mean"] for row in rows]
    wide = min(values) > 0 and max(values) / min(values) > WIDE_RANGE
    if not wide:
        axis = {"tickCount": 6, "format": NUMBER}
        return alt.Y("mean:Q", title=what, scale={"zero": True}, axis=axis)
    domain = [min(values) / EDGE, max(values) * EDGE]
    marks = log_marks(domain[0], domain[1], MOST_DECADES)
    scale = {"type": "log", "domain": domain, "nice": False}
    return alt.Y("mean:Q", title=what, scale=scale, axis={"values": marks, "format": NUMBER})


def _values_with_zero(rows: Sequence[Point], what: str) -> Any:
    import altair as alt

    most = max(row["mean"] for row in rows)
    marks = [0, *(10**decade for decade in range(len(str(int(most)))))]
    scale = {"type": "symlog", "constant": 1, "domain": [0, most * EDGE], "nice": False}
    return alt.Y("mean:Q", title=what, scale=scale, axis={"values": marks, "format": NUMBER})


def _panels(
    drawn: Sequence[Any], rows: list[dict[str, Any]], panels: Sequence[str], name: str, label: str
) -> Drawing:
    shown = [panel for panel in panels if any(row["panel"] == panel for row in rows)]
    width = WIDTH // max(1, len(shown)) - 40
    header = {"title": None, "labelColor": "var(--quiet)", "labelFontSize": 12}
    column = {"field": "panel", "type": "nominal", "sort": shown, "header": header}
    faceted = {
        "data": data_of(rows),
        "facet": {"column": column},
        "spec": layered(*drawn, width=width, height=PANEL_HEIGHT),
        "spacing": 18,
    }
    return svg(faceted, name, label, height=None)


def _by_way(channel: Any, ways: Sequence[str], values: Sequence[Any]) -> Any:
    return channel(
        "way:N",
        title=None,
        sort=list(ways),
        scale={
            "domain": list(ways),
            "range": [values[n % len(values)] for n in range(len(ways))],
        },
        legend={
            "orient": "bottom",
            "columns": _columns(ways),
            "columnPadding": 40,
            "labelLimit": 330,
            "symbolSize": 90,
        },
    )


def _columns(ways: Sequence[str]) -> int:
    """Columns of a legend: three short names fit side by side."""
    return 3 if len(ways) == 3 and max(map(len, ways)) <= SHORT_NAME else 2
