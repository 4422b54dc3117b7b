"""The report's section on overhead: the bytes on the links by layer."""

from collections import Counter
from typing import Any

import pyarrow as pa

from analysis.formatting import size
from analysis.inputs.run_folder import Run
from analysis.report.charts import HOVER, layered, of_rows, svg
from analysis.report.drawing import Drawing


def layer_bars(rows: list[dict[str, Any]], order: dict[str, str], label: str) -> Drawing:
    """Bytes by layer. `rows`: where, name, place, share, middle, text; `order`: layer, name."""
    import altair as alt

    tones = [f"var(--layer-{layer})" for layer in order]
    names = list(order.values())
    shown = [
        {**row, "hover": f"{row['where']}, {row['name']}: {size(row['bytes'])}, {row['share']:.1%}"}
        for row in rows
    ]
    bars = (
        of_rows(shown)
        .mark_bar(stroke="var(--paper)", strokeWidth=1.5, height=26)
        .encode(
            y=alt.Y(
                "where:N",
                title=None,
                sort=None,
                axis={"domain": False, "ticks": False, "labelFontSize": 13},
            ),
            x=alt.X(
                "share:Q",
                title="share of the bytes on these links",
                stack="zero",
                axis={"format": "%"},
                scale={"domain": [0, 1]},
            ),
            order=alt.Order("place:Q"),
            color=alt.Color(
                "name:N",
                title=None,
                sort=names,
                scale={"domain": names, "range": tones},
                legend={"orient": "bottom", "columns": 4, "symbolType": "square"},
            ),
            description=alt.Description(HOVER),
        )
    )
    labels = (
        of_rows([row for row in rows if row["text"]])
        .mark_text(fontSize=11, color="var(--on-layer)", clip=True)
        .encode(y=alt.Y("where:N", sort=None), x=alt.X("middle:Q"), text=alt.Text("text:N"))
    )
    count = len({row["where"] for row in rows})
    return svg(layered(bars, labels), "layers", label, height=count * 40)


LAYERS = {
    "payload": "payload",
    "header": "header and topic",
    "label": "labels",
    "websocket": "WebSocket",
    "control": "control messages",
    "mqtt": "MQTT",
    "tcp": "TCP",
    "ip": "IP",
    "ethernet": "Ethernet",
    "retransmitted": "retransmitted bytes",
    "udp_acks": "UDP acknowledgements",
    "datagrams": "other UDP",
    "unread": "not decoded",
    "other": "ARP and others",
}
LEAST_NAMED = 0.08  # smaller parts of a bar are not named inside it


def layer_rows(run: Run, overhead: pa.Table) -> list[dict[str, Any]]:
    """Shares of the bytes by kind of node and direction, in the stacking order."""
    kinds = {node.name: node.kind for node in run.nodes}
    sums: Counter[tuple[str, str]] = Counter()
    for row in overhead.to_pylist():
        where = f"{kinds.get(row['link'], '?')} {row['direction']}"
        sums[where, row["layer"]] += row["bytes"]
    rows = []
    for where in sorted({where for where, _ in sums}):
        total = sum(count for (place, _), count in sums.items() if place == where)
        at = 0.0
        for place, (layer, name) in enumerate(LAYERS.items()):
            share = sums[where, layer] / total if total else 0.0
            rows.append(
                {
                    "where": where,
                    "layer": layer,
                    "name": name,
                    "place": place,
                    "share": share,
                    "middle": at + share / 2,
                    "bytes": sums[where, layer],
                    "text": f"{name} {share:.0%}"
                    if share >= LEAST_NAMED * (len(name) + 4) / 10
                    else "",
                }
            )
            at += share
    return rows


def layer_totals(rows: list[dict[str, Any]]) -> list[tuple[str, str, int, float]]:
    """Layer, its name, bytes on all links, share; layers without bytes are left out."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["layer"]] += row["bytes"]
    total = sum(sums.values())
    return [
        (layer, name, sums[layer], sums[layer] / total)
        for layer, name in LAYERS.items()
        if sums[layer]
    ]


def layers_chart(rows: list[dict[str, Any]]) -> Drawing | None:
    shown = [row for row in rows if row["share"] > 0]
    present = {row["layer"] for row in shown}
    order = {layer: name for layer, name in LAYERS.items() if layer in present}
    label = "Share of the bytes by layer, for each kind of node and direction"
    return layer_bars(shown, order, label) if shown else None
