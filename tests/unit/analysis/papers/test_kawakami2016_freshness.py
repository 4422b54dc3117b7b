"""Delay and age of readings: by examples, and compared with sampling every moment."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.papers.kawakami2016.freshness import Reading, age, delays, mean_age, quantile


def test_the_age_of_the_newest_reading_is_the_area_under_its_saw() -> None:
    readings = [Reading("a", at, at + 0.5) for at in range(0, 10, 2)]
    # From 0.5 s after a publication on, until 2.5 s after it, again and again.
    assert mean_age(readings, 0.5, 4.5) == pytest.approx(1.5)
    assert mean_age(readings[:1], 1, 3) == pytest.approx(2.0)


def test_a_reading_that_is_overtaken_makes_nothing_younger() -> None:
    readings = [Reading("a", 2, 3), Reading("a", 0, 4)]
    assert mean_age(readings, 3, 5) == pytest.approx(2.0)


def test_gauges_count_alike_however_often_they_send() -> None:
    often = [Reading("often", at, at) for at in range(10)]
    seldom = [Reading("seldom", 0, 0)]
    assert age([*often, *seldom], 10) == pytest.approx((0.5 + 5.0) / 2)


MOMENTS = st.integers(-200, 700)


@given(st.lists(st.tuples(MOMENTS, st.integers(1, 400)), max_size=12))
def test_the_mean_age_equals_that_of_sampling_every_moment(found: list[tuple[int, int]]) -> None:
    """Times in hundredths of a second; each is sampled in its middle."""
    first = Reading("a", -3.0, -2.9)
    readings = [first, *(Reading("a", at / 100, (at + late) / 100) for at, late in found)]
    sampled = []
    for tick in range(500):
        now = (tick + 0.5) / 100
        newest = max(one.published_s for one in readings if one.came_s <= now)
        sampled.append(now - newest)
    assert mean_age(readings, 0, 5) == pytest.approx(fmean(sampled), abs=1e-9)


def test_only_readings_published_in_the_measured_time_have_a_delay() -> None:
    readings = [Reading("a", at, at + 0.1 * (at + 2)) for at in range(-1, 4)]
    assert delays(readings, 2) == pytest.approx([0.2, 0.3])


@given(st.lists(st.floats(0, 9), min_size=1))
def test_quantiles_lie_between_the_least_and_the_most_and_half_is_the_median(
    values: list[float],
) -> None:
    ordered = sorted(values)
    assert (quantile(ordered, 0), quantile(ordered, 1)) == (ordered[0], ordered[-1])
    assert ordered[0] <= quantile(ordered, 0.95) <= ordered[-1] + 1e-9
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    assert quantile(ordered, 0.5) == pytest.approx(middle)
