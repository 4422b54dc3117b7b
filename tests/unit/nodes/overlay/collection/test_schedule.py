"""Whose readings a node waits for: it decides by arrival times, not by clocks of others, and skips silent nodes."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.collection.aggregation import SILENT_PERIODS, SensorSchedule

SECOND = 1_000_000_000


def regular(schedule: SensorSchedule, sensor: int, period: float, came: list[float]) -> None:
    """Readings with this period on the sensor's own clock."""
    for number, moment in enumerate(came):
        schedule.record(sensor, 77 * SECOND + round(number * period * SECOND), moment)


def test_a_period_is_known_when_two_distances_agree() -> None:
    schedule = SensorSchedule()
    regular(schedule, 1, 2.0, [10.0, 12.1])
    assert schedule.steady_period(12.1) is None
    regular(schedule, 1, 2.0, [10.0, 12.1, 14.0])
    assert schedule.steady_period(14.0) == 2.0


def test_of_several_sensors_the_shortest_period_counts_as_long_as_it_publishes() -> None:
    schedule = SensorSchedule()
    regular(schedule, 1, 5.0, [0.0, 5.0, 10.0])
    regular(schedule, 2, 2.0, [6.0, 8.0, 10.0])
    assert schedule.steady_period(10.0) == 2.0
    assert schedule.steady_period(10.0 + SILENT_PERIODS * 2.0 + 0.1) == 5.0


def test_a_lost_reading_is_no_new_period() -> None:
    schedule = SensorSchedule()
    for number in (0, 1, 2, 4):
        schedule.record(1, number * SECOND, float(number))
    assert schedule.steady_period(4.0) is None  # 1 s and 2 s: ambiguous, so the key stays as it is
    schedule.record(1, 5 * SECOND, 5.0)
    schedule.record(1, 6 * SECOND, 6.0)
    assert schedule.steady_period(6.0) == 1.0


def test_a_reading_due_within_the_wait_is_expected_and_one_that_has_arrived_is_not() -> None:
    schedule = SensorSchedule()
    regular(schedule, 1, 1.0, [0.0, 1.0])
    assert schedule.expects(set(), 1.6, 2.4, 2.0)
    assert not schedule.expects({1}, 1.6, 2.4, 2.0)
    assert not schedule.expects(set(), 1.2, 1.8, 1.5)


def test_a_sensor_with_a_single_known_reading_is_not_waited_for() -> None:
    schedule = SensorSchedule()
    schedule.record(1, 0, 0.0)
    assert not schedule.expects(set(), 0.0, 1e6, 1.0)


def test_a_sensor_that_missed_a_reading_is_expected_again_a_period_later() -> None:
    schedule = SensorSchedule()
    regular(schedule, 1, 10.0, [0.0, 10.0])
    assert schedule.expects(set(), 19.5, 20.5, 20.0)
    assert not schedule.expects(set(), 24.5, 25.5, 25.0)
    assert schedule.expects(set(), 29.5, 30.5, 30.0)


@given(
    period=st.floats(0.5, 10),
    jitter=st.lists(st.floats(0, 0.2), min_size=3, max_size=8),
    wait=st.floats(0.1, 5),
)
def test_a_silent_sensor_is_given_up(period: float, jitter: list[float], wait: float) -> None:
    schedule = SensorSchedule()
    came = [number * period + late for number, late in enumerate(jitter)]
    regular(schedule, 1, period, came)
    later = came[-1] + (SILENT_PERIODS + 0.1) * period
    assert not schedule.expects(set(), later - wait, later + wait, later)


@given(st.lists(st.integers(0, 9000), max_size=200))
def test_memory_is_bounded_also_with_forged_sensors(sensors: list[int]) -> None:
    schedule = SensorSchedule()
    for number, sensor in enumerate(sensors):
        schedule.record(sensor, number, float(number))
    assert len(schedule._sensors) <= min(4096, len(set(sensors)))
