"""What the report says, as plain values: read from summary.json and the Parquet files, without Spark."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis import clock_errors, precision
from analysis.errors import AnalysisError
from analysis.receivers import slowest
from analysis.runfolder import Run
from nodes.wire import LEVEL_NAMES

MOST_POINTS = 800  # a level in a chart; more would not be told apart
MOST_LOST = 50  # rows of the table
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
    "retransmitted": "second copies",
    "answers": "answers by UDP",
    "datagrams": "other UDP",
    "unread": "not readable",
    "other": "ARP and others",
}
NARROW = precision.NARROW  # keeps a number and its unit on one line
LEAST_NAMED = 0.08  # smaller parts of a bar are not named inside it


@dataclass(frozen=True, slots=True)
class Edge:
    """Two nodes between which messages were sent."""

    one: str
    other: str


def read_summary(run: Run) -> dict[str, Any]:
    """The summary that `analyze` wrote."""
    try:
        summary: dict[str, Any] = json.loads(run.summary.read_text())
    except FileNotFoundError:
        raise AnalysisError(
            f"Run {run.name} has no summary.json yet.", f"First: testbed analyze {run.name}"
        ) from None
    return summary


def table(
    run: Run, name: str, columns: list[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """One metric of the run; `where`: only these rows of it."""
    return pq.read_table(run.metrics / f"{name}.parquet", columns=columns, filters=where)


def seconds(value: float | None) -> str:
    """A time as people say it."""
    return precision.plain(value)


def delay_told(summary: dict[str, Any], level: str, name: str) -> str:
    """A quantile of a level's delay, in as many digits as the clocks leave."""
    error = clock_errors.error_of(summary, level, name)
    return precision.told(summary["delay_s"][level][name], error)


def size(count: float) -> str:
    """A number of bytes as people say it."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.{0 if unit == 'B' else 1}f}{NARROW}{unit}"
        count /= 1000
    return f"{count:.1f}{NARROW}GB"


def rate(bits: float) -> str:
    """Bits per second as people say it."""
    for unit in ("bit/s", "kbit/s", "Mbit/s"):
        if abs(bits) < 1000:
            return f"{bits:.4g}{NARROW}{unit}"
        bits /= 1000
    return f"{bits:.4g}{NARROW}Gbit/s"


def percent(share: float, digits: str = ".0f") -> str:
    """A share as people say it."""
    return f"{share * 100:{digits}}{NARROW}%"


def headline(summary: dict[str, Any]) -> tuple[str, str]:
    """Did the alerts get through, and how fast? One sentence, and good, bad or none."""
    levels = summary["by_priority"]
    if not levels:
        return "Nothing was published that anybody had subscribed to.", "none"
    level = max(levels)
    expected, delivered = levels[level]["expected"], levels[level]["delivered"]
    what = f"level-{level} ({LEVEL_NAMES[int(level)]})"
    if not delivered:
        return f"None of the {expected} {what} deliveries got through.", "bad"
    receiver = slowest(summary, level)
    where = f", at {receiver}," if receiver else ""
    half, last = (delay_told(summary, level, name) for name in ("p50", "max"))
    speed = f"half within {half}, the slowest{where} after {last}"
    if delivered == expected:
        many = f"All {expected} {what} deliveries" if expected > 1 else f"The one {what} delivery"
        return f"{many} got through: {speed}.", "good"
    lost = expected - delivered
    return f"{lost} of {expected} {what} deliveries were lost; of the others {speed}.", "bad"


def level_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Delay and hops by priority, most urgent first."""
    rows = []
    for level in sorted(summary["by_priority"], reverse=True):
        count = summary["by_priority"][level]
        delay, hops = summary["delay_s"].get(level), summary["hops"].get(level)
        rows.append(
            {
                "level": level,
                "meaning": LEVEL_NAMES[int(level)],
                **count,
                "delays": [
                    delay_told(summary, level, q) if delay else "–"
                    for q in ("p50", "p95", "p99", "max")
                ],
                "late_of": _late_of(count),
                "hops_mean": f"{hops['mean']:.2f}" if hops else "–",
                "hops_max": hops["max"] if hops else "–",
            }
        )
    return rows


def _late_of(count: dict[str, Any]) -> str:
    """How many came after the level's deadline; a dash if it has none."""
    deadline, late = count.get("deadline_s"), count.get("late")
    return "–" if deadline is None or late is None else f"{late} (after {seconds(deadline)})"


