"""The soil water index against the published equations, computed another way, and against the balance of water."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.hazards.hydrology import Tanks

RAINS = st.lists(st.floats(0, 200), min_size=1, max_size=60)  # mm/h
STEPS = st.sampled_from([1 / 60, 1 / 6, 0.5, 1.0])  # hours


def rates(levels: np.ndarray, rain: float) -> np.ndarray:
    """dS/dt of the three tanks, from the paper's figure: outlets as (tank, height, coefficient), and what seeps."""
    outlets = [(0, 15, 0.1), (0, 60, 0.15), (1, 15, 0.05), (2, 15, 0.01)]
    change = np.array([rain, 0.0, 0.0])
    for tank, height, coefficient in outlets:
        change[tank] -= coefficient * np.clip(levels[tank] - height, 0, None)
    for tank, coefficient in enumerate((0.12, 0.05, 0.01)):
        change[tank] -= coefficient * levels[tank]
        if tank < 2:
            change[tank + 1] += coefficient * levels[tank]
    return change


def exact(rains: list[float], hours: float) -> np.ndarray:
    """The continuous tanks, by Runge and Kutta with small steps."""
    levels = np.zeros(3)
    small = hours / 20
    for rain in rains:
        for _ in range(20):
            one = rates(levels, rain)
            two = rates(levels + small / 2 * one, rain)
            three = rates(levels + small / 2 * two, rain)
            four = rates(levels + small * three, rain)
            levels = levels + small / 6 * (one + 2 * two + 2 * three + four)
    return levels


def filled(rains: list[float], hours: float) -> list[Tanks]:
    tanks = [Tanks()]
    for rain in rains:
        tanks.append(tanks[-1].after(rain * hours, hours))
    return tanks


def test_the_first_hours_of_a_storm_are_as_reckoned_by_hand() -> None:
    first = Tanks().after(80.0, 1.0)
    assert (first.surface, first.ground, first.deep) == (80.0, 0.0, 0.0)
    second = first.after(0.0, 1.0)
    # q1 = 0.1 * (80 - 15) + 0.15 * (80 - 60) = 9.5; 0.12 * 80 = 9.6 seeps down
    assert second.surface == pytest.approx(80 - 9.5 - 9.6)
    assert second.ground == pytest.approx(9.6)
    assert second.after(0.0, 1.0).deep == pytest.approx(0.05 * 9.6)


@given(RAINS, STEPS)
def test_each_step_is_that_of_the_equations(rains: list[float], hours: float) -> None:
    levels = np.zeros(3)
    for rain, tanks in zip(rains, filled(rains, hours)[1:], strict=True):
        levels = levels + hours * rates(levels, rain)
        assert [tanks.surface, tanks.ground, tanks.deep] == pytest.approx(levels.tolist(), abs=1e-6)
        assert tanks.index == pytest.approx(levels.sum(), abs=1e-6)


@given(RAINS)
def test_steps_of_a_minute_are_near_the_continuous_tanks(rains: list[float]) -> None:
    hours = 1 / 60
    assert filled(rains, hours)[-1].index == pytest.approx(
        exact(rains, hours).sum(), rel=0.01, abs=0.05
    )


@given(RAINS, STEPS)
def test_no_water_is_lost_or_made(rains: list[float], hours: float) -> None:
    fallen = gone = 0.0
    tanks = Tanks()
    for rain in rains:
        fallen += rain * hours
        gone += (sum(tanks.sideways_mm_h) + tanks.downwards_mm_h[-1]) * hours
        tanks = tanks.after(rain * hours, hours)
        assert tanks.index + gone == pytest.approx(fallen, abs=1e-6)
        assert min(tanks.surface, tanks.ground, tanks.deep) >= 0


@given(RAINS, st.data(), STEPS)
def test_more_rain_never_makes_the_ground_drier(
    rains: list[float], data: st.DataObject, hours: float
) -> None:
    more = [rain + data.draw(st.floats(0, 50)) for rain in rains]
    for less, wet in zip(filled(rains, hours), filled(more, hours), strict=True):
        assert wet.index >= less.index - 1e-9
