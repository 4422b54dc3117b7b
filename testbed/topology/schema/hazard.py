"""The sections of `scenario.hazard`; `testbed.topology.resolve.hazard` resolves them."""

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from testbed.hazards.model import (
    Alerts,
    Hazard,
    HazardKind,
    Quake,
    Rain,
    Readings,
    River,
    Slope,
    Storm,
    StormShape,
)
from testbed.hazards.model import Cell as CellModel
from testbed.topology import units
from testbed.topology.schema import checks
from testbed.topology.schema.checks import Section

Duration = Annotated[float, checks.quantity(units.parse_duration, units.DURATION)]
OptionalDuration = Annotated[float | None, checks.quantity(units.parse_duration, units.DURATION)]
Rainfall = Annotated[float, checks.quantity(units.parse_rainfall, units.RAINFALL)]
Metres = Annotated[float, checks.quantity(units.parse_length, units.LENGTH)]
Speed = Annotated[float, checks.quantity(units.parse_speed, units.SPEED)]
Share = Annotated[float, checks.quantity(units.parse_share, units.SHARE)]
Size = Annotated[int, checks.quantity(units.parse_size, units.SIZE)]
Place = Annotated[tuple[float, float], checks.place()]
Level = Annotated[int, checks.whole(1, 5)]
Publishers = Annotated[tuple[str, ...], checks.selectors("no node publishes")]
Topic = Annotated[str, checks.topic_template()]
Shape = Annotated[str, checks.choice("shape of a storm", StormShape)]
Kind = Annotated[str, checks.choice("hazard", HazardKind)]
LevelName = Annotated[str, checks.choice("level", ("1", "2", "3", "4", "5"))]
BoundName = Annotated[str, checks.choice("level that can be reached", ("2", "3", "4", "5"))]
Bound = Annotated[float, checks.quantity(units.parse_percentage, units.SHARE)]
Times = Annotated[int, checks.whole(1, 1_000)]
Rates = Annotated[tuple[float, ...], checks.rates()]
Member = Annotated[str, checks.line("the name of a group or node")]

_CELL, _STORM, _RAIN = CellModel((0, 0), (0, 0)), Storm(), Rain()
_SLOPE, _RIVER, _QUAKE = Slope(), River(), Quake((0, 0), 7.0)
_READINGS, _ALERTS, _HAZARD = Readings(), Alerts(), Hazard(HazardKind.LANDSLIDE, ())

# One topic for all, or one for each group; the tags occur in the paths of errors (`shape`), and in no file.
ONE_TOPIC, TOPICS = "(one)", "(several)"
AlertTopics = Annotated[
    Annotated[Topic, Tag(ONE_TOPIC)] | Annotated[dict[Member, Topic], Tag(TOPICS)],
    Discriminator(lambda value: TOPICS if isinstance(value, dict) else ONE_TOPIC),
]


class RawCell(Section):
    """The area of a storm: a cell that moves in a straight line during the storm."""

    begin: Place = Field(
        alias="from", description="[latitude, longitude] of its centre at the start"
    )
    end: Place = Field(alias="to", description="[latitude, longitude] of its centre at the end")
    radius: Metres = Field(
        _CELL.radius_m,
        description="at this distance from the centre, 61 % of its rain; default: 20km",
    )


class RawStorm(Section):
    """A storm that is generated from the seed."""

    at: Duration = Field(_STORM.at_s, description="start of the storm; default: 0s")
    length: Duration = Field(
        _STORM.for_s, alias="for", description="duration of the storm; default: 30min"
    )
    peak: Rainfall = Field(
        _STORM.peak_mm_h, description="peak of the rain, as in 100mm/h (the default)"
    )
    shape: Shape = Field(
        _STORM.shape.value, description="shape over time; default: triangle (peak in the middle)"
    )
    variation: Share = Field(
        _STORM.variation,
        description="largest random reduction of the rain, drawn every 5 min; default: 20%",
    )
    cell: RawCell | None = Field(
        None, description="area of the rain; default: the same rain everywhere"
    )


class RawRain(Section):
    """Rain: exactly one of `series`, `file` and `storm`."""

    series: Rates = Field((), description="millimetres per hour, one number after the other")
    period: Duration = Field(600.0, description="how long each number holds; default: 10min")
    file: Annotated[str | None, checks.source_path()] = Field(
        None, description="CSV file with the columns seconds and mm_per_h, beside this one"
    )
    storm: RawStorm | None = Field(None, description="a storm that is generated from the seed")
    before: Metres = Field(
        0.0, description="rain before the scenario, everywhere, as in 200mm; default: 0mm"
    )
    before_for: Duration = Field(
        _RAIN.before_s, description="duration of the rain before the scenario; default: 24h"
    )


