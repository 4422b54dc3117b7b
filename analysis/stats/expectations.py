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

from analysis.inputs.results import read_summary
from analysis.inputs.run_folder import Run

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


class Found(NamedTuple):
    """The value of a quantity, or why there is none; `of`: the number of deliveries, if it concerns deliveries."""

    value: float | None
    of: int | None = None
    reason: str | None = None


def judged(
    run: Run, summary: Mapping[str, Any], deliveries: pa.Table, more: Sequence[Expectation] = ()
) -> list[dict[str, Any]]:
    """Judge the expectations of the run's scenario, and then `more`: what was found, and whether it is as expected."""
    return [_verdict(run, one, summary, deliveries) for one in _all_expected(run, more)]


def judge_again(run: Run, more: Sequence[Expectation] = ()) -> dict[str, Any]:
    """The summary of an analysed run with new verdicts; earlier ones stay."""
    summary = read_summary(run)
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
    found = find(summary) if find else _of_deliveries(one, _scope(run, one, deliveries))
    ok = found.value is not None and RELATIONS[one["relation"]](found.value, one["limit"])
    unit = "s" if one["quantity"] in TIMES else "share" if one["share"] else ""
    return {
        "expect": one["text"],
        "ok": ok,
        "found": found.value,
        "unit": unit,
        "deliveries": found.of,
        "reason": found.reason,
    }


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


def _of_deliveries(one: Expectation, scope: pa.Table) -> Found:
    if not scope.num_rows:
        return Found(None, 0, "no such delivery was expected")
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
