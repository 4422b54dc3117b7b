"""delay: outcome and delay of the expected deliveries, by priority."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.formatting import natural
from analysis.metrics import clock_errors, percentiles
from analysis.metrics.delay_parts import PARTS
from analysis.metrics.percentiles import NOT_WITHIN, SHARES, Delays
from analysis.metrics.tables import schema

SCHEMA = schema("""
    priority int, expected long, delivered long, lost long, duplicates long,
    p50 double, p95 double, p99 double, max double, hops_mean double, hops_max int, mean double, late long,
    out_of_order long, queue_s double, transmission_s double, propagation_s double, retransmission_s double,
    delay_error_s double, delay_error_max_s double,
    p50_not_within_s double, p95_not_within_s double, p99_not_within_s double, max_not_within_s double
""")
ROW = "a level"
COLUMNS = {
    "expected": "deliveries that should be made",
    "delivered": "deliveries that were made",
    "lost": "deliveries that were not made",
    "duplicates": "further complete copies",
    "p50": "median of the delay over all expected deliveries, in s; null if it was not reached",
    "p95": "95th percentile, in s",
    "p99": "99th percentile, in s",
    "max": "longest delay, in s",
    "hops_mean": "mean of the hops",
    "hops_max": "most hops",
    "mean": "mean delay of the deliveries that were made, in s",
    "late": "deliveries after their deadline; null without one",
    "out_of_order": "deliveries that a later publication overtook",
    "queue_s": "mean part of the delay: queues",
    "transmission_s": "mean part of the delay: bytes on otherwise idle links",
    "propagation_s": "mean part of the delay: delays that the links are set to",
    "retransmission_s": "mean part of the delay: packets that were lost and sent again",
    "delay_error_s": "median error by the clocks",
    "delay_error_max_s": "largest error by the clocks",
    "p50_not_within_s": "if `p50` was not reached: it is longer than this",
    "p95_not_within_s": "if `p95` was not reached: it is longer than this",
    "p99_not_within_s": "if `p99` was not reached: it is longer than this",
    "max_not_within_s": "if not all came: the longest delay is longer than this",
}


def delay(deliveries: pa.Table) -> pa.Table:
    """Counts, percentiles of the delay, hops, and the mean of each part of the delay; the most urgent level first.

    Percentiles are over all expected deliveries. One that was not reached is null, and `p50_not_within_s`, ... is its
    bound. All other numbers are of the deliveries that were made: `mean` is the sum of its parts by cause.
    Lost messages are neither late nor out of order. `late` is null where there is no deadline.
    `delay_error_s` and `delay_error_max_s`: the median and the largest error by the clocks of the ends.
    """
    levels = sorted(set(deliveries["priority"].to_pylist()), reverse=True)
    rows = [_row(level, deliveries.filter(pc.field("priority") == level)) for level in levels]
    return pa.Table.from_pylist(rows, SCHEMA)


def _row(level: int, deliveries: pa.Table) -> dict[str, Any]:
    delivered = _sum(pc.equal(deliveries["status"], "delivered"))
    found = percentiles.summary_of(percentiles.of_table(deliveries))
    errors = deliveries[clock_errors.COLUMN].drop_null().to_numpy()
    dated = deliveries["deadline_s"].null_count < deliveries.num_rows
    return {
        "priority": level,
        "expected": deliveries.num_rows,
        "delivered": delivered,
        "lost": deliveries.num_rows - delivered,
        "duplicates": _sum(deliveries["duplicates"]),
        **{name: found[name] for name in SHARES},
        **{f"{name}_{NOT_WITHIN}": bound for name, bound in found[NOT_WITHIN].items()},
        "hops_mean": pc.mean(deliveries["hops"]).as_py(),
        "hops_max": pc.max(deliveries["hops"]).as_py(),
        "mean": pc.mean(deliveries["delay_s"]).as_py(),
        "late": _sum(deliveries["late"]) if dated else None,
        "out_of_order": _sum(deliveries["out_of_order"]),
        **{part: pc.mean(deliveries[part]).as_py() for part in PARTS},
        "delay_error_s": float(np.median(errors)) if len(errors) else None,
        "delay_error_max_s": float(errors.max()) if len(errors) else None,
    }


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)


RECEIVED = ("p50", "p95", "max")  # percentiles of a receiver, and of a method


def by_receiver(deliveries: pa.Table) -> dict[str, dict[str, dict[str, Any]]]:
    """receiver -> level -> counts and percentiles of the delay, as the metric `delay` has them.

    `error_s`: the errors of these, where clocks differ.
    """
    return _grouped(deliveries, lambda receiver: receiver)


def by_method(
    deliveries: pa.Table, methods: Mapping[str, str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """The same by the delivery method of the receiver's link, from `methods`."""
    return _grouped(deliveries, lambda receiver: methods[receiver])


def _grouped(
    deliveries: pa.Table, group_of: Callable[[str], str]
) -> dict[str, dict[str, dict[str, Any]]]:
    delays, errors = percentiles.of_table(deliveries), clock_errors.of_table(deliveries)
    places: dict[tuple[str, int], list[int]] = {}
    for place, (receiver, priority) in enumerate(
        zip(*(deliveries[name].to_pylist() for name in ("receiver", "priority")), strict=True)
    ):
        places.setdefault((group_of(receiver), priority), []).append(place)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key in sorted(places, key=lambda key: (natural(key[0]), -key[1])):
        group, priority = key
        mine = Delays(*(column[places[key]] for column in delays))
        found.setdefault(group, {})[str(priority)] = outcome(mine, errors[places[key]], RECEIVED)
    return found


def outcome(delays: Delays, errors: clock_errors.Array, names: Sequence[str]) -> dict[str, Any]:
    """Counts, these percentiles, and `error_s`: their errors, if they are not exact."""
    expected, delivered = len(delays.s), int(np.isfinite(delays.s).sum())
    found = {
        "expected": expected,
        "delivered": delivered,
        "lost": expected - delivered,
        **percentiles.summary_of(delays, names),
    }
    if not errors.any():
        return found
    return {**found, "error_s": clock_errors.of_statistics(delays.s, errors, names)}
