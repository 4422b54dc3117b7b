"""Percentiles of the delays of all expected deliveries. What has not come has no delay, but it counts. Pure.

A missing delivery takes longer than every one that came: its delay is infinite. A percentile is reached if the
deliveries at its place came. Of a percentile that was not reached a bound is known: the same percentile of the values
in which each missing delivery has the time for which it was observed. The true percentile is at least the bound,
whenever the missing ones come.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array = npt.NDArray[Any]
SHARES: Mapping[str, float] = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
NOT_WITHIN = "not_within_s"  # name -> bound, of the percentiles that were not reached
OBSERVED = "observed_s"  # column of `deliveries`
MISSING = math.inf
ROUNDING = 1e-9  # of a place among the values


class Delays(NamedTuple):
    """The delays of expected deliveries."""

    s: Array  # MISSING if it has not come
    at_least_s: Array  # the delay; of a missing delivery the time for which it was observed


class Percentile(NamedTuple):
    """A percentile, or the bound of one that was not reached; both null if no delivery was expected."""

    value: float | None
    not_within_s: float | None = None


NOTHING = Delays(np.zeros(0), np.zeros(0))


def delays_of(delays: Array, observed: Array) -> Delays:
    """`delays`: nan or infinite if missing. `observed`: how long each delivery was observed, if it is missing."""
    came = np.isfinite(delays)
    return Delays(np.where(came, delays, MISSING), np.where(came, delays, np.maximum(observed, 0)))


def of_table(deliveries: pa.Table, end_ns: int | None = None) -> Delays:
    """Of rows of `deliveries`. `end_ns`: end of the observation, for metrics of earlier versions.

    Without both, nothing is known of how long they were observed: the bounds are 0.
    """
    names = deliveries.column_names
    delays = _numbers(deliveries["delay_s"], math.nan)
    if OBSERVED in names:
        observed = _numbers(deliveries[OBSERVED], 0.0)
    elif end_ns is not None and "published_ns" in names:
        observed = (end_ns - _numbers(deliveries["published_ns"], end_ns)) / 1e9
    else:
        observed = np.zeros(len(delays))
    return delays_of(delays, observed)


def _numbers(column: pa.ChunkedArray, null: float) -> Array:
    return np.asarray(pc.fill_null(column, null).to_numpy())


def together(parts: Iterable[Delays]) -> Delays:
    """The deliveries of all parts."""
    known = [*parts]
    if not known:
        return NOTHING
    return Delays(*(np.concatenate(columns) for columns in zip(*known, strict=True)))


def neighbours(count: int, percent: float) -> tuple[int, int, float]:
    """The places of a percentile among so many sorted values, and how far it is from the first to the second."""
    place = (count - 1) * (percent / 100)
    below = math.floor(place + ROUNDING)
    part = max(0.0, place - below)
    return (below, below, 0.0) if part <= ROUNDING else (below, below + 1, part)


def percentile(values: Array, percent: float) -> float | None:
    """As `numpy.percentile`, linear between neighbours; null if it was not reached. Infinite: missing."""
    came = np.isfinite(values)
    if not len(values) or neighbours(len(values), percent)[1] >= int(came.sum()):
        return None
    if not came.all():  # their order does not matter behind the place, only that they are behind it
        values = np.where(came, values, values[came].max())
    return float(np.percentile(values, percent))


def of_delays(delays: Delays, percent: float) -> Percentile:
    value = percentile(delays.s, percent)
    if value is not None or not len(delays.s):
        return Percentile(value)
    return Percentile(None, float(np.percentile(delays.at_least_s, percent)))


def summary_of(delays: Delays, names: Sequence[str] = tuple(SHARES)) -> dict[str, Any]:
    """These percentiles, null if not reached, and NOT_WITHIN."""
    found = {name: of_delays(delays, SHARES[name]) for name in names}
    return {
        **{name: one.value for name, one in found.items()},
        NOT_WITHIN: {
            name: one.not_within_s for name, one in found.items() if one.not_within_s is not None
        },
    }
