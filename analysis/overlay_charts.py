"""Charts of what brokers did: who passed on how much, what their own talk cost, how long paths were."""

from collections.abc import Sequence
from typing import Any

from analysis.charts import LEVELS, of_rows, svg

BAR, GAP = 15, 6  # pixels of a broker's bar
HOPS_HEIGHT = 220
# Kinds of control traffic in this order; each tone stands for itself on light and dark paper.
KINDS = {
    "OVERLAY": "websocket",
    "TAKEN": "label",
    "BEAT": "tcp",
    "MISSED": "retransmitted",
    "SUBSCRIBE": "payload",
    "SUBSCRIBED": "header",
    "UNSUBSCRIBE": "ip",
    "ADVERTISE": "ethernet",
    "ADVERTISED": "answers",
    "HELLO": "other",
    "JOINED": "unread",  # only those that cannot be taken apart
}


def copies(rows: Sequence[dict[str, Any]], label: str) -> str:
    """Copies of publications that each broker sent. `rows`: node, level, copies; brokers in the order of the rows."""
    levels = [level for level in LEVELS if any(row["level"] == level for row in rows)]
    tones = [f"var(--level-{level})" for level in levels]
    return _bars(rows, "copies", "copies of publications sent", "level", levels, tones, label)


def control(rows: Sequence[dict[str, Any]], label: str) -> str:
    """What each broker sent besides. `rows`: node, kind, bytes_per_s."""
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    tones = [f"var(--layer-{KINDS[kind]})" for kind in kinds]
    title = "bytes per second of control traffic sent"
    return _bars(rows, "bytes_per_s", title, "kind", kinds, tones, label)


def load(rows: Sequence[dict[str, Any]], label: str) -> str:
    """What each node received and sent. `rows`: node, direction, messages; nodes in the order of the rows."""
    tones = {"received": "var(--layer-websocket)", "sent": "var(--layer-payload)"}
    title = "messages"
    return _bars(rows, "messages", title, "direction", list(tones), list(tones.values()), label)


def _bars(
    rows: Sequence[dict[str, Any]],
    value: str,
    title: str,
    part: str,
    parts: list[str],
    tones: list[str],
    label: str,
) -> str:
    import altair as alt

    nodes = list(dict.fromkeys(row["node"] for row in rows))
    placed = [{**row, "place": parts.index(row[part])} for row in rows]
    bars = (
        of_rows(placed)
        .mark_bar(height=BAR)
        .encode(
            y=alt.Y("node:N", title=None, sort=nodes).axis(domain=False, ticks=False),
            x=alt.X(f"{value}:Q", title=title, stack="zero").axis(
                tickMinStep=1, tickCount=8, format=",.6~g"
            ),
            order=alt.Order("place:Q"),
            color=alt.Color(f"{part}:N", title=part, sort=parts)
            .scale(domain=parts, range=tones)
            .legend(orient="right", symbolType="square"),
        )
    )
    return svg(bars, value.replace("_", "-"), label, height=len(nodes) * (BAR + GAP))


def hops(rows: Sequence[dict[str, Any]], label: str) -> str:
    """How long paths were. `rows`: level, hops, share of the level's deliveries."""
    import altair as alt

    levels = [level for level in LEVELS if any(row["level"] == level for row in rows)]
    tones = [f"var(--level-{level})" for level in levels]
    bars = (
        of_rows(list(rows))
        .mark_bar()
        .encode(
            x=alt.X("hops:O", title="hops from publisher to subscriber").axis(labelAngle=0),
            xOffset=alt.XOffset("level:N", sort=levels),
            y=alt.Y("share:Q", title="share of the level's deliveries").axis(format="%"),
            color=alt.Color("level:N", title="level", sort=levels)
            .scale(domain=levels, range=tones)
            .legend(orient="right", symbolType="square"),
        )
    )
    return svg(bars, "hops", label, height=HOPS_HEIGHT)
