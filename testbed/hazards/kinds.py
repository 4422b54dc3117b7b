"""The three hazards: the history of one site each; `sites` has what they share."""

from collections.abc import Callable, Mapping
from math import ceil

from testbed.earth import Place
from testbed.hazards import ground_motion, levels
from testbed.hazards.hydrology import Rainfall, Tanks, depth_m, held_after
from testbed.hazards.model import Hazard, HazardKind, Quake, Rain, River, Slope
from testbed.hazards.sites import (
    Site,
    SiteHistory,
    draw_site_value,
    moments,
    own_course,
    sites_of,
    with_alarms,
)
from testbed.hazards.slopes import Movement

HOUR_S = 3_600.0
BEFORE_STEP_S = 600.0  # step before the scenario, as JMA computes its index

SiteModel = Callable[[Site], SiteHistory]


def site_histories(
    hazard: Hazard, places: Mapping[str, Place | None], duration_s: float, seed: int
) -> tuple[SiteHistory, ...]:
    """The history of each site of the hazard's sensors; `places`: of nodes, by name."""
    model = _site_model(hazard, duration_s, seed)
    return with_alarms(hazard, tuple(model(site) for site in sites_of(hazard.nodes, places)))


def steps_of(hazard: Hazard, duration_s: float) -> int:
    """The largest number of steps to compute for all sites, with those of the rain before the scenario."""
    sites = len(hazard.nodes)
    steps = sites * ceil(duration_s / hazard.step_s)
    if hazard.rain is None or not hazard.rain.before_mm:
        return steps
    if hazard.kind is HazardKind.LANDSLIDE:  # the same for all sites
        return steps + ceil(hazard.rain.before_s / BEFORE_STEP_S)
    return steps + sites * ceil(hazard.rain.before_s / hazard.step_s)


def _site_model(hazard: Hazard, duration_s: float, seed: int) -> SiteModel:
    """The function that computes the history of a site."""
    rain = hazard.rain or Rain()
    match hazard.kind:
        case HazardKind.LANDSLIDE:
            slope = hazard.slope or Slope()
            wet = _wet_before(rain)
            return lambda site: _landslide(hazard, rain, slope, wet, site, duration_s, seed)
        case HazardKind.FLOOD:
            river = hazard.river or River()
            return lambda site: _flood(hazard, rain, river, site, duration_s, seed)
        case HazardKind.EARTHQUAKE:
            assert hazard.quake is not None  # checked with the file
            quake = hazard.quake
            return lambda site: _earthquake(hazard, quake, site, duration_s, seed)


def _wet_before(rain: Rain) -> Tanks:
    """The soil water at the scenario's start."""
    tanks = Tanks()
    steps = ceil(rain.before_s / BEFORE_STEP_S) if rain.before_mm else 0
    for _ in range(steps):
        tanks = tanks.after(rain.before_mm / steps, rain.before_s / steps / HOUR_S)
    return tanks


def _landslide(
    hazard: Hazard,
    rain: Rain,
    slope: Slope,
    tanks: Tanks,
    site: Site,
    duration_s: float,
    seed: int,
) -> SiteHistory:
    fall = Rainfall(rain, seed)
    threshold = draw_site_value(site, slope.threshold_mm, slope.spread, seed)
    step_s = hazard.step_s
    rates, index = [], []
    movement, failed_s = Movement(), None
    steps = moments(duration_s, step_s)
    for at_s in steps:
        rates.append(fall.rate_mm_h(site.at, at_s + step_s / 2))
        index.append(tanks.index)
        if failed_s is None:
            above = tanks.index / threshold - 1.0
            movement, after_s = movement.after(slope, above, step_s)
            if after_s is not None and at_s + after_s < duration_s:
                failed_s = at_s + after_s
        tanks = tanks.after(rates[-1] * step_s / HOUR_S, step_s / HOUR_S)
    shares = [(at_s, value / threshold) for at_s, value in zip(steps, index, strict=True)]
    course = own_course(hazard, shares, failed_s)
    return SiteHistory(
        site, threshold, tuple(rates), tuple(index), course, failed_s, None, movement.moved_mm
    )


def _flood(
    hazard: Hazard, rain: Rain, river: River, site: Site, duration_s: float, seed: int
) -> SiteHistory:
    fall = Rainfall(rain, seed)
    threshold = draw_site_value(site, river.danger_m, river.spread, seed)
    step_s = hazard.step_s
    rates, depths = [], []
    failed_s = None
    held_mm = 0.0
    if rain.before_mm:
        for number in range(ceil(rain.before_s / step_s)):
            before = fall.rate_mm_h(site.at, number * step_s - rain.before_s - river.lag_s)
            held_mm = held_after(held_mm, before, river, step_s)
    steps = moments(duration_s, step_s)
    for at_s in steps:
        rates.append(fall.rate_mm_h(site.at, at_s + step_s / 2))
        depths.append(depth_m(held_mm, river))
        if failed_s is None and depths[-1] >= threshold * hazard.bounds[levels.HIGHEST - 2]:
            failed_s = at_s
        come = fall.rate_mm_h(site.at, at_s + step_s / 2 - river.lag_s)
        held_mm = held_after(held_mm, come, river, step_s)
    shares = [(at_s, value / threshold) for at_s, value in zip(steps, depths, strict=True)]
    course = own_course(hazard, shares, failed_s)
    return SiteHistory(site, threshold, tuple(rates), tuple(depths), course, failed_s)


def _earthquake(
    hazard: Hazard, quake: Quake, site: Site, duration_s: float, seed: int
) -> SiteHistory:
    assert site.at is not None  # checked with the file
    amplified = draw_site_value(site, quake.amplification, quake.spread, seed)
    strength = ground_motion.intensity(amplified * ground_motion.velocity_cm_s(quake, site.at))
    strong_s, first_s = (
        ground_motion.s_arrival_s(quake, site.at),
        ground_motion.p_arrival_s(quake, site.at),
    )
    course = levels.course([(0.0, 0.0), (strong_s, strength)], ground_motion.BOUNDS, 0.0)
    course = tuple(change for change in course if change.at_s < duration_s)
    failed = course[-1].level == levels.HIGHEST
    steps = moments(duration_s, hazard.step_s)
    index = tuple(strength if at_s >= strong_s else 0.0 for at_s in steps)
    return SiteHistory(
        site,
        ground_motion.BOUNDS[levels.EVACUATE - 2],
        (),
        index,
        course,
        strong_s if failed else None,
        first_s if first_s < duration_s else None,
    )
