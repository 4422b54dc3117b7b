"""Effect sizes between two sides of a comparison, with intervals. Pure: delays in, intervals out."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.formatting import both_sides
from analysis.stats.bootstrap import (
    CONFIDENCE,
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
Levels = Mapping[int, Array]  # of one run: the delay of each expected delivery, infinite if missing
Errors = Mapping[
    int, Mapping[str, float]
]  # of one side: the clock error of each statistic of a level
UNKNOWN = Interval(None, None, None)
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

    A ratio is null if a side did not reach the statistic; `reached` says which side did, and `surely` whether
    the other side is surely longer. An end of an interval that was not reached is null.
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
    result: dict[str, dict[str, Any]] = {
        name: _ratio(before[name], after[name]) for name in STATISTICS
    }
    if any(errors):
        for name in STATISTICS:
            one_off, two_off = (side.get(name, 0.0) for side in errors)
            result[name] = _with_clocks(before[name], after[name], one_off, two_off)
    result[LOST] = interval(after[LOST] - before[LOST])._asdict()
    result["cliffs_delta"] = interval(cliffs_delta(one, two, mine, theirs))._asdict()
    return result


def _ratio(before: Array, after: Array) -> dict[str, Any]:
    """The ratio with its interval, or which side reached the statistic."""
    low, high = _ratios(before, after, 0.0), _ratios(before, after, np.inf)
    reached = [bool(np.isfinite(side[0])) for side in (before, after)]
    if all(reached) or np.isnan(before[0]) or np.isnan(after[0]):
        return Interval(interval(low).value, interval(low).low, interval(high).high)._asdict()
    drawn = low[1:][~np.isnan(low[1:])]
    least = np.quantile(drawn, (1 - CONFIDENCE) / 2, method="lower") if len(drawn) else 0.0
    return {**UNKNOWN._asdict(), "reached": reached, "surely": bool(least > 1)}


def _ratios(before: Array, after: Array, unknown: float) -> Array:
    """Of each resample; `unknown` where neither side reached it, nan where there is none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = after / before
    return np.where(np.isinf(before) & np.isinf(after), unknown, ratios)


def _with_clocks(before: Array, after: Array, one_off: float, two_off: float) -> dict[str, Any]:
    """A ratio whose interval includes the clock errors; null if the first may be 0."""
    if not (np.isfinite(before[0]) and np.isfinite(after[0])):
        return {**_ratio(before, after), "within_clock_error": False}
    apart = abs(after[0] - before[0])
    within = bool(apart <= one_off + two_off)
    if not before[0] > one_off:
        return {**UNKNOWN._asdict(), "within_clock_error": within}
    ratio = interval(_ratios(before, after, 0.0))
    low = interval(_ratios(before + one_off, np.maximum(after - two_off, 0.0), 0.0)).low
    possible = before > one_off
    high = interval(_ratios((before - one_off)[possible], (after + two_off)[possible], np.inf)).high
    return {"value": ratio.value, "low": low, "high": high, "within_clock_error": within}


class More(NamedTuple):
    """By how much the other side exceeds the first; 0.1 is 10 % of the first's, or of all deliveries if lost.

    Infinite: one side did not reach it, or one end of the interval is not known.
    """

    of: str
    value: float
    low: float
    high: float
    reached: Sequence[bool] = (True, True)


def judge_worse(
    document: Mapping[str, Any], asked: Iterable[tuple[str, float]]
) -> list[dict[str, Any]]:
    """For each metric the worst effect; `found` is null if there is nothing to compare, or a side did not reach it.

    A metric fails if it exceeds the limit and its interval does not include zero. What the first side reached and
    the other did not is worse by more than any limit, if it is surely longer; what only the other reached is better.
    `not_judged` names what neither side reached, and `judged` says whether there was anything else.
    """
    verdicts = []
    for name, by in asked:
        known: list[More] = []
        neither: list[More] = []
        for one in _more(document, METRICS[name]):
            (known if any(one.reached) else neither).append(one)
        surely = [one for one in known if one.low > 0]
        worst = max(surely or known, key=lambda one: one.value, default=None)
        verdicts.append(
            {
                "metric": name,
                "worse_than": by,
                "found": _finite(worst.value) if worst else None,
                "low": _finite(worst.low) if worst else None,
                "high": _finite(worst.high) if worst else None,
                "of": worst.of if worst else None,
                "ok": worst is not None and (worst.value <= by or worst.low <= 0),
                "reached": list(worst.reached) if worst else None,
                "judged": worst is not None,
                "not_judged": [one.of for one in neither],
            }
        )
    return verdicts


def _came(all_: bool) -> str:
    return "all came" if all_ else "not all came"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _more(document: Mapping[str, Any], names: Iterable[str]) -> Iterator[More]:
    ratios = {one["run"]: one["levels"] for one in document.get("ratios", ())}
    for side in document["effects"]:
        for level, result in side["levels"].items():
            bounds = ratios.get(side["run"], {}).get(level, {}).get("not_reached", {})
            for name in names:
                found, of = result[name], f"{name} of level {level} in {side['run']}"
                if found["value"] is not None:
                    none = 0.0 if name == LOST else 1.0
                    low = -math.inf if found["low"] is None else found["low"] - none
                    high = math.inf if found["high"] is None else found["high"] - none
                    yield More(of, found["value"] - none, low, high)
                elif "reached" in found:
                    first, other = found["reached"]
                    if name in bounds:
                        of = f"{of}: {both_sides(bounds[name])}"
                    elif name == "mean":
                        of = f"{of}: {_came(other)}; the first: {_came(first)}"
                    longer = math.inf if first and not other else -math.inf
                    low = longer if found["surely"] else -math.inf
                    yield More(of, longer, low, longer, (first, other))
