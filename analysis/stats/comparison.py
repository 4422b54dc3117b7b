"""Compares runs: figures as ratios to the first run; and message by message, if both ran one scenario.

Message ids consist of the publisher's number and a counter, so the same scenario and seed give the same ids in every
run, simulated or real, with any overlay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.inputs.manifest import method
from analysis.inputs.run_folder import Run
from analysis.metrics.clock_errors import COLUMN
from analysis.metrics.percentiles import NOT_WITHIN, SHARES, Delays, summary_of, together
from analysis.stats.effects import effects
from analysis.stats.run_settings import distinguish
from analysis.stats.trials import read_delays, summary_of_run

# One side of a comparison: a run, or several runs that are trials of the same experiment.


QUANTILES = tuple(SHARES)
WHOLE = ("copies_per_publication", "control_bytes_per_s", "overhead")
COUNTS = ("expected", "delivered", "lost")
SAME_OF_TRIALS = ("backend", "overlay")  # usually equal in all trials


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one side, with their summaries."""

    runs: tuple[Run, ...]
    summaries: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        return ",".join(run.name for run in self.runs)


def side(*runs: Run) -> Side:
    """Build a side; AnalysisError if a run was not analysed."""
    return Side(runs, tuple(summary_of_run(run) for run in runs))


def figures(one: Side) -> dict[str, Any]:
    """The figures of a side; null where unknown. Trials are combined."""
    each = [_of_run(*known) for known in zip(one.runs, one.summaries, strict=True)]
    found = each[0] if len(each) == 1 else _together(one, each)
    return {**found, "trials": len(each)}


def _of_run(run: Run, summary: dict[str, Any]) -> dict[str, Any]:
    messages, overhead = summary["messages"], summary["overhead"]
    overlay = summary.get("overlay") or {}
    payload = overhead["payload_bytes"]
    return {
        "run": run.name,
        "backend": run.backend,
        "overlay": method(run.manifest["topology"]["overlay"]),
        "expected": messages["expected_deliveries"],
        "delivered": messages["delivered"],
        "lost": messages["lost"],
        "handed_twice": messages.get("handed_twice"),
        "levels": {
            level: {
                **{name: count[name] for name in COUNTS},
                **{name: summary["delay_s"][level][name] for name in (*QUANTILES, NOT_WITHIN)},
                "hops_mean": summary["hops"].get(level, {}).get("mean"),
                "hops_max": summary["hops"].get(level, {}).get("max"),
                **_clock_error(summary, level),
            }
            for level, count in sorted(summary["by_priority"].items(), reverse=True)
        },
        "copies_per_publication": overlay.get("copies_per_publication"),
        "control_bytes_per_s": overlay.get("control", {}).get("bytes_per_s_per_broker"),
        "overhead": overhead["wire_bytes"] / payload if payload else None,
    }


def _clock_error(summary: dict[str, Any], level: str) -> dict[str, Any]:
    """`error_s`: the error of each statistic of the delay; empty if all nodes use one clock."""
    known = summary.get(COLUMN, {}).get(level)
    if not known or not known["largest"]:
        return {}
    return {"error_s": {**known["of"], "largest": known["largest"]}}


