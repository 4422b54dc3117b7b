"""The parameters of a hazard, in SI units or in the usual units of hydrology (mm, mm/h)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from testbed.earth import Place

LEVELS = (1, 2, 3, 4, 5)
MAX_STEP_S = 3_600.0  # beyond, a step of the tanks would lose more than a tank holds


class HazardKind(StrEnum):
    """The kind of a hazard."""

    LANDSLIDE = "landslide"
    FLOOD = "flood"
    EARTHQUAKE = "earthquake"

    @property
    def comes_from_rain(self) -> bool:
        return self is not HazardKind.EARTHQUAKE


class StormShape(StrEnum):
    """The shape of a storm's rain over time."""

    TRIANGLE = "triangle"  # strongest in the middle
    EARLY = "early"  # strongest after a quarter of its time
    LATE = "late"  # strongest after three quarters
    BLOCK = "block"  # as strong from its beginning to its end


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a storm rains: around a centre that moves in a straight line while the storm lasts."""

    begin: Place
    end: Place
    radius_m: float = (
        20_000.0  # at this distance from the centre, 61 % of its rain (a Gaussian bell)
    )


@dataclass(frozen=True, slots=True)
class Storm:
    """Rain that is generated from the seed."""

    at_s: float = 0.0
    for_s: float = 1_800.0
    peak_mm_h: float = 100.0
    shape: StormShape = StormShape.TRIANGLE
    variation: float = (
        0.2  # it falls short of its shape by up to this share, anew every five minutes
    )
    cell: Cell | None = None  # None: the same everywhere


@dataclass(frozen=True, slots=True)
class Rain:
    """Rain by time and place: a series, or a storm; and the rain before the scenario."""

    series: tuple[tuple[float, float], ...] = ()  # from this second on, mm/h; the last one lasts
    storm: Storm | None = None
    before_mm: float = 0.0  # everywhere, evenly over ...
    before_s: float = 86_400.0  # ... this time before the scenario


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope's ground."""

    threshold_mm: float = 150.0  # soil water index from which it moves: its critical line
    spread: float = 0.15  # standard deviation of the thresholds of slopes, as a share; at most two
    creep_mm_h: float = 2.0  # speed at which it begins to move
    collapse_s: float = 1_200.0  # from there to its failure, if the index stays a tenth above


@dataclass(frozen=True, slots=True)
class River:
    """A river at a gauge."""

    lag_s: float = 1_200.0  # from the rain to the gauge
    drain_s: float = 3_600.0  # in which the basin loses 63 % of its water
    base_m: float = 1.0  # depth without rain
    rise_m_per_mm: float = 0.04  # for each millimetre of rain that the basin holds
    danger_m: float = 3.0  # the depth of level 4
    spread: float = 0.1  # standard deviation of that of gauges, as a share; at most two


@dataclass(frozen=True, slots=True)
class Quake:
    """An earthquake."""

    epicentre: Place
    magnitude: float
    at_s: float = 0.0
    depth_m: float = 10_000.0
    amplification: float = 1.5  # of the ground's speed, from firm ground to where sensors stand
    spread: float = 0.2  # standard deviation of that of sites, as a share; at most two
    p_m_s: float = 6_000.0
    s_m_s: float = 3_500.0


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of every sensor, the more often the higher its level."""

    topic: str = "readings"
    size: int = 300
    priority: int = 1
    periods_s: tuple[float, ...] = (600.0, 600.0, 300.0, 60.0, 60.0)  # of levels 1 to 5


@dataclass(frozen=True, slots=True)
class Alerts:
    """Alerts of a sensor when its level changes; a higher level is published several times."""

    topics: tuple[
        tuple[str, tuple[str, ...]], ...
    ] = ()  # a topic, with {node} and {group}: its sensors
    size: int = 200
    times: tuple[int, ...] = (1, 1, 1, 3, 20)  # of levels 1 to 5
    period_s: float = 20.0  # between repetitions


@dataclass(frozen=True, slots=True)
class Hazard:
    """A hazard with all its parameters."""

    kind: HazardKind
    nodes: tuple[str, ...]
    rain: Rain | None = None  # of landslides and floods
    slope: Slope | None = None  # of landslides
    river: River | None = None  # of floods
    quake: Quake | None = None  # of earthquakes
    readings: Readings = Readings()
    alerts: Alerts = Alerts()
    bounds: tuple[float, ...] = (
        0.6,
        0.8,
        1.0,
        1.15,
    )  # of levels 2 to 5, as shares of the threshold
    hysteresis: float = 0.05  # a level is lowered this share below its bound
    near_m: float = 3_000.0  # sites this near a failure are at least at level 4
    region_m: float = 10_000.0  # sites this near a failure are at least at level 3
    step_s: float = 60.0


def from_json(value: Mapping[str, Any]) -> Hazard:
    """The inverse of `dataclasses.asdict`, also for values read from a JSON file."""
    rain, slope, river, quake = (value[name] for name in ("rain", "slope", "river", "quake"))
    alerts = value["alerts"]
    topics = tuple((topic, tuple(names)) for topic, names in alerts["topics"])
    return Hazard(
        **{
            **value,
            "kind": HazardKind(value["kind"]),
            "nodes": tuple(value["nodes"]),
            "rain": _rain(rain) if rain else None,
            "slope": Slope(**slope) if slope else None,
            "river": River(**river) if river else None,
            "quake": Quake(**{**quake, "epicentre": tuple(quake["epicentre"])}) if quake else None,
            "readings": Readings(
                **{**value["readings"], "periods_s": tuple(value["readings"]["periods_s"])}
            ),
            "alerts": Alerts(**{**alerts, "topics": topics, "times": tuple(alerts["times"])}),
            "bounds": tuple(value["bounds"]),
        }
    )


def _rain(value: Mapping[str, Any]) -> Rain:
    storm = value["storm"]
    series = tuple((from_s, rate) for from_s, rate in value["series"])
    return Rain(**{**value, "series": series, "storm": _storm(storm) if storm else None})


def _storm(value: Mapping[str, Any]) -> Storm:
    cell = value["cell"]
    if cell:
        cell = Cell(tuple(cell["begin"]), tuple(cell["end"]), cell["radius_m"])
    return Storm(**{**value, "shape": StormShape(value["shape"]), "cell": cell})
