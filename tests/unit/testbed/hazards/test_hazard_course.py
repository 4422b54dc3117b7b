"""The course of a hazard: levels, failures, neighbours, and the publications of sensors."""

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.earth import distance_m
from testbed.hazards import levels
from testbed.hazards.kinds import site_histories
from testbed.hazards.model import Alerts, Cell, Hazard, HazardKind, Quake, Rain, Storm, from_json
from testbed.hazards.record import record
from testbed.hazards.sensors import SensorPublication, sensor_publications
from testbed.hazards.sites import SiteHistory, moments

PLACES = {
    "a": (33.50, 133.50),
    "b": (33.51, 133.50),  # 1.1 km from a
    "c": (33.57, 133.50),  # 7.8 km from a
    "d": (34.50, 133.50),  # far from all
    "e": (33.50, 133.50),  # on a's slope
    "f": None,
}
NAMES = tuple(PLACES)
DURATION_S = 3_600.0

RATES = st.lists(st.floats(0, 250), min_size=1, max_size=12)
RAINS = st.builds(
    lambda rates, before: Rain(
        tuple((600.0 * n, rate) for n, rate in enumerate(rates)), None, before
    ),
    RATES,
    st.floats(0, 400),
)
STORMS = st.builds(
    lambda peak, cell, before: Rain((), Storm(0.0, 3_000, peak, cell=cell), before),
    st.floats(1, 300),
    st.sampled_from([None, Cell((33.4, 133.4), (33.6, 133.6), 20_000)]),
    st.floats(0, 400),
)
HAZARDS = st.builds(
    lambda kind, rain, near: Hazard(kind, NAMES, rain, near_m=near),
    st.sampled_from([HazardKind.LANDSLIDE, HazardKind.FLOOD]),
    st.one_of(RAINS, STORMS),
    st.sampled_from([0.0, 3_000.0]),
) | st.builds(
    lambda magnitude, latitude: Hazard(
        HazardKind.EARTHQUAKE,
        NAMES[:5],
        quake=Quake((latitude, 133.5), magnitude, 10.0),
        step_s=1.0,
    ),
    st.floats(4, 8.5),
    st.floats(32, 35),
)
SEEDS = st.integers(0, 2**63 - 1)


def histories_of(
    hazard: Hazard, seed: int, names: tuple[str, ...] | None = None
) -> tuple[SiteHistory, ...]:
    return site_histories(replace(hazard, nodes=names or hazard.nodes), PLACES, DURATION_S, seed)


def all_publications(hazard: Hazard, seed: int) -> list[SensorPublication]:
    return [
        one
        for history in histories_of(hazard, seed)
        for one in sensor_publications(hazard, history, DURATION_S, seed)
    ]


@given(HAZARDS, SEEDS)
def test_levels_are_one_to_five_and_no_sensor_publishes_outside_the_scenario(
    hazard: Hazard, seed: int
) -> None:
    for history in histories_of(hazard, seed):
        assert history.course[0].at_s == 0
        assert all(1 <= change.level <= 5 for change in history.course)
        at = [change.at_s for change in history.course]
        assert at == sorted(set(at))
        assert at[-1] < DURATION_S
        assert (levels.highest(history.course) == 5) == (history.failed_s is not None)
    published = all_publications(hazard, seed)
    assert all(0 <= one.at_s < DURATION_S and 1 <= one.priority <= 5 for one in published)
    assert {one.sensor for one in published if not one.alert} == set(hazard.nodes)


@given(HAZARDS, SEEDS)
def test_the_same_seed_gives_the_same_course(hazard: Hazard, seed: int) -> None:
    assert all_publications(hazard, seed) == all_publications(hazard, seed)
    assert from_json(json.loads(json.dumps(asdict(hazard)))) == hazard


@given(RAINS, st.data(), SEEDS, st.sampled_from([HazardKind.LANDSLIDE, HazardKind.FLOOD]))
def test_more_rain_never_lowers_a_level(
    rain: Rain, data: st.DataObject, seed: int, kind: HazardKind
) -> None:
    more = replace(
        rain,
        series=tuple((at_s, rate + data.draw(st.floats(0, 100))) for at_s, rate in rain.series),
    )
    pairs = zip(
        histories_of(Hazard(kind, NAMES, rain), seed),
        histories_of(Hazard(kind, NAMES, more), seed),
        strict=True,
    )
    for less, wet in pairs:
        for at_s in moments(DURATION_S, 60.0):
            assert levels.level_at(wet.course, at_s) >= levels.level_at(less.course, at_s)
        assert levels.highest(wet.course) >= levels.highest(less.course)


