"""Rows like those of cells on converged overlays, with known numbers: all checks hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, stdev
from typing import Any

from analysis.papers.kawakami2016.freshness import OF_LAB, OF_TRIAL
from analysis.papers.kawakami2016.waiting import Waited
from analysis.papers.methods import OF_WAY
from analysis.papers.tables import spread

Row = dict[str, Any]
PATTERNS = {"a": (10, 990), "b": (500, 500), "c": (990, 10), "d": (1, 9), "e": (5, 5), "f": (9, 1)}
GAIN = {"a": 0.3, "b": 0.5, "c": 0.6, "d": 0.0, "e": 0.05, "f": 0.02}  # of the path, at priority 5
MESSAGES = {"a": 8.0, "b": 90.0, "c": 200.0, "d": 1.0, "e": 1.5, "f": 2.0}  # of SG-TBPS's
STRATEGIES = {"flood": (5.0, 4_000.0), "search": (8.0, 1_100.0)}  # path and messages of SG-TBPS
OF_TOPIC = ("pattern", "publishers", "subscribers", "nodes")
WOBBLE = (-0.1, 0.0, 0.1)  # from trial to trial
SCRIBE_PATH = {1_000: 8.0, 10_000: 11.0, 100_000: 14.0}


def topic_rows(
    sizes: Sequence[int] = (1_000, 10_000), trials: int = 3, methods: Sequence[str] = ()
) -> Iterator[Row]:
    """Rows of all wanted methods (none named: all) for each pattern, size and trial."""
    for pattern in PATTERNS:
        for nodes in sizes:
            for trial in range(trials):
                for row in _of_methods(pattern, nodes, WOBBLE[trial % len(WOBBLE)]):
                    if not methods or row["method"] in methods:
                        yield _topic_row(pattern, nodes, trial, row)


def _of_methods(pattern: str, nodes: int, wobble: float) -> Iterator[Row]:
    for strategy, (path, forwards) in STRATEGIES.items():
        plain = {"path": path + wobble, "forwards": forwards, "starts": 1.0}
        yield {"method": "sg-tbps", "strategy": strategy, **plain}
        for priority in range(1, 6):
            share = (priority - 1) / 4
            for support in ("next", "exact"):
                for support_from in ("participants", "publishers"):
                    yield {
                        "method": "psg-tbps",
                        "strategy": strategy,
                        "priority": priority,
                        "support": support,
                        "support_from": support_from,
                        "path": plain["path"] * (1 - GAIN[pattern] * share),
                        "forwards": forwards * (1 + (MESSAGES[pattern] - 1) * share),
                        "starts": 1 + 9 * share,
                    }
    flood_path, flood_forwards = STRATEGIES["flood"]
    yield {
        "method": "fan-tbps",
        "strategy": "split",
        "priority": 5,
        "path": (flood_path + wobble) * (1 - GAIN[pattern]),
        "forwards": flood_forwards * MESSAGES[pattern] * 0.05,
        "starts": 12.0,
    }
    yield {"method": "scribe", "path": SCRIBE_PATH[nodes] + wobble, "forwards": 1_200.0}


def _topic_row(pattern: str, nodes: int, trial: int, row: Row) -> Row:
    publishers, subscribers = PATTERNS[pattern]
    return {
        "pattern": pattern,
        "publishers": publishers,
        "subscribers": subscribers,
        "nodes": nodes,
        "trial": trial,
        "strategy": "",
        "priority": 1,
        "support": "",
        "support_from": "",
        "starts": 1.0,
        **row,
        "delay_ms": row["path"] * 12,
        "publications": publishers,
        "deliveries": publishers * subscribers,
    }


def table_rows(subscribers: Sequence[int] = (10, 40, 160, 640), trials: int = 3) -> Iterator[Row]:
    """Rows of the experiment with adaptive tables."""
    for count in subscribers:
        path = 1.0 if count <= 50 else 2.0 + count / 1_000
        for trial in range(trials):
            for method, priority, hops, forwards in (
                ("atm-tbps", 1, path, float(count)),
                ("patm-tbps", 1, path, float(count)),
                ("patm-tbps", 5, path * 0.98, 1.2 * count),
                ("sg-tbps", 1, 4.0, 2.0 * count),
                ("psg-tbps", 5, 3.0, 20.0 * count),
            ):
                yield {
                    "subscribers": count,
                    "nodes": 10_000,
                    "trial": trial,
                    "method": method,
                    "priority": priority,
                    "table_size": 60,
                    "path": hops,
                    "forwards": forwards,
                    "one_hop": 1.0 if hops <= 1 else 0.2,
                    "delay_ms": hops * 12,
                }


def load_rows(groups: int = 5, trials: int = 2) -> Iterator[Row]:
    """Rows of the experiment on fairness: a node that forwards more receives more in SG-TBPS only."""
    for method in ("sg-tbps", "scribe"):
        for trial in range(trials):
            for group in range(groups):
                falls = groups - 1 - group
                yield {
                    "method": method,
                    "trial": trial,
                    "node_rank_group": group,
                    "sent": 0.01,
                    "received": 10.0 * falls if method == "sg-tbps" else 10.0,
                    "forwarded": 20.0 * falls + (method == "scribe"),
                }


def load_total_rows(trials: int = 2) -> Iterator[Row]:
    """One row for each method and trial."""
    for method, correlation, idle in (("sg-tbps", 0.8, 40_000), ("scribe", 0.01, 0)):
        for trial in range(trials):
            yield {
                "method": method,
                "trial": trial,
                "correlation": correlation + trial / 1_000,
                "without_forwards": idle,
                "nodes": 100_100,
            }


LOADS = {  # of the methods of Kawakami 2016 at 100 nodes: SL, fairness, messages of the busiest moment, hops
    "server": (60.0, 0.04, 99.0, 1.0),
    "chain": (100.0, 0.8, 2.0, 30.0),
    "push-ascending": (320.0, 0.25, 110.0, 5.4),
    "push-descending": (230.0, 0.16, 110.0, 3.9),
    "push-ascending-aggregated": (127.0, 0.63, 5.0, 5.4),
    "push-descending-aggregated": (73.0, 0.44, 5.0, 3.9),
    "pull": (396.0, 0.7, 16.0, 4.6),
}


def collection_rows(sizes: Sequence[int] = (100, 200), trials: int = 2) -> Iterator[Row]:
    """Rows of the experiment on collecting periodic data."""
    for nodes in sizes:
        scale = nodes / 100
        for trial in range(trials):
            for lists in ("line", "ring"):
                for method, (load, fairness, momentary, hops) in LOADS.items():
                    grows = scale if method in ("server", "chain") else 1.0
                    total = load * scale + trial
                    yield {
                        "nodes": nodes,
                        "trial": trial,
                        "lists": lists,
                        "method": method,
                        "momentary": momentary if method == "chain" else momentary * grows,
                        "largest": momentary * 1_000,
                        "load": total,
                        "squares": total**2 / (nodes * fairness),
                        "most_sent": 40 if method in ("push-ascending", "push-descending") else 1,
                        "hops_max": round(2 * hops * grows),
                        "hops": hops * grows,
                        "hops_plain": hops * grows,
                    }


def averaged(rows: Iterable[Row], by: Sequence[str], values: Sequence[str]) -> list[Row]:
    """The rows as Spark aggregates them: means over trials, in order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        {
            **dict(zip(by, place, strict=True)),
            **{value: _spread([row[value] for row in found]) for value in values},
        }
        for place, found in sorted(groups.items())
    ]


