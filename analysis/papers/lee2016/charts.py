"""The figures as drawings. Series differ by colour and by dash or shape."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.charts import delay_axis, of_rows, svg

COLOURS = {
    "default": "var(--level-1)",
    "pq-pc": "var(--level-3)",
    "dmpq-10000": "var(--level-2)",
    "dmpq-5000": "var(--layer-ip)",
    "dmpq-1443": "var(--layer-websocket)",
    "dmpq-1000": "var(--layer-ethernet)",
    "dmpq-1443-kernel": "var(--good)",
    "preemptive": "var(--level-5)",
}
SHAPES = {
    "default": "circle",
    "pq-pc": "square",
    "dmpq-10000": "triangle-up",
    "dmpq-5000": "triangle-down",
    "dmpq-1443": "diamond",
    "dmpq-1000": "triangle-right",
    "dmpq-1443-kernel": "triangle-left",
    "preemptive": "cross",
}
DASHES = {
    "default": [1, 0],
    "pq-pc": [8, 3],
    "dmpq-10000": [4, 3],
    "dmpq-5000": [2, 2],
    "dmpq-1443": [6, 2, 2, 2],
    "dmpq-1000": [1, 3],
    "dmpq-1443-kernel": [10, 4],
    "preemptive": [1, 0],
}
BESIDE = 0.08  # kB/s from one series to the next, so that their points do not hide each other
SMALL = 200


def scatter(
    points: Sequence[Mapping[str, Any]],
    curve: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    name: str,
    label: str,
) -> str:
    """Each urgent message by rate, with bounds as lines. `points`: series, rate, delay_s; `curve` the same."""
    import altair as alt

    shown = [key for key in titles if any(point["series"] == key for point in points)]
    rows = [
        {
            "title": titles[point["series"]],
            "rate": point["rate"] + BESIDE * (shown.index(point["series"]) - len(shown) / 2),
            "delay_s": point["delay_s"],
        }
        for point in points
    ]
    lines = [{**row, "title": titles.get(row["series"], row["series"])} for row in curve]
    at = _rate_axis()
    axis = delay_axis([*rows, *lines], alt.Y)
    drawn = (
        of_rows(rows)
        .mark_point(size=26, strokeWidth=1.3, opacity=0.7)
        .encode(
            x=at,
            y=axis,
            color=_by_series(alt.Color, shown, titles, COLOURS),
            shape=_by_series(alt.Shape, shown, titles, SHAPES),
        )
    )
    bounds = (
        of_rows(lines)
        .mark_line(strokeWidth=1.5, strokeDash=[4, 3], color="var(--ink)", opacity=0.6)
        .encode(x=at, y=axis, detail="title:N")
    )
    return svg(alt.layer(bounds, drawn) if lines else drawn, name, label)


def shares(
    delays: Mapping[str, Sequence[float | None]], titles: Mapping[str, str], name: str, label: str
) -> str:
    """How many urgent messages had come after which time, for each series; None has not come."""
    import altair as alt

    shown = [key for key in titles if delays.get(key)]
    rows = [
        {"title": titles[key], "delay_s": delay, "share": (place + 1) / len(delays[key])}
        for key in shown
        for place, delay in enumerate(sorted(value for value in delays[key] if value is not None))
    ]
    drawn = (
        of_rows(rows)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=delay_axis(rows, alt.X),
            y=alt.Y("share:Q", title="arrived", scale=alt.Scale(domain=[0, 1])).axis(format="%"),
            color=_by_series(alt.Color, shown, titles, COLOURS),
            strokeDash=_by_series(alt.StrokeDash, shown, titles, DASHES),
        )
    )
    return svg(drawn, name, label, height=SMALL)


def by_rate(
    rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str], what: str, name: str, label: str
) -> str:
    """One line a series. `rows`: series, rate, value."""
    import altair as alt

    shown = [key for key in titles if any(row["series"] == key for row in rows)]
    told = [{**row, "title": titles[row["series"]]} for row in rows]
    drawn = (
        of_rows(told)
        .mark_line(strokeWidth=2, point={"size": 30})
        .encode(
            x=_rate_axis(),
            y=alt.Y("value:Q", title=what, scale=alt.Scale(zero=False)),
            color=_by_series(alt.Color, shown, titles, COLOURS),
            strokeDash=_by_series(alt.StrokeDash, shown, titles, DASHES),
        )
    )
    return svg(drawn, name, label)


def _rate_axis() -> Any:
    import altair as alt

    scale = alt.Scale(nice=False, zero=False, padding=12)
    return alt.X("rate:Q", title="rate of the line, kB/s", scale=scale).axis(
        format="d", tickMinStep=1
    )


def _by_series(
    channel: Any, shown: Sequence[str], titles: Mapping[str, str], values: Mapping[str, Any]
) -> Any:
    names = [titles[key] for key in shown]
    return (
        channel("title:N", title=None, sort=names)
        .scale(domain=names, range=[values[key] for key in shown])
        .legend(orient="right", symbolSize=120)
    )