@given(HAZARDS, SEEDS, st.sets(st.sampled_from(NAMES[:5]), min_size=1))
def test_another_sensor_changes_nothing_for_the_others_unless_its_failure_alarms_them(
    hazard: Hazard, seed: int, some: set[str]
) -> None:
    alone = replace(hazard, near_m=-1.0, region_m=-1.0)
    few = {s.site.at: s for s in histories_of(alone, seed, tuple(n for n in NAMES if n in some))}
    every = {s.site.at: s for s in histories_of(alone, seed)}
    for place, history in few.items():
        assert every[place].course == history.course
        assert every[place].index == history.index
    by_sensor = {
        name: [one for one in all_publications(alone, seed) if one.sensor == name] for name in some
    }
    fewer = replace(alone, nodes=tuple(n for n in NAMES if n in some))
    for name in some:
        assert [one for one in all_publications(fewer, seed) if one.sensor == name] == by_sensor[
            name
        ]


@given(HAZARDS, SEEDS)
def test_sites_near_a_failure_rise_in_level_from_that_moment_on(hazard: Hazard, seed: int) -> None:
    known = histories_of(hazard, seed)
    for failed in (history for history in known if history.failed_s is not None):
        for history in known:
            if failed.site.at is None or history.site.at is None or history is failed:
                continue
            assert failed.failed_s is not None
            level = levels.level_at(history.course, failed.failed_s)
            far = distance_m(failed.site.at, history.site.at)
            assert level >= (4 if far <= hazard.near_m else 3 if far <= hazard.region_m else 1)


def test_a_failure_is_a_burst_of_level_five_from_all_sensors_of_its_slope() -> None:
    rain = Rain(((0.0, 150.0),), None, 300.0)
    hazard = Hazard(HazardKind.LANDSLIDE, NAMES, rain, alerts=Alerts(period_s=20.0))
    history = next(
        history for history in histories_of(hazard, 3) if history.site.sensors == ("a", "e")
    )
    assert history.failed_s is not None
    for sensor in ("a", "e"):
        burst = [
            one.at_s
            for one in sensor_publications(hazard, history, DURATION_S, 3)
            if one.sensor == sensor and one.priority == 5
        ]
        assert len(burst) == 20
        assert burst[0] - history.failed_s < hazard.step_s
        assert [later - burst[0] for later in burst] == pytest.approx([20.0 * n for n in range(20)])


def test_a_level_is_repeated_until_the_next_one_and_published_once_when_it_falls() -> None:
    course = levels.course([(0, 0.0), (60, 1.0), (120, 0.7), (180, 0.0)], (0.6, 0.8, 1.0), 0.05)
    assert [(c.at_s, c.level) for c in course] == [(0, 1), (60, 4), (120, 2), (180, 1)]
    history = SiteHistory(
        site_histories(Hazard(HazardKind.LANDSLIDE, ("d",), Rain()), PLACES, 1, 1)[0].site,
        1,
        (),
        (),
        course,
    )
    hazard = Hazard(HazardKind.LANDSLIDE, ("d",), Rain(), alerts=Alerts(period_s=25.0))
    published = [one for one in sensor_publications(hazard, history, 300.0, 1) if one.alert]
    assert [one.priority for one in published] == [4, 4, 4, 2, 1]


def test_a_level_does_not_flicker_at_its_bound() -> None:
    values = [(n, 0.8 + 0.01 * (-1) ** (n + 1)) for n in range(20)]
    assert [c.level for c in levels.course(values, (0.6, 0.8, 1.0), 0.05)] == [2, 3]


@settings(max_examples=25)
@given(HAZARDS, SEEDS)
def test_the_record_counts_every_site_at_every_time(hazard: Hazard, seed: int) -> None:
    known = histories_of(hazard, seed)
    recorded = json.loads(json.dumps(record(hazard, known, DURATION_S, 20.0)))
    assert all(sum(row["sites"]) == len(known) for row in recorded["levels"])
    assert [row["site"] for row in recorded["failures"]] == [
        history.site.name
        for history in sorted(known, key=lambda history: history.failed_s or 0)
        if history.failed_s is not None
    ]
    assert len(recorded["curves"]) <= 600