def _together(one: Side, each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combine trials: sum counts, take percentiles over all messages, average other numbers."""
    levels = sorted({level for run in each for level in run["levels"]}, reverse=True)
    delays = [read_delays(run) for run in one.runs]
    twice = [run["handed_twice"] for run in each]
    return {
        "run": one.name,
        **{name: " | ".join(dict.fromkeys(run[name] for run in each)) for name in SAME_OF_TRIALS},
        **{name: sum(run[name] for run in each) for name in COUNTS},
        "handed_twice": None if None in twice else sum(twice),
        "levels": {
            level: _level_together(
                [run["levels"][level] for run in each if level in run["levels"]],
                together(run[int(level)] for run in delays if int(level) in run),
            )
            for level in levels
        },
        **{name: _mean([run[name] for run in each]) for name in WHOLE},
    }


def _level_together(known: Sequence[Mapping[str, Any]], delays: Delays) -> dict[str, Any]:
    hops = [one for one in known if one["hops_mean"] is not None]
    delivered = sum(one["delivered"] for one in hops)
    crossed = sum(one["hops_mean"] * one["delivered"] for one in hops)
    return {
        **{name: sum(one[name] for one in known) for name in COUNTS},
        **summary_of(delays),
        "hops_mean": crossed / delivered if delivered else None,
        "hops_max": max((one["hops_max"] for one in hops), default=None),
        **_errors_together([one["error_s"] for one in known if "error_s" in one]),
    }


def _errors_together(known: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The error of combined trials: at most the largest error of a delay."""
    if not known:
        return {}
    largest = max(one["largest"] for one in known)
    return {"error_s": dict.fromkeys((*QUANTILES, "mean", "largest"), largest)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


Emit = Callable[[str, int, int], None]
STAGE = "comparing"
KEYS = ["id", "receiver"]
SAME = (
    "topic",
    "priority",
    "payload_bytes",
)  # columns that are equal if two rows are the same message
SAME_WITHIN_NS = 2_000_000_000  # in scenario time: nodes publish late on a busy machine
SEVERAL = "a side is several runs, and each has messages of its own"
PATH = "\x1f"  # does not occur in node names


def compare(sides: Sequence[Side], emit: Emit = lambda *_: None) -> dict[str, Any]:
    """The comparison: `runs` in order; `ratios`, `pairs` and `effects` of all but the first, relative to the first.

    `settings` of a run: what differs between the sides; `same`: what does not.
    """
    emit(STAGE, 0, len(sides))
    differing, same = distinguish([one.runs for one in sides])
    runs = [
        {**figures(one), "settings": settings}
        for one, settings in zip(sides, differing, strict=True)
    ]
    first = sides[0]
    delays = [_endless(run) for run in first.runs]
    emit(STAGE, 1, len(sides))
    pairs, unlike = [], []
    for number, other in enumerate(sides[1:], start=2):
        pairs.append({"run": other.name, **_pairs(first, other)})
        theirs = [_endless(run) for run in other.runs]
        errors = tuple(_errors(runs[place]) for place in (0, number - 1))
        unlike.append({"run": other.name, **effects(delays, theirs, errors)})
        emit(STAGE, number, len(sides))
    ratios = [{"run": one["run"], **ratios_of(runs[0], one)} for one in runs[1:]]
    return {"runs": runs, "same": same, "ratios": ratios, "pairs": pairs, "effects": unlike}


def _endless(run: Run) -> dict[int, Any]:
    """Level -> the delay of each expected delivery, infinite if it has not come."""
    return {level: delays.s for level, delays in read_delays(run).items()}


def _pairs(first: Side, other: Side) -> dict[str, Any]:
    """Compare message by message, if each side is one run and both ran one scenario."""
    if len(first.runs) > 1 or len(other.runs) > 1:
        return {"reason": SEVERAL}
    (one,), (two,) = first.runs, other.runs
    reason = difference(one, two)
    return {"reason": reason} if reason else pairs_of(_delivered(one), _delivered(two))


def ratios_of(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The other's figures divided by the first's; null where one is missing, or the first is zero.

    `not_reached`: the quantiles that a side did not reach, with the value or the bound of both.
    """
    levels = {
        level: {
            **{
                name: _ratio(first["levels"][level][name], known[name])
                for name in (*QUANTILES, "hops_mean", "hops_max")
            },
            **_undecided(first["levels"][level], known),
            **_not_reached(first["levels"][level], known),
        }
        for level, known in other["levels"].items()
        if level in first["levels"]
    }
    return {"levels": levels, **{name: _ratio(first[name], other[name]) for name in WHOLE}}


def _ratio(first: float | None, other: float | None) -> float | None:
    return other / first if first and other is not None else None


def _not_reached(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """`not_reached`, if there are any: name -> `first` and `other`, each `value` and `not_within_s`."""
    bounds = [figures.get(NOT_WITHIN, {}) for figures in (one, two)]
    names = [name for name in QUANTILES if any(name in side for side in bounds)]
    if not names:
        return {}
    sides = dict(zip(("first", "other"), zip((one, two), bounds, strict=True), strict=True))
    return {
        "not_reached": {
            name: {
                side: {"value": figures[name], NOT_WITHIN: bound.get(name)}
                for side, (figures, bound) in sides.items()
            }
            for name in names
        }
    }


def _errors(figures: dict[str, Any]) -> dict[int, dict[str, float]]:
    """Level -> error of each statistic of its delay, where clocks differ."""
    levels = figures["levels"].items()
    return {int(level): known["error_s"] for level, known in levels if "error_s" in known}


def _undecided(one: dict[str, Any], two: dict[str, Any]) -> dict[str, list[str]]:
    """`within_clock_error`: the quantiles that differ by no more than the clock errors, if there are any."""
    errors = [known.get("error_s", {}) for known in (one, two)]
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
    """Why the messages of these runs cannot be compared; empty if they can."""
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
        return "its sensors fail at other times"  # a node that is down does not count messages
    return ""


def _failing(topology: dict[str, Any]) -> list[tuple[float, str, tuple[str, ...]]]:
    """The actions that stop or start sensors."""
    sensors = {node["name"] for node in topology["nodes"] if node["kind"] == "sensor"}
    return [
        (each["at_s"], each["kind"], tuple(hit))
        for each in topology["scenario"].get("actions", ())
        if (hit := sorted(sensors.intersection(each["nodes"])))
        and each["kind"] in ("crash", "stop", "start", "churn")
    ]


def _cast(topology: dict[str, Any]) -> dict[int, tuple[str, str, tuple[str, ...]]]:
    """Sensors and subscribers; brokers may differ."""
    return {
        node["number"]: (node["name"], node["kind"], tuple(sorted(node["topics"])))
        for node in topology["nodes"]
        if node["kind"] in ("sensor", "subscriber")
    }


def _places(topology: dict[str, Any]) -> tuple[Any, ...]:
    """The bounds of a lab's space, and the places of its sensors; empty without a space."""
    space = topology.get("space", ())
    sensors = [node for node in topology["nodes"] if space and node["kind"] == "sensor"]
    return (*space, *((node["name"], node["at"]) for node in sensors))


def _delivered(run: Run) -> pa.Table:
    """The successful deliveries, each path as one string."""
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
    """The column of errors, if the file has it: earlier versions did not write it."""
    return [COLUMN] if COLUMN in pq.ParquetDataset(path).schema.names else []


def pairs_of(first: pa.Table, other: pa.Table) -> dict[str, Any]:
    """Of the deliveries in both runs: how many have the same hops and the same path, and the ratio of their delays.

    `delays`: by level, the ratio of the other delay to the first: 5 %, median, 95 %.
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
    """`within_clock_error`: the number of pairs that differ by no more than the clock errors, if there are any."""
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