class RawSlope(Section):
    """The ground of slopes."""

    threshold: Metres = Field(
        _SLOPE.threshold_mm / 1_000,
        description="soil water index from which a slope moves, as in 150mm (the default)",
    )
    spread: Share = Field(
        _SLOPE.spread,
        description="standard deviation of the slopes' own thresholds (seeded); default: 15%",
    )
    creep: Rainfall = Field(
        _SLOPE.creep_mm_h, description="speed at which a slope begins to move; default: 2mm/h"
    )
    collapse: Duration = Field(
        _SLOPE.collapse_s,
        description="time until it fails, with an index a tenth above its threshold; default: 20min",
    )


class RawRiver(Section):
    """The river at gauges."""

    lag: Duration = Field(_RIVER.lag_s, description="delay from rain to gauge; default: 20min")
    drain: Duration = Field(
        _RIVER.drain_s, description="time in which the basin loses 63 % of its water; default: 1h"
    )
    base: Metres = Field(_RIVER.base_m, description="depth without rain; default: 1m")
    rise: Metres = Field(
        _RIVER.rise_m_per_mm,
        description="rise for each millimetre that the basin holds; default: 40mm",
    )
    danger: Metres = Field(_RIVER.danger_m, description="depth of level 4; default: 3m")
    spread: Share = Field(
        _RIVER.spread, description="standard deviation of the gauges' own depths; default: 10%"
    )


class RawQuake(Section):
    """An earthquake."""

    epicentre: Place = Field(description="[latitude, longitude]")
    magnitude: Annotated[float, checks.factor(1, 10, "7.1")] = Field(description="as in 7.1")
    at: Duration = Field(_QUAKE.at_s, description="time of the earthquake; default: 0s")
    depth: Metres = Field(_QUAKE.depth_m, description="depth of the hypocentre; default: 10km")
    amplification: Annotated[float, checks.factor(0.1, 20, "1.5")] = Field(
        _QUAKE.amplification,
        description="amplification of the ground's speed from firm ground to the sites; default: 1.5",
    )
    spread: Share = Field(
        _QUAKE.spread, description="standard deviation of the sites' amplifications; default: 20%"
    )
    p_wave: Speed = Field(_QUAKE.p_m_s, description="speed of the first wave; default: 6km/s")
    s_wave: Speed = Field(_QUAKE.s_m_s, description="speed of the strong wave; default: 3.5km/s")


class RawReadings(Section):
    """Readings that every sensor publishes repeatedly."""

    topic: Topic = Field(_READINGS.topic, description="default: readings")
    size: Size = Field(_READINGS.size, description="payload of each; default: 300B")
    priority: Level = Field(_READINGS.priority, description="default: 1 (routine)")
    periods: dict[LevelName, Duration] = Field(
        {},
        description="level: interval between readings; default: 10min, 10min, 5min, 1min and 1min",
    )


class RawAlerts(Section):
    """Alerts that a sensor publishes when its level changes; the level is the priority."""

    topic: AlertTopics = Field(
        "alerts/{group}",
        description="topic of all alerts, or {group or node: topic}; default: alerts/{group}",
    )
    size: Size = Field(_ALERTS.size, description="payload of each; default: 200B")
    times: dict[LevelName, Times] = Field(
        {},
        description="level: number of alerts when it is reached; default: 1, 1, 1, 3 and 20",
    )
    period: Duration = Field(
        _ALERTS.period_s, description="interval between repeated alerts; default: 20s"
    )


class RawHazard(Section):
    """A disaster, from which the publications of sensors follow (docs/explanation/hazards.md)."""

    kind: Kind = Field(description="landslide, flood or earthquake")
    nodes: Publishers = Field(description='the sensors that watch it, as in "slopes[*]", or a list')
    rain: RawRain | None = Field(None, description="rain, for landslides and floods")
    slope: RawSlope | None = Field(None, description="ground, for landslides")
    river: RawRiver | None = Field(None, description="river, for floods")
    quake: RawQuake | None = Field(None, description="earthquake, for earthquakes")
    readings: RawReadings = Field(
        RawReadings(), description="readings that sensors publish repeatedly"
    )
    alerts: RawAlerts = Field(
        RawAlerts(), description="alerts that sensors publish when levels change"
    )
    levels: dict[BoundName, Bound] = Field(
        {},
        description="level: share of the threshold that is its bound; default: 60%, 80%, 100% and 115%",
    )
    hysteresis: Share = Field(
        _HAZARD.hysteresis, description="a level is lowered this much below its bound; default: 5%"
    )
    near: Metres = Field(
        _HAZARD.near_m,
        description="distance from a failure within which all are at least at level 4; default: 3km",
    )
    region: Metres = Field(
        _HAZARD.region_m,
        description="distance within which all are at least at level 3; default: 10km",
    )
    step: OptionalDuration = Field(
        None, description="the model's step, at most 1h; default: 1min, of earthquakes 1s"
    )
