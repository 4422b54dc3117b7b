"""Runs side by side: what each took, as ratios to the first; and message by message, if they are of one scenario.

Message ids are made of the publisher's number and a counter, so the same scenario and seed give the same ids in every
run: simulated or real, whatever the overlay.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.clock_errors import COLUMN
from analysis.effects import effects
from analysis.experiments import delays_by_level
from analysis.faults import FORMER
from analysis.runfolder import Run
from analysis.sides import QUANTILES, WHOLE, Side, figures

Emit = Callable[[str, int, int], None]
STAGE = "comparing"
KEYS = ["id", "receiver"]
SAME = ("topic", "priority", "payload_bytes")  # of what is one message
SAME_WITHIN_NS = 2_000_000_000  # of the scenario's time: nodes publish late on a busy machine
SEVERAL = "a side is several runs, and each has messages of its own"
PATH = "\x1f"  # stands in no node's name


def compare(sides: Sequence[Side], emit: Emit = lambda *_: None) -> dict[str, Any]:
    """The document: `runs` in their order; `ratios`, `pairs` and `effects` of all but the first, to the first."""
    emit(STAGE, 0, len(sides))
    runs = [figures(one) for one in sides]
    first = sides[0]
    delays = [delays_by_level(run) for run in first.runs]
    emit(STAGE, 1, len(sides))
    pairs, differing = [], []
    for number, other in enumerate(sides[1:], start=2):
        pairs.append({"run": other.name, **_pairs(first, other)})
        theirs = [delays_by_level(run) for run in other.runs]
        errors = tuple(_errors(runs[place]) for place in (0, number - 1))
        differing.append({"run": other.name, **effects(delays, theirs, errors)})
        emit(STAGE, number, len(sides))
    ratios = [{"run": one["run"], **ratios_of(runs[0], one)} for one in runs[1:]]
    return {"runs": runs, "ratios": ratios, "pairs": pairs, "effects": differing}


def _pairs(first: Side, other: Side) -> dict[str, Any]:
    """Message by message, if each side is one run and both are of one scenario."""
    if len(first.runs) > 1 or len(other.runs) > 1:
        return {"reason": SEVERAL}
    (one,), (two,) = first.runs, other.runs
    reason = difference(one, two)
    return {"reason": reason} if reason else pairs_of(_delivered(one), _delivered(two))


def ratios_of(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The other's figures as multiples of the first's; null where one of them has none, or the first has zero."""
    levels = {
        level: {
            **{
                name: _ratio(first["levels"][level][name], told[name])
                for name in (*QUANTILES, "hops_mean", "hops_max")
            },
            **_undecided(first["levels"][level], told),
        }
        for level, told in other["levels"].items()
        if level in first["levels"]
    }
    return {"levels": levels, **{name: _ratio(first[name], other[name]) for name in WHOLE}}


def _ratio(first: float | None, other: float | None) -> float | None:
    return other / first if first and other is not None else None


def _errors(figures: dict[str, Any]) -> dict[int, dict[str, float]]:
    """Level -> how far each statistic of its delay may be off, where clocks differ."""
    levels = figures["levels"].items()
    return {int(level): told["error_s"] for level, told in levels if "error_s" in told}


def _undecided(one: dict[str, Any], two: dict[str, Any]) -> dict[str, list[str]]:
    """`within_clock_error`: which delays differ by no more than the clocks may be off, if those differ at all."""
    errors = [told.get("error_s", {}) for told in (one, two)]
    if not any(errors):
        return {}
    return {
        "within_clock_error": [
            name
            for name in QUANTILES
            if one[name] is not None
            and two[name] is not None
            and abs(two[name] - one[name]) <= sum(error.get(name, 0.0) for error in errors)
        ]
    }


def difference(first: Run, other: Run) -> str:
    """Why the messages of these runs cannot be set beside each other; empty if they can."""
    one, two = first.manifest["topology"], other.manifest["topology"]
    if one["seed"] != two["seed"]:
        return f"its seed is {two['seed']}, not {one['seed']}"
    if _cast(one) != _cast(two):
        return "its sensors and subscribers are others, have other numbers, or want other things"
    if _places(one) != _places(two):
        return "its areas are others, or its sensors stand elsewhere"
    if one["scenario"]["publish"] != two["scenario"]["publish"]:
        return "other messages are published in its scenario"
    if _failing(one) != _failing(two):
        return "its sensors fail at other times"  # who is down counts no messages
    return ""


