"""One alert across its hops: a bar for each stage; stages differ by height and filling, so colour is not needed."""

from collections.abc import Sequence
from typing import Any

from analysis.charts import TIME_LABEL, WIDTH, of_rows, svg
from analysis.findings import seconds

ROW = 34  # pixels of a hop
ROOM = 1.12  # the axis goes on beyond the end, for the last hop's number
NAMES = 210  # pixels at most for the names of a hop
STYLES: dict[str, dict[str, Any]] = {
    "waited": {"height": 5, "color": "var(--quiet)"},
    "sending": {
        "height": 22,
        "color": "var(--accent)",
        "stroke": "var(--accent)",
        "strokeWidth": 1.5,
    },
    "crossing": {
        "height": 13,
        "color": "var(--card)",
        "stroke": "var(--accent)",
        "strokeWidth": 1.5,
    },
}


def draw(panels: Sequence[tuple[str, list[dict[str, Any]]]], label: str) -> str:
    """Panels of a title and rows: hop, stage, begin_s, end_s; each has an axis of its own."""
    import altair as alt

    drawn = [_panel(title, rows) for title, rows in panels]
    whole = alt.vconcat(*drawn, spacing=26).resolve_scale(x="independent", y="independent")
    return svg(whole, "journey", label, height=None)


def _panel(title: str, rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    order = list(dict.fromkeys(row["hop"] for row in rows))
    end = max(row["end_s"] for row in rows) or 1.0
    y = alt.Y("hop:N", title=None, sort=order).axis(
        domain=False, ticks=False, labelLimit=NAMES, minExtent=NAMES
    )
    x = alt.X("begin_s:Q", title="after publication").scale(domain=[0, end * ROOM], nice=False)
    x = x.axis(labelExpr=TIME_LABEL, tickCount=6)
    layers = [
        of_rows([row for row in rows if row["stage"] == stage])
        .mark_bar(**style)
        .encode(y=y, x=x, x2="end_s:Q")
        for stage, style in STYLES.items()
    ]
    words = of_rows(_totals(rows)).mark_text(align="left", dx=7, fontSize=12)
    layers.append(words.encode(y=y, x=alt.X("end_s:Q"), text="text:N"))
    size = {"width": WIDTH - NAMES, "height": len(order) * ROW}
    return alt.layer(*layers).properties(title=title, **size)


def _totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How long each hop took, at its end."""
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        begin, end = found.get(row["hop"], (row["begin_s"], row["end_s"]))
        found[row["hop"]] = (min(begin, row["begin_s"]), max(end, row["end_s"]))
    return [
        {"hop": hop, "end_s": end, "text": seconds(end - begin)}
        for hop, (begin, end) in found.items()
    ]
