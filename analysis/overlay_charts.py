"""Charts of what brokers did: who passed on how much, what their own talk cost, how long paths were."""

from collections.abc import Sequence
from typing import Any

from analysis.charts import LEVELS, WIDTH, of_rows, svg

BAR, GAP = 15, 6  # pixels of a broker's bar
HOPS_HEIGHT = 220
LETTERS = 10  # pixels of a letter in a bar, and how wide it is as a part of that
LETTER_WIDTH = 0.62
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
    placed = with_words(rows, value, part, parts)
    amount = alt.X(f"{value}:Q", title=title, stack="zero")
    where = alt.Y("node:N", title=None, sort=nodes)
    bars = (
        of_rows(placed)
        .mark_bar(height=BAR, stroke="var(--paper)", strokeWidth=1)
        .encode(
            y=where.axis(domain=False, ticks=False),
            x=amount.axis(tickMinStep=1, tickCount=8, format=",.6~g"),
            order=alt.Order("place:Q"),
            color=alt.Color(f"{part}:N", title=part, sort=parts)
            .scale(domain=parts, range=tones)
            .legend(orient="right", symbolType="square"),
        )
    )
    words = (
        of_rows([row for row in placed if row["text"]])
        .mark_text(fontSize=LETTERS, color="var(--on-layer)", clip=True)
        .encode(y=where, x=alt.X("middle:Q"), text="text:N")
    )
    height = len(nodes) * (BAR + GAP)
    return svg(bars + words, value.replace("_", "-"), label, height=height)


def with_words(
    rows: Sequence[dict[str, Any]], value: str, part: str, parts: Sequence[str]
) -> list[dict[str, Any]]:
    """Each part of a bar with its place in it, where its middle is, and its name if there is room for that."""
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
                "middle": begin + row[value] / 2,
                "text": name if row[value] > (len(name) + 1) * letter else "",
            }
        )
    return placed


def hops(rows: Sequence[dict[str, Any]], label: str) -> str:
    """How long paths were. `rows`: level, hops, share of the level's deliveries."""
    import altair as alt

    levels = [level for level in LEVELS if any(row["level"] == level for row in rows)]
    tones = [f"var(--level-{level})" for level in levels]
    base = of_rows(list(rows)).encode(
        x=alt.X("hops:O", title="hops from publisher to subscriber").axis(labelAngle=0),
        xOffset=alt.XOffset("level:N", sort=levels),
        y=alt.Y("share:Q", title="share of the level's deliveries").axis(format="%"),
    )
    bars = base.mark_bar().encode(
        color=alt.Color("level:N", title="level", sort=levels)
        .scale(domain=levels, range=tones)
        .legend(orient="right", symbolType="square"),
    )
    words = base.mark_text(fontSize=LETTERS, dy=-6, color="var(--quiet)").encode(text="level:N")
    return svg(bars + words, "hops", label, height=HOPS_HEIGHT)