def _failing(topology: dict[str, Any]) -> list[tuple[float, str, tuple[str, ...]]]:
    """What happens to sensors themselves."""
    sensors = {node["name"] for node in topology["nodes"] if node["kind"] == "sensor"}
    return [
        (each["at_s"], FORMER.get(each["kind"], each["kind"]), tuple(struck))
        for each in topology["scenario"].get("actions", topology["scenario"].get("faults", ()))
        if (struck := sorted(sensors.intersection(each["nodes"])))
        and each["kind"] in ("crash", "stop", "start", "restart", "churn")
    ]


def _cast(topology: dict[str, Any]) -> dict[int, tuple[str, str, tuple[str, ...]]]:
    """Everybody who publishes or wants something: brokers may be others."""
    return {
        node["number"]: (node["name"], node["kind"], tuple(sorted(node["topics"])))
        for node in topology["nodes"]
        if node["kind"] in ("sensor", "subscriber")
    }


def _places(topology: dict[str, Any]) -> tuple[Any, ...]:
    """From where to where a lab's space goes, and where its sensors stand in it; that matters only if it has one."""
    space = topology.get("space", ())
    sensors = [node for node in topology["nodes"] if space and node["kind"] == "sensor"]
    return (*space, *((node["name"], node["at"]) for node in sensors))


def _delivered(run: Run) -> pa.Table:
    """The deliveries that were made, each path as one word."""
    columns = [*KEYS, *SAME, "published_ns", "hops", "path", "delay_s", "status"]
    path = run.metrics / "deliveries.parquet"
    table = pq.read_table(path, columns=[*columns, *_written(path)])
    table = table.filter(pc.field("status") == "delivered").drop_columns("status")
    start_ns = run.played[0] if run.played else int(run.manifest["created_ns"])
    paths = pc.binary_join(table["path"], PATH)
    at_ns = pc.subtract(table["published_ns"], start_ns)
    table = table.set_column(table.schema.get_field_index("path"), "path", paths)
    return table.drop_columns("published_ns").append_column("at_ns", at_ns)


def _written(path: Path) -> list[str]:
    """The column of errors, if there is one: earlier versions wrote none."""
    return [COLUMN] if COLUMN in pq.ParquetDataset(path).schema.names else []


def pairs_of(first: pa.Table, other: pa.Table) -> dict[str, Any]:
    """Of the deliveries that both runs made: how many took as many hops, the same way, and how long they took.

    `delays`: by level, the delay in the other run as a multiple of that in the first: least 5 %, median, 95 %.
    """
    both = first.join(other, KEYS, join_type="inner", right_suffix="_other")
    same = _equal(both, SAME[0])
    for name in SAME[1:]:
        same = pc.and_(same, _equal(both, name))
    apart = pc.abs(pc.subtract(both["at_ns"], both["at_ns_other"]))
    same = pc.and_(same, pc.less(apart, SAME_WITHIN_NS))
    strange = both.num_rows - _count(same)
    both = both.filter(same)
    return {
        "pairs": both.num_rows,
        "only_first": first.num_rows - both.num_rows - strange,
        "only_this": other.num_rows - both.num_rows - strange,
        "other_messages": strange,
        "same_hops": _count(_equal(both, "hops")),
        "same_paths": _count(_equal(both, "path")),
        "delays": _delays(both),
    }


def _delays(both: pa.Table) -> dict[str, dict[str, float]]:
    one, other = (both[name].to_numpy() for name in ("delay_s", "delay_s_other"))
    levels = both["priority"].to_numpy()
    found = {}
    for level in sorted(set(levels.tolist()), reverse=True):
        mine = (levels == level) & (one > 0)
        if mine.any():
            p05, p50, p95 = np.percentile(other[mine] / one[mine], (5, 50, 95))
            found[str(level)] = {
                "pairs": int(mine.sum()),
                "p05": float(p05),
                "p50": float(p50),
                "p95": float(p95),
                **_undecided_pairs(both, mine),
            }
    return found


def _undecided_pairs(both: pa.Table, mine: Any) -> dict[str, int]:
    """`within_clock_error`: how many of these pairs differ by no more than the clocks may be off, if those differ."""
    names = [name for name in (COLUMN, f"{COLUMN}_other") if name in both.column_names]
    errors = sum((both[name].to_numpy() for name in names), np.zeros(both.num_rows))
    if not errors[mine].any():
        return {}
    apart = np.abs(both["delay_s_other"].to_numpy() - both["delay_s"].to_numpy())
    return {"within_clock_error": int((apart <= errors)[mine].sum())}


def _equal(both: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.equal(both[name], both[f"{name}_other"])


def _count(flags: pa.ChunkedArray) -> int:
    return int(pc.sum(flags).as_py() or 0)
