"""How far chance may have moved a number: percentile bootstrap over trials. Pure, seeded, on whole columns.

What is drawn anew are trials (whole runs), each with all of its messages: messages of one run wait behind each other,
so they are no independent draws. Where there is only one trial its messages are drawn, in at most 2,000 groups. That
tells how much the number depends on single messages, and nothing of how another run would have gone.
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
    """A number, and between which bounds it would lie in 95 of 100 repetitions; null where nothing came."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Sample:
    """The deliveries of one level in all trials: delays of those that came, sorted, and how many were expected."""

    delays: Array  # sorted
    cluster: Array  # of each delay: what is drawn together
    expected: Array  # of each cluster
    trials: int

    @property
    def clusters(self) -> int:
        return len(self.expected)


def sample(trials: Sequence[Array]) -> Sample:
    """From the delays of each trial, nan where a message was lost."""
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
    """How often each cluster was drawn, in each resample; the first one is the sample itself."""
    own = np.ones((1, clusters), np.int64)
    if not clusters:
        return np.repeat(own, resamples + 1, axis=0)
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples)
    return np.concatenate((own, drawn))


def statistics(one: Sample, counts: Array) -> dict[str, Array]:
    """STATISTICS and LOST of each resample; nan where nothing came."""
    distinct, back = np.unique(counts, axis=0, return_inverse=True)  # few trials, few ways to draw
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
    """Of the values, each as often as drawn; linear between neighbours, as `numpy.percentile` does it."""
    place = (total - 1) * share
    below = int(place)
    low, high = np.searchsorted(cumulated, (below, min(below + 1, total - 1)), "right")
    return float(values[low] + (values[high] - values[low]) * (place - below))


def cliffs_delta(first: Sample, other: Sample, one: Array, two: Array) -> Array:
    """Of each pair of resamples: how much likelier a delay of the other is longer than one of the first, -1 to 1."""
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
    """From the number itself and those of the resamples behind it."""
    drawn = values[1:][np.isfinite(values[1:])]
    if not np.isfinite(values[0]) or not len(drawn):
        return Interval(None, None, None)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return Interval(float(values[0]), float(low), float(high))


def intervals(trials: Sequence[Array], seed: int = SEED) -> dict[str, Interval]:
    """Of STATISTICS and LOST."""
    one = sample(trials)
    counts = draws(one.clusters, np.random.default_rng(seed))
    return {name: interval(values) for name, values in statistics(one, counts).items()}