def _spread(values: Sequence[float]) -> Row:
    deviation = stdev(values) if len(values) > 1 else None
    return spread(fmean(values), deviation, len(values))


def kita_means(**changed: Callable[[Row], Row]) -> tuple[list[Row], list[Row]]:
    """Topics and tables as the figures of Kita 2025 need them; `changed` is applied to the rows of a table."""
    topics = topic_rows(methods=("sg-tbps", "psg-tbps", "fan-tbps"))
    return (
        averaged(
            map(changed.get("topics", _as_it_is), topics),
            (*OF_TOPIC, *OF_WAY, "priority"),
            ("path", "forwards", "starts", "delay_ms"),
        ),
        averaged(
            map(changed.get("tables", _as_it_is), table_rows()),
            ("subscribers", "nodes", "table_size", "method", "priority"),
            ("path", "forwards", "one_hop", "delay_ms"),
        ),
    )


def banno_means(**changed: Callable[[Row], Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Topics, load and its totals as the figures of Banno 2013 need them."""
    topics = topic_rows(methods=("sg-tbps", "scribe"))
    return (
        averaged(
            map(changed.get("topics", _as_it_is), topics),
            (*OF_TOPIC, *OF_WAY),
            ("path", "forwards"),
        ),
        averaged(load_rows(), ("method", "node_rank_group"), ("sent", "received", "forwarded")),
        averaged(
            map(changed.get("totals", _as_it_is), load_total_rows()),
            ("method", "nodes"),
            ("correlation", "without_forwards"),
        ),
    )


def kawakami_means(changed: Callable[[Row], Row] | None = None) -> list[Row]:
    """Rows as the figures of Kawakami 2016 need them."""
    rows = (
        {**row, "fairness": row["load"] ** 2 / (row["nodes"] * row["squares"])}
        for row in collection_rows()
    )
    return averaged(
        map(changed or _as_it_is, rows),
        ("method", "nodes", "lists"),
        (
            *("momentary", "most_sent", "largest", "load", "fairness"),
            *("hops_max", "hops", "hops_plain"),
        ),
    )


def kawakami_waited(
    changed: Callable[[Row], Row] | None = None, labs: Sequence[str] = ("real", "twin", "simulated")
) -> Waited:
    """Rows of the experiment on waiting: longer waits mean later, older data and less cost; real links add delay."""
    rows = [
        {
            "lab": lab,
            "sites": 10,
            "wait_ms": wait_ms,
            "trial": trial,
            "missing": 0,
            "delay_s": 0.2 + late + wait_ms / 2000,
            "delay_p50_s": 0.18 + late + wait_ms / 2000,
            "delay_p95_s": 0.4 + late + wait_ms / 1000,
            "age_s": 3 + late + wait_ms / 2000,
            "messages": 2 - wait_ms / 2000,
            "bytes": 900 - wait_ms / 5,
            "line_bytes": 1_500.0,
        }
        for lab, late in (("real", 0.02), ("twin", 0.0), ("simulated", 0.0))
        for wait_ms in (500, 0, 1000)
        for trial in range(3 if lab == "simulated" else 1)
        if lab in labs
    ]
    values = [name for name in rows[0] if name not in OF_TRIAL]
    runs = [{"run": "waiting-0ms-1", "fidelity": {"machine": {"ok": True}}}]
    return Waited(averaged(map(changed or _as_it_is, rows), OF_LAB, values), runs)


def _as_it_is(row: Row) -> Row:
    return row
