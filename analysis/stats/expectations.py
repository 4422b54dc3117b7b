"""Judges the expectations of a run from its metrics and summary; what cannot be judged has failed.

An expectation is a mapping of the manifest (`scenario.expect`): quantity, statistic, relation, limit, share, and its
scope: levels, topic, node (the receiver, or its group), origin (the publisher, or its group).
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.formatting import NARROW, not_within
from analysis.inputs.run_folder import Run
from analysis.metrics.percentiles import of_delays, of_table
from analysis.stats.trials import summary_of_run

Expectation = Mapping[str, Any]
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": lambda found, limit: found < limit or _same(found, limit),
    "==": lambda found, limit: _same(found, limit),  # noqa: PLW0108  (defined below)
    "!=": lambda found, limit: not _same(found, limit),
    ">=": lambda found, limit: found > limit or _same(found, limit),
    ">": operator.gt,
}
TIMES = ("delay",)
STATISTICS: dict[str, Callable[[Any], float]] = {"mean": np.mean, "min": np.min, "max": np.max}
# What a value that is at least this bound, or more, says about the limit; nothing if the bound is not above it.
BY_BOUND = {"<": False, "<=": False, "==": False, "!=": True, ">=": True, ">": True}


class Found(NamedTuple):
    """The value of a quantity, or why there is none; `of`: the number of deliveries, if it concerns deliveries."""

    value: float | None
    of: int | None = None
    reason: str | None = None
    not_within_s: float | None = None  # the bound of a percentile that was not reached


def judged(
    run: Run, summary: Mapping[str, Any], deliveries: pa.Table, more: Sequence[Expectation] = ()
) -> list[dict[str, Any]]:
    """Judge the expectations of the run's scenario, and then `more`: what was found, and whether it is as expected."""
    return [_verdict(run, one, summary, deliveries) for one in _all_expected(run, more)]


def judge_again(run: Run, more: Sequence[Expectation] = ()) -> dict[str, Any]:
    """The summary of an analysed run with new verdicts; earlier ones stay."""
    summary = summary_of_run(run)
    expected = {one["text"] for one in _all_expected(run, more)}
    earlier = [one for one in summary.get("expectations", ()) if one["expect"] not in expected]
    if not expected:
        return {**summary, "expectations": earlier}
    deliveries = pq.read_table(run.metrics / "deliveries.parquet")
    return {**summary, "expectations": [*judged(run, summary, deliveries, more), *earlier]}


def _all_expected(run: Run, more: Sequence[Expectation]) -> list[Expectation]:
    """The expectations of the scenario and additional ones, each once."""
    own = run.manifest["topology"]["scenario"].get("expect", ())
    return [*{one["text"]: one for one in (*own, *more)}.values()]


def _verdict(
    run: Run, one: Expectation, summary: Mapping[str, Any], deliveries: pa.Table
) -> dict[str, Any]:
    find = _WHOLE.get(one["quantity"])
    found = find(summary) if find else _of_deliveries(run, one, _scope(run, one, deliveries))
    ok = _judge(one, found)
    unit = "s" if one["quantity"] in TIMES else "share" if one["share"] else ""
    return {
        "expect": one["text"],
        "ok": bool(ok),
        "judged": ok is not None,
        "found": found.value,
        "unit": unit,
        "deliveries": found.of,
        "reason": found.reason,
        "not_within_s": found.not_within_s,
    }


def _judge(one: Expectation, found: Found) -> bool | None:
    """Whether it is as expected; None if that cannot be judged.

    A percentile that was not reached is at least its bound. That decides if the bound is above the limit, or is the
    limit for `<` and `>=`.
    """
    relation, limit = one["relation"], one["limit"]
    if found.value is not None:
        return RELATIONS[relation](found.value, limit)
    bound = found.not_within_s
    if bound is None or bound < limit or (bound == limit and relation not in ("<", ">=")):
        return None
    return BY_BOUND[relation]


def _scope(run: Run, one: Expectation, deliveries: pa.Table) -> pa.Table:
    """The deliveries in the expectation's scope."""
    if one["levels"]:
        low, high = one["levels"]
        level = pc.field("priority")
        deliveries = deliveries.filter((level >= low) & (level <= high))
    if one["topic"] is not None:
        deliveries = deliveries.filter(pc.field("topic") == one["topic"])
    for column, name in (("receiver", one["node"]), ("origin", one["origin"])):
        if name is not None:
            deliveries = deliveries.filter(pc.field(column).isin(_members(run, name)))
    return deliveries


