"""Confidence intervals by percentile bootstrap over trials. Pure, seeded, on whole columns.

Trials (whole runs) are resampled, each with all of its messages: messages of one run wait behind each other, so they
are not independent. With only one trial its messages are resampled, in at most 2,000 groups. That shows how much the
number depends on single messages, and nothing about other runs.

What has not come has no delay, but it counts: its delay is infinite, and so is each statistic that was not reached.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.metrics.percentiles import MISSING, SHARES, neighbours, percentile

Array = npt.NDArray[Any]
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 20160623
QUANTILES = {name: SHARES[name] for name in ("p50", "p95", "p99")}
STATISTICS = (*QUANTILES, "mean")
LOST = "lost_share"
MOST_GROUPS = 2_000  # of the messages of a single trial


class Interval(NamedTuple):
    """A number and its 95 % interval; null where it was not reached, and if nothing was expected."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Sample:
    """The deliveries of one level in all trials: sorted delays of those made, and how many were expected."""

    delays: Array  # sorted
    cluster: Array  # of each delay: the unit that is resampled
    expected: Array  # of each cluster
    trials: int

    @property
    def clusters(self) -> int:
        return len(self.expected)


def sample(trials: Sequence[Array]) -> Sample:
    """Build a sample from the delays of each trial, nan or infinite if missing."""
    if len(trials) == 1:
        (values,) = trials
        groups = max(1, min(MOST_GROUPS, len(values)))
        numbers = np.arange(len(values)) % groups
        expected: Array = np.bincount(numbers, minlength=groups)
    else:
        numbers = np.repeat(np.arange(len(trials)), [len(trial) for trial in trials])
        expected = np.array([len(trial) for trial in trials], np.int64)
        values = np.concatenate(trials) if trials else np.zeros(0)
    order = np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]
    return Sample(values[order], numbers[order], expected, len(trials))


def draws(clusters: int, rng: np.random.Generator, resamples: int = RESAMPLES) -> Array:
    """How often each cluster is drawn in each resample; the first row is the sample itself."""
    own = np.ones((1, clusters), np.int64)
    if not clusters:
        return np.repeat(own, resamples + 1, axis=0)
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples)
    return np.concatenate((own, drawn))


def statistics(one: Sample, counts: Array) -> dict[str, Array]:
    """STATISTICS and LOST of each resample: infinite if not reached, nan if nothing was expected.

    The mean is that of all expected deliveries, so it is reached if all of them came.
    """
    distinct, back = np.unique(
        counts, axis=0, return_inverse=True
    )  # few trials have few distinct resamples
    came = distinct @ np.bincount(one.cluster, minlength=one.clusters)
    expected = distinct @ one.expected
    found = {name: np.full(len(distinct), np.nan) for name in QUANTILES}
    for row, total in enumerate(expected.tolist()):
        if total:
            upto = np.cumsum(np.take(distinct[row], one.cluster))
            for name, percent in QUANTILES.items():
                found[name][row] = _quantile(one.delays, upto, total, percent)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = distinct @ np.bincount(one.cluster, one.delays, one.clusters) / expected
        found["mean"] = np.where(came < expected, MISSING, mean)
        found[LOST] = 1 - came / expected
    return {name: values[back] for name, values in found.items()}


def _quantile(values: Array, cumulated: Array, total: int, percent: float) -> float:
    """A weighted quantile of so many deliveries, of which the last ones are missing."""
    below, above, part = neighbours(total, percent)
    if not len(cumulated) or above >= cumulated[-1]:
        return MISSING
    low, high = np.searchsorted(cumulated, (below, above), "right")
    return float(values[low] + (values[high] - values[low]) * part)


def cliffs_delta(first: Sample, other: Sample, one: Array, two: Array) -> Array:
    """Cliff's delta of each pair of resamples, -1 to 1: positive if delays of the other are longer.

    A missing delivery takes longer than every one that came, and as long as another missing one.
    """
    less = np.searchsorted(first.delays, other.delays, "left")
    not_more = np.searchsorted(first.delays, other.delays, "right")
    deltas = np.full(len(one), np.nan)
    for row, (mine, theirs) in enumerate(zip(one, two, strict=True)):
        upto = np.concatenate(([0], np.cumsum(np.take(mine, first.cluster))))
        weights = np.take(theirs, other.cluster)
        came, came_other = int(upto[-1]), int(weights.sum())
        all_, all_other = int(mine @ first.expected), int(theirs @ other.expected)
        if all_ and all_other:
            longer = np.take(upto, less) + np.take(upto, not_more) - upto[-1]
            endless = came * (all_other - came_other) - (all_ - came) * came_other
            deltas[row] = (longer @ weights + endless) / (all_ * all_other)
    return deltas


def interval(values: Array, confidence: float = CONFIDENCE) -> Interval:
    """The interval from the statistic of the sample (first) and of the resamples; an infinite end is null."""
    drawn = values[1:][~np.isnan(values[1:])]
    if np.isnan(values[0]) or not len(drawn):
        return Interval(None, None, None)
    tail = 100 * (1 - confidence) / 2
    value = float(values[0]) if np.isfinite(values[0]) else None
    return Interval(value, percentile(drawn, tail), percentile(drawn, 100 - tail))


def intervals(trials: Sequence[Array], seed: int = SEED) -> dict[str, Interval]:
    """The intervals of STATISTICS and LOST."""
    one = sample(trials)
    counts = draws(one.clusters, np.random.default_rng(seed))
    return {name: interval(values) for name, values in statistics(one, counts).items()}
