"""Where a hazard is watched, what it does at each of these sites step by step, and the levels that follow."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count, takewhile

from testbed.earth import Place, distance_m
from testbed.hazards import levels
from testbed.hazards.levels import Course
from testbed.hazards.model import Hazard

MOST_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Site:
    """One of them; without a place it is a sensor of its own."""

    name: str
    at: Place | None
    sensors: tuple[str, ...]


def sites_of(names: Iterable[str], places: Mapping[str, Place | None]) -> tuple[Site, ...]:
    """The sites of these sensors, in the order of their first sensors; each is called after its first."""
    found: dict[Place | str, list[str]] = {}
    for name in names:
        found.setdefault(places[name] or name, []).append(name)
    return tuple(
        Site(sensors[0], None if isinstance(place, str) else place, tuple(sensors))
        for place, sensors in found.items()
    )


def draw_site_value(site: Site, usual: float, spread: float, seed: int) -> float:
    """A value of the site's own around the usual one: it follows from the seed and the place, so from no other site."""
    where = site.name if site.at is None else f"{site.at[0]!r},{site.at[1]!r}"
    deviation = random.Random(f"{seed}/hazard/site/{where}").gauss(0.0, 1.0)
    return usual * (1.0 + spread * max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, deviation)))


def within(site: Site, other: Site, reach_m: float) -> bool:
    """Whether two sites are so near each other; a site without a place is near nobody."""
    if site.at is None or other.at is None:
        return False
    return distance_m(site.at, other.at) <= reach_m


# What a hazard does at each site, step by step, and the levels that follow from it.


@dataclass(frozen=True, slots=True)
class SiteHistory:
    """One site: what it got (rain), how it stood (an index), when its level changed, when it failed."""

    site: Site
    threshold: float  # in the index's unit: that of level 4
    rain_mm_h: tuple[float, ...]  # in each step; of an earthquake none
    index: tuple[float, ...]  # at the beginning of each step
    course: Course
    failed_s: float | None = None
    noticed_s: float | None = None  # when an earthquake's first wave comes
    moved_mm: float | None = None  # how far a slope had moved, at its failure or at the end


def moments(duration_s: float, step_s: float) -> list[float]:
    """The beginnings of all steps; the scenario's end is excluded."""
    return list(takewhile(lambda at_s: at_s < duration_s, (n * step_s for n in count())))


def own_course(hazard: Hazard, shares: list[tuple[float, float]], failed_s: float | None) -> Course:
    """The levels of one site by itself; `shares`: (second, index as a share of the threshold). A failure is level 5."""
    slack = hazard.hysteresis
    below = levels.course(shares, hazard.bounds[: levels.EVACUATE - 1], slack)
    return below if failed_s is None else levels.at_least(below, failed_s, levels.HIGHEST)


def with_alarms(hazard: Hazard, histories: tuple[SiteHistory, ...]) -> tuple[SiteHistory, ...]:
    """The same stories after everybody has heard of the failures: who is near is raised, from then on."""
    reaches = ((hazard.near_m, levels.EVACUATE), (hazard.region_m, levels.ELDERLY))
    failed = [history for history in histories if history.failed_s is not None]
    return tuple(_with_alarms(history, failed, reaches) for history in histories)


def _with_alarms(
    history: SiteHistory, failed: list[SiteHistory], reaches: tuple[tuple[float, int], ...]
) -> SiteHistory:
    course = history.course
    for reach_m, level in reaches:
        failures_s = [
            other.failed_s
            for other in failed
            if other.failed_s is not None
            and other.site != history.site
            and within(history.site, other.site, reach_m)
        ]
        if failures_s:
            course = levels.at_least(course, min(failures_s), level)
    return replace(history, course=course)
