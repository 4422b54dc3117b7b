"""Effect sizes between two sides of a comparison, with intervals. Pure: delays in, intervals out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.stats.bootstrap import (
    LOST,
    SEED,
    STATISTICS,
    Interval,
    cliffs_delta,
    draws,
    interval,
    sample,
    statistics,
)

Array = npt.NDArray[Any]
Levels = Mapping[int, Array]  # of one run: the delay of each expected delivery, nan if lost
Errors = Mapping[
    int, Mapping[str, float]
]  # of one side: the clock error of each statistic of a level
# The names that --worse-than accepts, and the effects that they mean.
METRICS = {
    "delay": ("p50", "p95"),
    **{name: (name,) for name in STATISTICS},
    "lost": (LOST,),
}


def effects(
    first: Sequence[Levels], other: Sequence[Levels], errors: Sequence[Errors] = ({}, {})
) -> dict[str, Any]:
    """By level: ratios of the delay's statistics, the difference of the lost shares, and
    Cliff's delta, each with its interval. Trials are resampled, or messages if a side has only one trial.

    `errors`: clock errors of both sides. They widen the intervals of ratios, and `within_clock_error`
    says for each ratio whether the clocks alone may explain it.
    """
    both = {level for run in first for level in run} & {level for run in other for level in run}
    return {
        "trials": [len(first), len(other)],
        "drawn": ["trials" if len(runs) > 1 else "messages" for runs in (first, other)],
        "levels": {
            str(level): _of_level(
                _trials(first, level),
                _trials(other, level),
                [side.get(level, {}) for side in errors],
            )
            for level in sorted(both, reverse=True)
        },
    }


def _trials(runs: Sequence[Levels], level: int) -> list[Array]:
    return [run.get(level, np.zeros(0)) for run in runs]


def _of_level(
    first: list[Array], other: list[Array], errors: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    rng = np.random.default_rng(SEED)
    one, two = sample(first), sample(other)
    mine, theirs = draws(one.clusters, rng), draws(two.clusters, rng)
    before, after = statistics(one, mine), statistics(two, theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {name: interval(after[name] / before[name]) for name in STATISTICS}
    found[LOST] = interval(after[LOST] - before[LOST])
    found["cliffs_delta"] = interval(cliffs_delta(one, two, mine, theirs))
    result = {name: one._asdict() for name, one in found.items()}
    if any(errors):
        for name in STATISTICS:
            one_off, two_off = (side.get(name, 0.0) for side in errors)
            result[name] = _with_clocks(before[name], after[name], one_off, two_off)
    return result


def _with_clocks(before: Array, after: Array, one_off: float, two_off: float) -> dict[str, Any]:
    """A ratio whose interval includes the clock errors; null if the first may be 0."""
    apart = abs(after[0] - before[0])
    within = bool(apart <= one_off + two_off)
    if not before[0] > one_off:
        return {**Interval(None, None, None)._asdict(), "within_clock_error": within}
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = interval(after / before)
        low = interval(np.maximum(after - two_off, 0.0) / (before + one_off)).low
        possible = before > one_off
        high = interval((after + two_off)[possible] / (before - one_off)[possible]).high
    return {"value": ratio.value, "low": low, "high": high, "within_clock_error": within}


class More(NamedTuple):
    """By how much the other side exceeds the first; 0.1 is 10 % of the first's, or of all deliveries if lost."""

    of: str
    value: float
    low: float
    high: float


def judge_worse(
    document: Mapping[str, Any], asked: Iterable[tuple[str, float]]
) -> list[dict[str, Any]]:
    """For each metric the worst effect; `found` is null if there is nothing to compare.

    A metric fails if it exceeds the limit and its interval does not include zero.
    """
    verdicts = []
    for name, by in asked:
        known = [*_more(document, METRICS[name])]
        surely = [one for one in known if one.low > 0]
        worst = max(surely or known, key=lambda one: one.value, default=None)
        verdicts.append(
            {
                "metric": name,
                "worse_than": by,
                "found": worst.value if worst else None,
                "low": worst.low if worst else None,
                "high": worst.high if worst else None,
                "of": worst.of if worst else None,
                "ok": worst is not None and (worst.value <= by or worst.low <= 0),
            }
        )
    return verdicts


def _more(document: Mapping[str, Any], names: Iterable[str]) -> Iterator[More]:
    for side in document["effects"]:
        for level, result in side["levels"].items():
            for name in names:
                found = result[name]
                if found["value"] is not None:
                    none = 0.0 if name == LOST else 1.0
                    values = [found[key] - none for key in ("value", "low", "high")]
                    yield More(f"{name} of level {level} in {side['run']}", *values)
