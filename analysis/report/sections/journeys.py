"""The report's section on single alerts, hop by hop: the slowest delivery of the most urgent level, and the median."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis import formatting
from analysis.formatting import seconds
from analysis.inputs.results import table
from analysis.inputs.run_folder import Run
from analysis.metrics import clock_errors
from analysis.metrics.hops import on_path
from analysis.report.charts import HOVER, TIME_LABEL, WIDTH, Specification, layered, of_rows, svg
from analysis.report.drawing import Drawing

# The chart: a bar for each stage of a hop; stages differ by height and filling, so colour is not needed.


ROW = 34  # pixels of a hop
AXIS_MARGIN = 1.12  # the axis extends beyond the end, for the last hop's number
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


def draw(panels: Sequence[tuple[str, list[dict[str, Any]]]], label: str) -> Drawing:
    """Panels with a title and rows: hop, stage, begin_s, end_s; each has its own axis."""
    whole = {
        "vconcat": [_panel(title, rows) for title, rows in panels],
        "spacing": 26,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }
    return svg(whole, "journey", label, height=None)


def _panel(title: str, rows: list[dict[str, Any]]) -> Specification:
    import altair as alt

    order = list(dict.fromkeys(row["hop"] for row in rows))
    end = max(row["end_s"] for row in rows) or 1.0
    y = alt.Y(
        "hop:N",
        title=None,
        sort=order,
        axis={"domain": False, "ticks": False, "labelLimit": NAMES, "minExtent": NAMES},
    )
    x = alt.X(
        "begin_s:Q",
        title="after publication",
        scale={"domain": [0, end * AXIS_MARGIN], "nice": False},
        axis={"labelExpr": TIME_LABEL, "tickCount": 6},
    )
    layers = [
        of_rows([_with_hover(row) for row in rows if row["stage"] == stage])
        .mark_bar(**style)
        .encode(y=y, x=x, x2=alt.X2("end_s:Q"), description=alt.Description(HOVER))
        for stage, style in STYLES.items()
    ]
    labels = of_rows(_totals(rows)).mark_text(align="left", dx=7, fontSize=12)
    layers.append(labels.encode(y=y, x=alt.X("end_s:Q"), text=alt.Text("text:N")))
    size = {"width": WIDTH - NAMES, "height": len(order) * ROW}
    return layered(*layers, title=title, **size)


def _with_hover(row: dict[str, Any]) -> dict[str, Any]:
    began, took = (seconds(value) for value in (row["begin_s"], row["end_s"] - row["begin_s"]))
    text = f"{row['hop']}: {row['stage']} for {took}, from {began} after publication"
    return {**row, "hover": text}


def _totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The duration of each hop, placed at its end."""
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        begin, end = found.get(row["hop"], (row["begin_s"], row["end_s"]))
        found[row["hop"]] = (min(begin, row["begin_s"]), max(end, row["end_s"]))
    return [
        {"hop": hop, "end_s": end, "text": seconds(end - begin)}
        for hop, (begin, end) in found.items()
    ]


STAGES = ("waited", "sending", "crossing")
CAUSES = ("queue", "transmission", "propagation", "retransmission")


@dataclass(frozen=True, slots=True)
class Journey:
    """A delivery and the rows of `hops` along its path; None for a hop that was not captured."""

    what: str
    delivery: dict[str, Any]
    hops: tuple[dict[str, Any] | None, ...]


def view(run: Run, deliveries: pa.Table) -> dict[str, Any] | None:
    """The view of the template; None if nothing of the most urgent level arrived."""
    picked = chosen(deliveries)
    if not picked:
        return None
    ids = sorted({delivery["id"] for _, delivery in picked})
    hops = table(run, "hops", where=pc.field("id").isin(ids)).to_pylist()
    journeys = [Journey(what, delivery, on_path(delivery, hops)) for what, delivery in picked]
    label = "Time of an alert, hop by hop: " + "; ".join(map(title, journeys))
    panels = [(title(journey), bars(journey)) for journey in journeys]
    drawn = [(name, rows) for name, rows in panels if rows]
    return {
        "level": str(picked[0][1]["priority"]),
        "chart": draw(drawn, label) if drawn else None,
        "rows": [row for journey in journeys for row in cause_rows(journey)],
        "path": journeys[0].delivery["path"],
        "receiver": journeys[0].delivery["receiver"],
    }


def chosen(deliveries: pa.Table) -> list[tuple[str, dict[str, Any]]]:
    """The slowest delivery of the most urgent level that arrived, and the median one of all expected, if it arrived."""
    if not deliveries.num_rows:
        return []
    level = pc.max(deliveries["priority"]).as_py()
    expected = deliveries.filter(pc.field("priority") == level)
    came = expected.filter(pc.field("delay_s").is_valid())
    order = [(name, "ascending") for name in ("delay_s", "published_ns", "id", "receiver")]
    columns = ["id", "receiver", "priority", "topic", "path", "hops", "delay_s", "published_ns"]
    columns += [clock_errors.COLUMN] if clock_errors.known(deliveries) else []
    ranked = came.select(columns).sort_by(order)
    if not ranked.num_rows:
        return []
    last, middle = ranked.num_rows - 1, (expected.num_rows - 1) // 2
    places = {"slowest": last, "median": middle} if middle < last else {"slowest": last}
    return [(what, ranked.slice(place, 1).to_pylist()[0]) for what, place in places.items()]


def title(journey: Journey) -> str:
    """The title of a panel."""
    delivery = journey.delivery
    took = formatting.seconds_with_error(
        delivery["delay_s"], delivery.get(clock_errors.COLUMN) or 0.0
    )
    return f"the {journey.what} to {delivery['receiver']}, {took}"


def bars(journey: Journey) -> list[dict[str, Any]]:
    """Stages of each hop in seconds since publication; stages without both ends are left out."""
    rows = []
    published = journey.delivery["published_ns"]
    for number, hop in enumerate(journey.hops, start=1):
        if hop is None:
            continue
        times = ("ready_ns", "sent_first_ns", "sent_last_ns", "received_last_ns")
        ends = [None if hop[at] is None else (hop[at] - published) / 1e9 for at in times]
        where = f"{number}. {hop['src']} → {hop['dst']}"
        rows += [
            {"hop": where, "stage": stage, "begin_s": begin, "end_s": end}
            for stage, (begin, end) in zip(STAGES, pairwise(ends), strict=True)
            if begin is not None and end is not None
        ]
    return rows


def cause_rows(journey: Journey) -> list[dict[str, Any]]:
    """Rows of a table: duration of each hop, and its parts by cause."""
    pairs = list(pairwise(journey.delivery["path"] or ()))
    return [
        {
            "what": journey.what,
            "number": number,
            "src": src,
            "dst": dst,
            "took": _took(hop),
            **{cause: hop[f"{cause}_s"] if hop else None for cause in CAUSES},
        }
        for number, ((src, dst), hop) in enumerate(zip(pairs, journey.hops, strict=True), start=1)
    ]


def _took(hop: dict[str, Any] | None) -> float | None:
    if hop is None or hop["ready_ns"] is None or hop["received_last_ns"] is None:
        return None
    return float(hop["received_last_ns"] - hop["ready_ns"]) / 1e9
