"""Judges a comparison: by how much each other run may exceed the first. Pure: a document in, verdicts out."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from analysis.formatting import both_sides

TOLERANCE = 1e-9  # for numbers that were computed in another way


class Found(NamedTuple):
    """A value to be compared with a limit, and its description; infinite if only one run reached it."""

    of: str
    value: float | None
    neither: bool = False  # neither run reached it


class Kind(NamedTuple):
    """A kind of limit; `find` returns all values of a comparison that must not exceed it."""

    about: str
    find: Callable[[Mapping[str, Any]], Iterator[Found]]


def _by_level(*names: str) -> Callable[[Mapping[str, Any]], Iterator[Found]]:
    def find(document: Mapping[str, Any]) -> Iterator[Found]:
        for run in document["ratios"]:
            for level, ratios in run["levels"].items():
                for name in names:
                    yield _ratio_of(f"{name} of level {level} in {run['run']}", ratios, name)

    return find


def _ratio_of(of: str, ratios: Mapping[str, Any], name: str) -> Found:
    """A ratio; a difference within the clock errors counts as none.

    What only the first run reached exceeds every limit, what only the other reached is below every limit.
    """
    if name in ratios.get("within_clock_error", ()):
        return Found(f"{of} (no difference that its clocks could show)", 1.0)
    if sides := ratios.get("not_reached", {}).get(name):
        first, other = sides["first"], sides["other"]
        of = f"{of}: {both_sides(sides)}"
        if first["value"] is None and other["value"] is None:
            return Found(of, None, neither=True)
        return Found(of, math.inf if other["value"] is None else -math.inf)
    return Found(of, ratios[name])


def _ratio(name: str) -> Callable[[Mapping[str, Any]], Iterator[Found]]:
    def find(document: Mapping[str, Any]) -> Iterator[Found]:
        for run in document["ratios"]:
            yield Found(run["run"], run[name])

    return find


def _count(name: str) -> Callable[[Mapping[str, Any]], Iterator[Found]]:
    def find(document: Mapping[str, Any]) -> Iterator[Found]:
        for run in document["runs"]:
            yield Found(run["run"], run[name])

    return find


def _differing(name: str) -> Callable[[Mapping[str, Any]], Iterator[Found]]:
    def find(document: Mapping[str, Any]) -> Iterator[Found]:
        for run in document["pairs"]:
            count = run.get("pairs")
            yield Found(run["run"], 1 - run[name] / count if count else None)

    return find


KINDS = {
    "delay": Kind(
        "median and 95 % of the delay of each level, of the first's", _by_level("p50", "p95")
    ),
    **{
        name: Kind(f"{name} of the delay of each level, of the first's", _by_level(name))
        for name in ("p50", "p95", "p99", "max")
    },
    "hops": Kind("mean hops of each level, of the first's", _by_level("hops_mean")),
    "copies": Kind("copies per publication, of the first's", _ratio("copies_per_publication")),
    "control": Kind("control bytes/s a broker, of the first's", _ratio("control_bytes_per_s")),
    "overhead": Kind("bytes on links for a byte of payload, of the first's", _ratio("overhead")),
    "lost": Kind("deliveries lost in each run", _count("lost")),
    "handed-twice": Kind(
        "deliveries handed to an application twice, in each run", _count("handed_twice")
    ),
    "other-hops": Kind("share of the same messages with other hop counts", _differing("same_hops")),
    "other-paths": Kind("share of the same messages on other paths", _differing("same_paths")),
}


def judge(document: Mapping[str, Any], limits: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    """For each limit the worst value; `found` is null if there is nothing to compare, or only one run reached it.

    `not_judged` names what neither run reached, and `judged` says whether there was anything else.
    """
    verdicts = []
    for name, at_most in limits:
        found = [*KINDS[name].find(document)]
        known = [one for one in found if one.value is not None]
        worst = max(known, key=lambda one: one.value or 0.0, default=None)
        verdicts.append(
            {
                "limit": name,
                "at_most": at_most,
                "found": worst.value if worst and math.isfinite(worst.value or 0.0) else None,
                "of": worst.of if worst else None,
                "ok": worst is not None and (worst.value or 0.0) <= at_most + TOLERANCE,
                "judged": worst is not None,
                "not_judged": [one.of for one in found if one.neither],
            }
        )
    return verdicts
