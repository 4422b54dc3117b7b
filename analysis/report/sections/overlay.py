"""The report's section on an overlay of several brokers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from analysis.formatting import NARROW, percent, seconds, size
from analysis.inputs.results import table
from analysis.inputs.run_folder import Run
from analysis.report.charts import LETTERS, LEVELS, layered, of_rows, stacked_bars, svg
from analysis.report.drawing import Drawing

# Charts: copies and control traffic by broker, and path lengths.


HOPS_HEIGHT = 220
# Kinds of control traffic in this order, with colours for light and dark mode.
KINDS = {
    "OVERLAY": "websocket",
    "ACK": "label",
    "HEARTBEAT": "tcp",
    "MISSED": "retransmitted",
    "SUBSCRIBE": "payload",
    "SUBSCRIBED": "header",
    "UNSUBSCRIBE": "ip",
    "ADVERTISE": "ethernet",
    "ADVERTISED": "answers",
    "HELLO": "other",
    "JOINED": "unread",  # only those that cannot be parsed
}


def copies_chart(rows: Sequence[dict[str, Any]], label: str) -> Drawing:
    """Copies of publications that each broker sent. `rows`: node, level, copies; brokers in the order of the rows."""
    levels = [level for level in LEVELS if any(row["level"] == level for row in rows)]
    tones = [f"var(--level-{level})" for level in levels]
    return stacked_bars(
        rows, "copies", "copies of publications sent", "level", levels, tones, label
    )


def control_chart(rows: Sequence[dict[str, Any]], label: str) -> Drawing:
    """Control traffic that each broker sent. `rows`: node, kind, bytes_per_s."""
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    tones = [f"var(--layer-{KINDS[kind]})" for kind in kinds]
    title = "bytes per second of control traffic sent"
    return stacked_bars(rows, "bytes_per_s", title, "kind", kinds, tones, label)


def hops_chart(rows: Sequence[dict[str, Any]], label: str) -> Drawing:
    """Path lengths. `rows`: level, hops, share of the level's deliveries."""
    import altair as alt

    levels = [level for level in LEVELS if any(row["level"] == level for row in rows)]
    tones = [f"var(--level-{level})" for level in levels]
    base = of_rows(list(rows)).encode(
        x=alt.X("hops:O", title="hops from publisher to subscriber", axis={"labelAngle": 0}),
        xOffset=alt.XOffset("level:N", sort=levels),
        y=alt.Y("share:Q", title="share of the level's deliveries", axis={"format": "%"}),
    )
    bars = base.mark_bar().encode(
        color=alt.Color(
            "level:N",
            title="level",
            sort=levels,
            scale={"domain": levels, "range": tones},
            legend={"orient": "right", "symbolType": "square"},
        ),
    )
    labels = base.mark_text(fontSize=LETTERS, dy=-6, color="var(--quiet)").encode(
        text=alt.Text("level:N")
    )
    return svg(layered(bars, labels), "hops", label, height=HOPS_HEIGHT)


MOST_BARS = 40  # brokers in a chart
MOST_ROWS = 25  # brokers in the table; the others are folded away


def view(run: Run, summary: dict[str, Any], start_ns: int) -> dict[str, Any] | None:
    """The view of the template; None for one broker, or if the metrics are missing."""
    measured = summary.get("overlay")
    if measured is None or measured["brokers"] < 2:
        return None
    brokers = broker_rows(measured)
    names = [row["name"] for row in brokers[:MOST_BARS]]
    return {
        "sentence": sentence(measured),
        "brokers": brokers[:MOST_ROWS],
        "more_brokers": brokers[MOST_ROWS:],
        "overlay_kinds": list(measured["control"]["by_overlay_kind"].items()),
        "kinds": list(measured["control"]["by_kind"].items()),
        "repairs": [repair_row(row, start_ns) for row in measured["repairs"]],
        "copies": _copies_chart(run, names),
        "control": _control_chart(run, names),
        "hops": _hops_chart(measured["paths"]),
        "left_out": max(0, len(brokers) - MOST_BARS),
    }


def sentence(measured: dict[str, Any]) -> str:
    """A summary in a few sentences."""
    parts = [f"{measured['brokers']} brokers, {measured['method']}."]
    if measured["copies_per_publication"] is not None:
        parts.append(
            f"The nodes sent {measured['copies_per_publication']:.1f} copies of a publication on average."
        )
    rate = measured["control"]["bytes_per_s_per_broker"]
    if rate is not None:
        per_s = size(rate)
        parts.append(
            f"A broker sent {per_s} of control traffic per second on average, headers included."
        )
    handled = sum(level["handled"] for level in measured["forwards"].values())
    relayed = sum(level["relayed"] for level in measured["forwards"].values())
    if handled:
        share = percent(relayed / handled)
        parts.append(f"Brokers only relayed {share} of the publications that they handled.")
    stop_go = measured["stop_go"]
    if any(stop_go.values()):
        parts.append(
            f"Brokers sent `stop` {stop_go['stop']} times and `go` {stop_go['go']} times; "
            f"{stop_go['withheld']} publications without subscribers were withheld."
        )
    return " ".join(parts)


def broker_rows(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """The brokers that sent most copies first."""
    rows = [{"name": name, **counts} for name, counts in measured["by_broker"].items()]
    return sorted(rows, key=lambda row: -row["copies"])


def repair_row(row: dict[str, Any], start_ns: int) -> dict[str, Any]:
    """A death and its repair, formatted."""
    healed = seconds(row["repair_s"]) if row["healed"] else "not repaired"
    return {
        "node": row["node"],
        "when": f"{(row['died_ns'] - start_ns) / 1e9:.3f}{NARROW}s",
        "noticed": seconds(row["noticed_s"]),
        "moved": f"{row['moved']} of {row['clients']}",
        "moved_s": seconds(row["moved_s"]),
        "hit": f"{row['flows_hit']} of {row['flows']}",
        "lost": row["lost"],
        "healed": healed if row["flows_hit"] else "no flow affected",
        "bad": not row["healed"] or row["lost"] > 0,
    }


def _copies_chart(run: Run, names: list[str]) -> Drawing | None:
    rows = [
        {"node": row["node"], "level": str(row["priority"]), "copies": row["copies"]}
        for row in table(run, "forwards").to_pylist()
        if row["node"] in names and row["copies"]
    ]
    rows.sort(key=lambda row: names.index(row["node"]))
    label = "Copies of publications that each broker sent, by level"
    return copies_chart(rows, label) if rows else None


def _control_chart(run: Run, names: list[str]) -> Drawing | None:
    sums: Counter[tuple[str, str]] = Counter()
    for row in table(run, "control").to_pylist():
        if row["node"] in names and row["direction"] == "up":
            sums[row["node"], row["kind"]] += row["bytes_per_s"]
    rows: list[dict[str, Any]] = [
        {"node": node, "kind": kind, "bytes_per_s": rate} for (node, kind), rate in sums.items()
    ]
    rows.sort(key=lambda row: names.index(row["node"]))
    label = "Control traffic that each broker sent, in bytes per second, by kind"
    return control_chart(rows, label) if rows else None


def _hops_chart(paths: dict[str, Any]) -> Drawing | None:
    rows = [
        {"level": level, "hops": int(hops), "share": count / sum(measured["hops"].values())}
        for level, measured in paths.items()
        for hops, count in measured["hops"].items()
    ]
    label = "Hops of deliveries, by level"
    return hops_chart(rows, label) if rows else None
