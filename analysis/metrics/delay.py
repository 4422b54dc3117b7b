"""delay: outcome and delay of the expected deliveries, by priority."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analysis.formatting import natural
from analysis.metrics import clock_errors
from analysis.metrics.delay_parts import PARTS

SCHEMA = """
    priority int, expected long, delivered long, lost long, duplicates long,
    p50 double, p95 double, p99 double, max double, hops_mean double, hops_max int, mean double, late long,
    out_of_order long, queue_s double, transmission_s double, propagation_s double, retransmission_s double,
    delay_error_s double, delay_error_max_s double
"""


def delay(deliveries: DataFrame) -> DataFrame:
    """Counts, exact percentiles of the delay (linear between neighbours), hops, and the mean of each part of the delay.

    Lost messages have no delay, and are neither late nor out of order. `late` is null where there is no deadline.
    `delay_error_s` and `delay_error_max_s`: the median and the largest error by the clocks of the ends.
    """
    came = sf.col("status") == "delivered"
    return deliveries.groupBy("priority").agg(
        sf.count("*").alias("expected"),
        sf.sum(came.cast("long")).alias("delivered"),
        sf.sum((~came).cast("long")).alias("lost"),
        sf.sum("duplicates").alias("duplicates"),
        *(
            sf.percentile("delay_s", share).alias(name)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        ),
        sf.max("delay_s").alias("max"),
        sf.avg("hops").alias("hops_mean"),
        sf.max("hops").alias("hops_max"),
        sf.avg("delay_s").alias("mean"),
        sf.when(
            sf.max("deadline_s").isNotNull(),
            sf.sum(sf.coalesce("late", sf.lit(False)).cast("long")),
        ).alias("late"),
        sf.sum(sf.coalesce("out_of_order", sf.lit(False)).cast("long")).alias("out_of_order"),
        *(sf.avg(part).alias(part) for part in PARTS),
        sf.percentile("delay_error_s", 0.5).alias("delay_error_s"),
        sf.max("delay_error_s").alias("delay_error_max_s"),
    )


def by_receiver(deliveries: pa.Table) -> dict[str, dict[str, dict[str, Any]]]:
    """receiver -> level -> counts and exact percentiles of the delay, as the metric `delay` has them.

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
    delays: dict[tuple[str, int], list[float | None]] = {}
    errors: dict[tuple[str, int], list[float]] = {}
    uncertain = clock_errors.known(deliveries)
    names = ("receiver", "priority", "delay_s", clock_errors.COLUMN if uncertain else "delay_s")
    for receiver, priority, delay, error in zip(
        *(deliveries[name].to_pylist() for name in names), strict=True
    ):
        key = (group_of(receiver), priority)
        delays.setdefault(key, []).append(delay)
        if uncertain and delay is not None:
            errors.setdefault(key, []).append(error)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key in sorted(delays, key=lambda key: (natural(key[0]), -key[1])):
        group, priority = key
        outcome = _outcome(delays[key]) | _error(delays[key], errors.get(key))
        found.setdefault(group, {})[str(priority)] = outcome
    return found


def _error(delays: list[float | None], errors: list[float] | None) -> dict[str, Any]:
    """The errors of the percentiles; empty where they are exact."""
    if not errors or not any(errors):
        return {}
    came = np.array([delay for delay in delays if delay is not None])
    return {"error_s": clock_errors.of_statistics(came, np.array(errors), ("p50", "p95", "max"))}


def _outcome(delays: list[float | None]) -> dict[str, Any]:
    came = [delay for delay in delays if delay is not None]
    count = {"expected": len(delays), "delivered": len(came), "lost": len(delays) - len(came)}
    if not came:
        return {**count, "p50": None, "p95": None, "max": None}
    p50, p95 = (float(value) for value in np.percentile(came, (50, 95)))
    return {**count, "p50": p50, "p95": p95, "max": max(came)}