def _members(run: Run, name: str) -> list[str]:
    """The node of this name, and the nodes of a group of this name."""
    nodes = run.manifest["topology"]["nodes"]
    return [node["name"] for node in nodes if name in (node["name"], node["group"])]


def _of_deliveries(run: Run, one: Expectation, scope: pa.Table) -> Found:
    if not scope.num_rows:
        return Found(None, 0, "no such delivery was expected")
    if one["quantity"] == "delay":
        return _delay(run, scope, one["statistic"])
    if one["statistic"] is not None:
        return _statistic(scope, _VALUES[one["quantity"]], one["statistic"])
    column, flag = _COUNTS[one["quantity"]]
    if column not in scope.schema.names:
        return Found(None, scope.num_rows, "the metrics are of an older version: analyze again")
    if one["quantity"] == "late":
        scope = scope.filter(pc.field("deadline_s").is_valid())
        if not scope.num_rows:
            return Found(None, 0, "these levels have no deadline")
    count = pc.sum(flag(scope[column]).cast(pa.int64())).as_py() or 0  # nulls do not count
    return Found(count / scope.num_rows if one["share"] else float(count), scope.num_rows)


def _delay(run: Run, scope: pa.Table, name: str) -> Found:
    """Percentiles are of all expected deliveries. `mean` and `max` need all of them, `min` is of those that came."""
    delays = of_table(scope, run.played[1] if run.played else None)
    expected, came = len(delays.s), np.isfinite(delays.s)
    missing = expected - int(came.sum())
    if name == "mean" and missing:
        return Found(None, expected, f"{missing} of {expected} had not arrived when the run ended")
    if name in ("mean", "min"):
        if not came.any():
            return Found(None, expected, "nothing of it was delivered")
        return Found(float(STATISTICS[name](delays.s[came])), expected - missing)
    percent = 100.0 if name == "max" else float(name.removeprefix("p"))
    found = of_delays(delays, percent)
    if found.not_within_s is None:
        return Found(found.value, expected)
    reason = not_within(found.not_within_s).replace(NARROW, " ")
    return Found(None, expected, reason, found.not_within_s)


def _statistic(scope: pa.Table, column: str, name: str) -> Found:
    values = scope.filter(pc.field("status") == "delivered")[column].drop_null().to_numpy()
    if not len(values):
        return Found(None, scope.num_rows, "nothing of it was delivered")
    value = (
        STATISTICS[name](values)
        if name in STATISTICS
        else np.percentile(values, float(name.removeprefix("p")))
    )
    return Found(float(value), len(values))


def _same(found: float, limit: float) -> bool:
    return math.isclose(found, limit, rel_tol=1e-9, abs_tol=1e-12)


_VALUES = {"delay": "delay_s", "hops": "hops"}
# Quantity -> its column, and which values of it count.
_COUNTS: dict[str, tuple[str, Callable[[pa.ChunkedArray], pa.ChunkedArray]]] = {
    "lost": ("status", lambda column: pc.equal(column, "lost")),
    "delivered": ("status", lambda column: pc.equal(column, "delivered")),
    "late": ("late", lambda column: column),
    "duplicates": ("duplicates", lambda column: column),
    "handed twice": ("handed", lambda column: pc.greater(column, 1)),
    "out of order": ("out_of_order", lambda column: column),
}


def _forwards(summary: Mapping[str, Any]) -> Found:
    per_message = (summary.get("overlay") or {}).get("copies_per_publication")
    return Found(per_message, reason=None if per_message is not None else "nothing was published")


def _overhead(summary: Mapping[str, Any]) -> Found:
    overhead = summary["overhead"]
    if not overhead["payload_bytes"]:
        return Found(None, reason="no payload was sent")
    return Found(overhead["wire_bytes"] / overhead["payload_bytes"])


def _control(summary: Mapping[str, Any]) -> Found:
    rate = (summary.get("overlay") or {}).get("control", {}).get("bytes_per_s_per_broker")
    return Found(rate, reason=None if rate is not None else "no scenario was played")


# Quantity of the whole run -> its value in the summary.
_WHOLE: dict[str, Callable[[Mapping[str, Any]], Found]] = {
    "published": lambda summary: Found(float(summary["messages"]["published"])),
    "forwards/message": _forwards,
    "overhead ratio": _overhead,
    "control bytes/s": _control,
    "retransmitted packets": lambda summary: Found(
        float(summary["overhead"]["retransmitted_packets"])
    ),
    "fidelity warnings": lambda summary: Found(float(len(summary["fidelity"]["reasons"]))),
}
QUANTITIES = (*_VALUES, *_COUNTS, *_WHOLE)