def share_rows(deliveries: pa.Table) -> list[dict[str, Any]]:
    """The distribution of the delay by level, as shares of all expected deliveries, thinned to what can be seen."""
    rows = []
    for level in _levels(deliveries):
        of_level = deliveries.filter(pc.field("priority") == level)
        delays = sorted(of_level["delay_s"].drop_null().to_pylist())
        rows += [
            {
                "level": str(level),
                "delay_s": delays[place],
                "share": (place + 1) / of_level.num_rows,
            }
            for place in _thinned(len(delays))
        ]
    return rows


def share_bars(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """What the clocks may make of the median, 95 % and 99 % of each level, at their places on its curve."""
    return [
        {
            "level": level,
            "share": part * delay["n"] / summary["by_priority"][level]["expected"],
            "low_s": delay[name] - error,
            "high_s": delay[name] + error,
        }
        for level, delay in summary["delay_s"].items()
        for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        if (error := clock_errors.error_of(summary, level, name))
    ]


def time_rows(
    deliveries: pa.Table, start_ns: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Deliveries and losses over publish time; of too many, the slowest of each level stay."""
    came, lost = [], []
    for level in _levels(deliveries):
        of_level = deliveries.filter(pc.field("priority") == level)
        rows = of_level.select(["published_ns", "delay_s", *_error_column(deliveries)]).to_pylist()
        for row in rows:
            point = {"level": str(level), "at_s": (row["published_ns"] - start_ns) / 1e9}
            if row["delay_s"] is None:
                lost.append(point)
            else:
                came.append({**point, "delay_s": row["delay_s"], **_bar(row)})
    return _slowest_and_spread(came), lost[:MOST_POINTS]


def _error_column(deliveries: pa.Table) -> list[str]:
    return [clock_errors.COLUMN] if clock_errors.known(deliveries) else []


def _bar(row: dict[str, Any]) -> dict[str, float]:
    """From where to where the delay may be; nothing where it is exact."""
    error = row.get(clock_errors.COLUMN)
    return {"low_s": row["delay_s"] - error, "high_s": row["delay_s"] + error} if error else {}


def _slowest_and_spread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    out = []
    for level in sorted({row["level"] for row in rows}):
        mine = sorted(
            (row for row in rows if row["level"] == level), key=lambda row: -row["delay_s"]
        )
        slowest, rest = mine[: MOST_POINTS // 4], mine[MOST_POINTS // 4 :]
        step = max(1, len(rest) // (3 * MOST_POINTS // 4) + 1)
        out += slowest + (rest if len(mine) <= MOST_POINTS else rest[::step])
    return out


def _levels(deliveries: pa.Table) -> list[int]:
    return sorted(set(deliveries["priority"].to_pylist()), reverse=True)


def _thinned(count: int) -> Iterable[int]:
    """Places from the first to the last, at most MOST_POINTS."""
    if count <= MOST_POINTS:
        return range(count)
    return sorted({round(n * (count - 1) / (MOST_POINTS - 1)) for n in range(MOST_POINTS)})


def layer_rows(run: Run, overhead: pa.Table) -> list[dict[str, Any]]:
    """Shares of the bytes by kind of node and direction, in the order in which the bar is stacked."""
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
    """Layer, its name, bytes on all links, share; what did not occur is left out."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["layer"]] += row["bytes"]
    total = sum(sums.values())
    return [
        (layer, name, sums[layer], sums[layer] / total)
        for layer, name in LAYERS.items()
        if sums[layer]
    ]


def edges(hops: pa.Table, names: set[str]) -> list[Edge]:
    """Pairs of nodes between which messages went, each once."""
    pairs = zip(hops["src"].to_pylist(), hops["dst"].to_pylist(), strict=True)
    known = {(min(a, b), max(a, b)) for a, b in pairs if a in names and b in names}
    return [Edge(one, other) for one, other in sorted(known)]


def lost_rows(deliveries: pa.Table) -> list[dict[str, Any]]:
    """The first lost deliveries, the most urgent ones first."""
    lost = deliveries.filter(pc.field("status") == "lost")
    order = [("priority", "descending"), ("published_ns", "ascending"), ("receiver", "ascending")]
    columns = ["id", "priority", "topic", "origin", "receiver", "published_ns", "reason"]
    return list(lost.sort_by(order).select(columns).slice(0, MOST_LOST).to_pylist())
