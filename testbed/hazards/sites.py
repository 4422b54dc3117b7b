"""Where a hazard is watched: sensors at one place stand on one slope, at one gauge, on one piece of ground."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.earth import Place, distance_m

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


def drawn(site: Site, usual: float, spread: float, seed: int) -> float:
    """A value of the site's own around the usual one: it follows from the seed and the place, so from no other site."""
    where = site.name if site.at is None else f"{site.at[0]!r},{site.at[1]!r}"
    deviation = random.Random(f"{seed}/hazard/site/{where}").gauss(0.0, 1.0)
    return usual * (1.0 + spread * max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, deviation)))


def within(site: Site, other: Site, reach_m: float) -> bool:
    """Whether two sites are so near each other; a site without a place is near nobody."""
    if site.at is None or other.at is None:
        return False
    return distance_m(site.at, other.at) <= reach_m
