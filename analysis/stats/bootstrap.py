"""Confidence intervals by percentile bootstrap over trials. Pure, seeded, on whole columns.

Trials (whole runs) are resampled, each with all of its messages: messages of one run wait behind each other, so they
are not independent. With only one trial its messages are resampled, in at most 2,000 groups. That shows how much the
number depends on single messages, and nothing about other runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 20160623
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
STATISTICS = (*QUANTILES, "mean")
LOST = "lost_share"
MOST_GROUPS = 2_000  # of the messages of a single trial


class Interval(NamedTuple):
    """A number and its 95 % interval; null if nothing was delivered."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Sample:
    """The deliveries of one level in all trials: sorted delays, and how many were expected."""

    delays: Array  # sorted
    cluster: Array  # of each delay: the unit that is resampled
    expected: Array  # of each cluster
    trials: int

    @property
    def clusters(self) -> int:
        return len(self.expected)


def sample(trials: Sequence[Array]) -> Sample:
    """Build a sample from the delays of each trial, nan if lost."""
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
    """STATISTICS and LOST of each resample; nan if nothing was delivered."""
    distinct, back = np.unique(
        counts, axis=0, return_inverse=True
    )  # few trials have few distinct resamples
    came = distinct @ np.bincount(one.cluster, minlength=one.clusters)
    found = {name: np.full(len(distinct), np.nan) for name in QUANTILES}
    for row, total in enumerate(came.tolist()):
        if total:
            upto = np.cumsum(np.take(distinct[row], one.cluster))
            for name, share in QUANTILES.items():
                found[name][row] = _quantile(one.delays, upto, total, share)
    with np.errstate(invalid="ignore", divide="ignore"):
        found["mean"] = distinct @ np.bincount(one.cluster, one.delays, one.clusters) / came
        found[LOST] = 1 - came / (distinct @ one.expected)
    return {name: values[back] for name, values in found.items()}


def _quantile(values: Array, cumulated: Array, total: int, share: float) -> float:
    """A weighted quantile; linear between neighbours, as `numpy.percentile`."""
    place = (total - 1) * share
    below = int(place)
    low, high = np.searchsorted(cumulated, (below, min(below + 1, total - 1)), "right")
    return float(values[low] + (values[high] - values[low]) * (place - below))


def cliffs_delta(first: Sample, other: Sample, one: Array, two: Array) -> Array:
    """Cliff's delta of each pair of resamples, -1 to 1: positive if delays of the other are longer."""
    less = np.searchsorted(first.delays, other.delays, "left")
    not_more = np.searchsorted(first.delays, other.delays, "right")
    deltas = np.full(len(one), np.nan)
    for row, (mine, theirs) in enumerate(zip(one, two, strict=True)):
        upto = np.concatenate(([0], np.cumsum(np.take(mine, first.cluster))))
        weights = np.take(theirs, other.cluster)
        pairs = int(upto[-1]) * int(weights.sum())
        if pairs:
            longer = np.take(upto, less) + np.take(upto, not_more) - upto[-1]
            deltas[row] = (longer @ weights) / pairs
    return deltas


def interval(values: Array, confidence: float = CONFIDENCE) -> Interval:
    """The interval from the statistic of the sample (first) and of the resamples."""
    drawn = values[1:][np.isfinite(values[1:])]
    if not np.isfinite(values[0]) or not len(drawn):
        return Interval(None, None, None)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return Interval(float(values[0]), float(low), float(high))


def intervals(trials: Sequence[Array], seed: int = SEED) -> dict[str, Interval]:
    """The intervals of STATISTICS and LOST."""
    one = sample(trials)
    counts = draws(one.clusters, np.random.default_rng(seed))
    return {name: interval(values) for name, values in statistics(one, counts).items()}
