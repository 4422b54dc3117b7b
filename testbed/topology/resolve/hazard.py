"""Resolve `scenario.hazard` of the file: the parts of its kind, its sensors, and its times."""

import csv
import pathlib
from itertools import pairwise

from nodes.protocol.wire import MAX_PAYLOAD_BYTES
from testbed.hazards.kinds import steps_of
from testbed.hazards.model import (
    LEVELS,
    MAX_STEP_S,
    Alerts,
    Cell,
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
from testbed.hazards.sites import MOST_DEVIATIONS
from testbed.topology.diagnostics.hints import did_you_mean, quoted
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Node
from testbed.topology.publication_times import MAX_PUBLICATIONS, nanoseconds
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.selection import Selection, cannot_publish, check_topic
from testbed.topology.resolve.timing import ends, written
from testbed.topology.schema.hazard import RawHazard, RawRain
from testbed.topology.units import SIZE

# Rain from a CSV file with the columns `seconds` and `mm_per_h`; each row holds until the next.


MAX_BYTES = 1024 * 1024
HEADS = ["seconds", "mm_per_h"]
MOST_MM_H = 1_000.0


class RainFileError(ValueError):
    """The file cannot be used; `hint` describes a valid one."""

    hint = f"the first line is {','.join(HEADS)}, the others two numbers each, in the order of time"


def read_rain(path: pathlib.Path) -> tuple[tuple[float, float], ...]:
    """Read (second from which it holds, mm/h); RainFileError if the file is not of this form."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise RainFileError(f"{path} is not a file of at most {MAX_BYTES // 1024} KiB")
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise RainFileError(f"{path} cannot be read: {error}") from error
    if len(rows) < 2 or [head.strip() for head in rows[0]] != HEADS:
        raise RainFileError(
            f"{path} does not begin with the columns {' and '.join(HEADS)}, and a row"
        )
    series: list[tuple[float, float]] = []
    for number, row in enumerate(rows[1:], 2):
        at_s, rate = _numbers(path, number, row)
        if series and at_s <= series[-1][0]:
            raise RainFileError(
                f"{path}, line {number}: {at_s:g} s is not after {series[-1][0]:g} s"
            )
        series.append((at_s, rate))
    return tuple(series)


def _numbers(path: pathlib.Path, number: int, row: list[str]) -> tuple[float, float]:
    try:
        at_s, rate = (float(text) for text in row)
    except ValueError:
        raise RainFileError(f"{path}, line {number}: two numbers are expected here") from None
    if not (0 <= at_s < float("inf") and 0 <= rate <= MOST_MM_H):
        raise RainFileError(f"{path}, line {number}: out of range (0 to {MOST_MM_H:,g} mm/h)")
    return at_s, rate


PATH: Path = ("scenario", "hazard")
MOST_STEPS = 2_000_000  # of all sites together
QUAKE_STEP_S = 1.0
_PARTS = {  # sections of each kind; the first is required
    HazardKind.LANDSLIDE: ("rain", "slope"),
    HazardKind.FLOOD: ("rain", "river"),
    HazardKind.EARTHQUAKE: ("quake",),
}
_EXAMPLES = {
    "rain": "add `rain: {storm: {peak: 100mm/h}}`",
    "quake": "add `quake: {epicentre: [33.0, 133.5], magnitude: 7.1}`",
}


def hazard(checking: Checking, nodes: tuple[Node, ...]) -> Hazard | None:
    """The scenario's hazard, if it has one; mistakes become problems."""
    scenario = checking.file.scenario
    if scenario is None or scenario.hazard is None:
        return None
    raw = scenario.hazard
    kind = HazardKind(raw.kind)
    _check_parts(checking, raw, kind)
    sensors = Selection(checking, nodes, cannot_publish).of((*PATH, "nodes"), raw.nodes)
    _check_places(checking, raw, kind, sensors)
    _check_sizes(checking, raw)
    _check_amounts(checking, raw)
    check_topic(checking, (*PATH, "readings", "topic"), raw.readings.topic, sensors)
    default_step = Hazard(kind, ()).step_s if kind.comes_from_rain else QUAKE_STEP_S
    made = Hazard(
        kind=kind,
        nodes=tuple(node.name for node in sensors),
        rain=_rain(checking, raw.rain) if raw.rain and kind.comes_from_rain else None,
        slope=_slope(raw) if kind is HazardKind.LANDSLIDE else None,
        river=_river(raw) if kind is HazardKind.FLOOD else None,
        quake=_quake(raw) if kind is HazardKind.EARTHQUAKE else None,
        readings=_readings(checking, raw),
        alerts=_alerts(checking, raw, sensors),
        bounds=_bounds(checking, raw, kind),
        hysteresis=raw.hysteresis,
        near_m=raw.near,
        region_m=raw.region,
        step_s=raw.step or default_step,
    )
    _check_times(checking, raw, made, scenario.duration)
    return made


def _check_parts(checking: Checking, raw: RawHazard, kind: HazardKind) -> None:
    own = _PARTS[kind]
    for part in ("rain", "slope", "river", "quake"):
        if part not in own and getattr(raw, part) is not None:
            belongs = next(kind.value for kind, parts in _PARTS.items() if part in parts)
            checking.key(
                (*PATH, part),
                f"`{part}` does not belong to a hazard of kind {kind.value}",
                f"remove it, or write `kind: {belongs}`",
            )
    if getattr(raw, own[0]) is None and checking.shaped.sound(*PATH):
        checking.key(PATH, f"{_article(kind)} needs `{own[0]}`", _EXAMPLES[own[0]])


def _article(kind: HazardKind) -> str:
    return f"{'an' if kind is HazardKind.EARTHQUAKE else 'a'} {kind.value}"


def _check_places(
    checking: Checking, raw: RawHazard, kind: HazardKind, sensors: tuple[Node, ...]
) -> None:
    """Every sensor needs a place if the hazard depends on places."""
    storm = raw.rain.storm if raw.rain else None
    if kind.comes_from_rain and (storm is None or storm.cell is None):
        return
    for node in sensors:
        origin = ("groups", node.group) if node.group else ("nodes", node.name)
        if node.at is None and checking.shaped.sound(*origin):
            why = "the storm's cell" if kind.comes_from_rain else "the earthquake"
            message = f"{node.name} has no place, and {why} acts on places"
            checking.key((*PATH, "nodes"), message, "give its nodes `at: [latitude, longitude]`")
            return


def _check_sizes(checking: Checking, raw: RawHazard) -> None:
    for name, size in (("readings", raw.readings.size), ("alerts", raw.alerts.size)):
        if size > MAX_PAYLOAD_BYTES:
            most = SIZE.write(MAX_PAYLOAD_BYTES)
            checking.value((*PATH, name, "size"), f"a message has at most {most}", "send less")


def _check_amounts(checking: Checking, raw: RawHazard) -> None:
    """Divisors are not zero, and no site's own value can fall to zero."""
    for part, keys in (("slope", ("threshold", "collapse")), ("river", ("drain", "danger"))):
        for key in keys if getattr(raw, part) else ():
            if getattr(getattr(raw, part), key) == 0:
                checking.value((*PATH, part, key), f"`{key}` cannot be zero", "write more")
    for part in ("slope", "river", "quake"):
        section = getattr(raw, part)
        if section is not None and section.spread * MOST_DEVIATIONS >= 1:
            checking.value(
                (*PATH, part, "spread"),
                "with such a spread some sites would have a value of zero or less",
                f"write less than {100 / MOST_DEVIATIONS:g}%",
            )


def _rain(checking: Checking, raw: RawRain) -> Rain:
    path = (*PATH, "rain")
    given = [name for name in ("series", "file", "storm") if getattr(raw, name)]
    if not given and checking.shaped.sound(*path):
        checking.key(path, "how much does it rain?", "add one of series, file, storm")
    for name in given[1:]:
        checking.key((*path, name), f"`{given[0]}` and `{name}` in one rain", "keep one of them")
    for name, length in (("period", raw.period), ("before_for", raw.before_for)):
        if length == 0:
            checking.value((*path, name), "a time must be greater than zero", "write it like 10min")
    series = tuple((index * raw.period, rate) for index, rate in enumerate(raw.series))
    if raw.file is not None and given[:1] == ["file"]:
        try:
            series = read_rain(checking.folder / raw.file)
        except RainFileError as error:
            checking.value((*path, "file"), str(error), error.hint)
    return Rain(series, _storm(checking, raw), raw.before * 1_000, raw.before_for)


def _storm(checking: Checking, raw: RawRain) -> Storm | None:
    storm = raw.storm
    if storm is None:
        return None
    path = (*PATH, "rain", "storm")
    if storm.length == 0:
        checking.value(
            (*path, "for"), "a storm's duration must be greater than zero", "write it like 30min"
        )
    cell = None
    if storm.cell is not None:
        cell = Cell(storm.cell.begin, storm.cell.end, storm.cell.radius)
        if cell.radius_m == 0:
            checking.value(
                (*path, "cell", "radius"),
                "a cell's radius must be greater than zero",
                "write it like 20km",
            )
    return Storm(storm.at, storm.length, storm.peak, StormShape(storm.shape), storm.variation, cell)


def _slope(raw: RawHazard) -> Slope:
    if raw.slope is None:
        return Slope()
    slope = raw.slope
    return Slope(slope.threshold * 1_000, slope.spread, slope.creep, slope.collapse)


def _river(raw: RawHazard) -> River:
    if raw.river is None:
        return River()
    river = raw.river
    return River(river.lag, river.drain, river.base, river.rise, river.danger, river.spread)


def _quake(raw: RawHazard) -> Quake | None:
    quake = raw.quake
    if quake is None:
        return None
    return Quake(
        quake.epicentre,
        quake.magnitude,
        quake.at,
        quake.depth,
        quake.amplification,
        quake.spread,
        quake.p_wave,
        quake.s_wave,
    )


def _readings(checking: Checking, raw: RawHazard) -> Readings:
    usual = Readings()
    readings = raw.readings
    for level, period in readings.periods.items():
        if period == 0:
            path = (*PATH, "readings", "periods", level)
            checking.value(path, "a period must be greater than zero", "write it like 10min")
    periods = tuple(
        readings.periods.get(str(level)) or usual.periods_s[level - 1] for level in LEVELS
    )
    return Readings(readings.topic, readings.size, readings.priority, periods)


def _alerts(checking: Checking, raw: RawHazard, sensors: tuple[Node, ...]) -> Alerts:
    usual, alerts = Alerts(), raw.alerts
    if alerts.period == 0:
        path = (*PATH, "alerts", "period")
        checking.value(path, "a period must be greater than zero", "write it like 20s")
    times = tuple(alerts.times.get(str(level), usual.times[level - 1]) for level in LEVELS)
    topics = _alert_topics(checking, raw, sensors)
    return Alerts(topics, alerts.size, times, alerts.period or usual.period_s)


def _alert_topics(
    checking: Checking, raw: RawHazard, sensors: tuple[Node, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each topic as written in the file, with the sensors that publish it."""
    path = (*PATH, "alerts", "topic")
    topic = raw.alerts.topic
    if isinstance(topic, str):
        check_topic(checking, path, topic, sensors)
        return ((topic, tuple(node.name for node in sensors)),)
    known = [name for node in sensors for name in (node.group, node.name) if name]
    for name in topic:
        if name not in known and sensors:
            checking.key(
                (*path, name),
                f"{quoted(name)} is not a group or node of this hazard",
                did_you_mean(name, known),
            )
    found: dict[str, list[Node]] = {}
    for node in sensors:
        own = topic.get(node.name) or topic.get(node.group or "")
        if own is None:
            message = f"there is no topic for the alerts of {node.name}"
            checking.key(path, message, f"add `{node.group or node.name}: alerts/...`")
            break
        found.setdefault(own, []).append(node)
    for own, named in found.items():
        name = next(name for name, each in topic.items() if each == own)
        check_topic(checking, (*path, name), own, tuple(named))
    return tuple((own, tuple(node.name for node in named)) for own, named in found.items())


def _bounds(checking: Checking, raw: RawHazard, kind: HazardKind) -> tuple[float, ...]:
    path = (*PATH, "levels")
    if raw.levels and kind is HazardKind.EARTHQUAKE:
        checking.key(path, "levels of earthquakes are those of JMA's intensity", "remove them")
    if "5" in raw.levels and kind is HazardKind.LANDSLIDE:
        message = "a slope reaches level 5 only when it fails, independent of the index"
        checking.key(
            (*path, "5"), message, "remove it; `slope: {collapse: ...}` sets the time of failure"
        )
    usual = Hazard(kind, ()).bounds
    bounds = tuple(raw.levels.get(str(level), usual[level - 2]) for level in LEVELS[1:])
    for level, (lower, higher) in enumerate(pairwise(bounds), 3):
        if lower > higher:
            message = f"level {level} would be reached before level {level - 1}"
            checking.key(path, message, "give the higher level the higher share")
            break
    return bounds


def _check_times(checking: Checking, raw: RawHazard, made: Hazard, duration_s: float) -> None:
    """The hazard lies within the scenario, and is small enough to compute and play."""
    if not checking.shaped.sound("scenario", "duration") or not checking.shaped.sound(*PATH):
        return
    if raw.step is not None and not 0 < raw.step <= MAX_STEP_S:
        checking.value(
            (*PATH, "step"), "a step is more than 0s and at most 1h", "write it like 1min"
        )
        return
    if made.rain and made.rain.storm:
        _check_beginning(checking, ("rain", "storm"), made.rain.storm.at_s, duration_s)
    if made.quake:
        _check_beginning(checking, ("quake",), made.quake.at_s, duration_s)
    if steps_of(made, duration_s) > MOST_STEPS:
        message = f"more than {MOST_STEPS:,} steps of the hazard model over all sensors"
        wet = made.rain is not None and made.rain.before_mm
        shorter = "the scenario or `before_for`" if wet else "the scenario"
        checking.key(PATH, message, f"lengthen `step`, or shorten {shorter}")
    if len(made.nodes) * duration_s / min(made.readings.periods_s) > MAX_PUBLICATIONS:
        checking.key(
            (*PATH, "readings"),
            f"sensors could publish more than {MAX_PUBLICATIONS:,} readings",
            "lengthen their `periods`",
        )


def _check_beginning(
    checking: Checking, part: tuple[str, ...], at_s: float, duration_s: float
) -> None:
    begin, end = nanoseconds(at_s), nanoseconds(duration_s)
    if begin >= end:
        message = f"it begins at {written(begin)}, but {ends(end, begin)}"
        checking.value((*PATH, *part, "at"), message, "lengthen the scenario's `duration`")
