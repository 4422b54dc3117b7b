"""The report's section on the nodes' load."""

from collections.abc import Sequence
from typing import Any

from analysis.inputs.run_folder import Run
from analysis.report.charts import stacked_bars
from analysis.report.drawing import Drawing


def load_chart(rows: Sequence[dict[str, Any]], label: str) -> Drawing:
    """Messages that each node received and sent. `rows`: node, direction, messages; nodes in the order of the rows."""
    tones = {"received": "var(--layer-websocket)", "sent": "var(--layer-payload)"}
    title = "messages"
    return stacked_bars(
        rows, "messages", title, "direction", list(tones), list(tones.values()), label
    )


MOST_BARS = 40  # nodes in the chart
MOST_ROWS = 12  # nodes in the table


def view(run: Run, summary: dict[str, Any]) -> dict[str, Any] | None:
    """The view of the template; None without messages, or if the metric is missing."""
    measured = summary.get("load")
    if measured is None or not measured["all"]["load"]:
        return None
    kinds = {node.name: node.kind for node in run.nodes}
    rows = [{"name": name, "kind": kinds[name], **own} for name, own in measured["by_node"].items()]
    rows.sort(key=lambda row: -row["load"])
    groups = [("all nodes", measured["all"]), ("brokers", measured["brokers"])]
    return {
        "sentence": sentence(measured),
        "unit_s": measured["unit_s"],
        "groups": [{"name": name, **spread} for name, spread in groups if spread],
        "nodes": rows[:MOST_ROWS],
        "chart": chart(rows[:MOST_BARS]),
        "left_out": max(0, len(rows) - MOST_BARS),
    }


def sentence(measured: dict[str, Any]) -> str:
    """A summary in two sentences."""
    all_nodes = measured["all"]
    busiest, moment = all_nodes["largest"], all_nodes["momentary"]
    share = busiest["load"] / all_nodes["load"]
    return (
        f"{busiest['node']} had the largest load, {share:.0%} of all messages received and sent. "
        f"The busiest {_unit(measured['unit_s'])} of a node had {moment['load']:,.0f} messages ({moment['node']})."
    )


def _unit(unit_s: float) -> str:
    return "second" if unit_s == 1 else f"{unit_s:g} s"


def chart(rows: list[dict[str, Any]]) -> Drawing:
    """A chart with the busiest node first."""
    bars = [
        {"node": row["name"], "direction": direction, "messages": row[direction]}
        for row in rows
        for direction in ("received", "sent")
    ]
    label = "Messages that each node received and sent"
    return load_chart(bars, label)
