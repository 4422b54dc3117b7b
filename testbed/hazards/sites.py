"""The sites of a hazard, their histories step by step, and the levels that follow."""

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
    """The sensors at one place; a sensor without a place is a site of its own."""

    name: str
    at: Place | None
    sensors: tuple[str, ...]


def sites_of(names: Iterable[str], places: Mapping[str, Place | None]) -> tuple[Site, ...]:
    """The sites of these sensors, in the order of their first sensors; each has the name of its first sensor."""
    found: dict[Place | str, list[str]] = {}
    for name in names:
        found.setdefault(places[name] or name, []).append(name)
    return tuple(
        Site(sensors[0], None if isinstance(place, str) else place, tuple(sensors))
        for place, sensors in found.items()
    )


def draw_site_value(site: Site, usual: float, spread: float, seed: int) -> float:
    """Draw the site's own value around the usual one. It depends on the seed and the place, not on other sites."""
    where = site.name if site.at is None else f"{site.at[0]!r},{site.at[1]!r}"
    deviation = random.Random(f"{seed}/hazard/site/{where}").gauss(0.0, 1.0)
    return usual * (1.0 + spread * max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, deviation)))


def within(site: Site, other: Site, reach_m: float) -> bool:
    """Whether the distance of two sites is at most `reach_m`; a site without a place is near no other."""
    if site.at is None or other.at is None:
        return False
    return distance_m(site.at, other.at) <= reach_m


@dataclass(frozen=True, slots=True)
class SiteHistory:
    """The history of one site: rain, index, changes of its level, and its failure."""

    site: Site
    threshold: float  # of level 4, in the unit of the index
    rain_mm_h: tuple[float, ...]  # in each step; empty for an earthquake
    index: tuple[float, ...]  # at the beginning of each step
    course: Course
    failed_s: float | None = None
    noticed_s: float | None = None  # arrival of an earthquake's P wave
    moved_mm: float | None = None  # movement of a slope until its failure or the end


def moments(duration_s: float, step_s: float) -> list[float]:
    """The beginnings of all steps; the scenario's end is excluded."""
    return list(takewhile(lambda at_s: at_s < duration_s, (n * step_s for n in count())))


def own_course(hazard: Hazard, shares: list[tuple[float, float]], failed_s: float | None) -> Course:
    """The levels of one site by itself; `shares`: (second, index as a share of the threshold). A failure is level 5."""
    slack = hazard.hysteresis
    below = levels.course(shares, hazard.bounds[: levels.EVACUATE - 1], slack)
    return below if failed_s is None else levels.at_least(below, failed_s, levels.HIGHEST)


def with_alarms(hazard: Hazard, histories: tuple[SiteHistory, ...]) -> tuple[SiteHistory, ...]:
    """Raise the levels of sites near a failure, from the failure on."""
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
