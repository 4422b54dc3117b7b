"""Slopes, rivers and ground motion: each model against formulas computed here."""

from math import inf, log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.earth import distance_m
from testbed.hazards import ground_motion
from testbed.hazards.hydrology import Rainfall, depth_m, envelope, held_after
from testbed.hazards.model import Cell, Quake, Rain, River, Slope, Storm, StormShape
from testbed.hazards.slopes import Movement

KOCHI, MUROTO = (33.56, 133.53), (33.29, 134.15)


def failed_after(slope: Slope, above: float, step_s: float = 60.0) -> float:
    movement, at_s = Movement(), 0.0
    while at_s < 1e6:
        movement, after_s = movement.after(slope, above, step_s)
        if after_s is not None:
            return at_s + after_s
        at_s += step_s
    return inf


@pytest.mark.parametrize(
    ("above", "expected_s"), [(0.1, 1_200), (0.2, 600), (0.05, 2_400), (0.0, inf), (-1.0, inf)]
)
def test_a_slope_fails_the_sooner_the_wetter_it_is(above: float, expected_s: float) -> None:
    assert failed_after(Slope(collapse_s=1_200), above) == pytest.approx(expected_s)


@given(st.floats(0.01, 1.0), st.floats(1, 600))
def test_the_step_does_not_decide_when_a_slope_fails(above: float, step_s: float) -> None:
    slope = Slope()
    assert failed_after(slope, above, step_s) == pytest.approx(slope.collapse_s * 0.1 / above)


def test_the_inverse_of_the_speed_falls_in_a_straight_line_to_the_failure() -> None:
    slope, movement = Slope(creep_mm_h=2.0, collapse_s=1_000), Movement()
    inverse = []
    for _ in range(9):
        inverse.append(1 / movement.speed_mm_h(slope))
        movement, failed = movement.after(slope, 0.1, 100)
        assert failed is None
    assert inverse == pytest.approx([0.5 - 0.05 * n for n in range(9)])
    assert movement.moved_mm == pytest.approx(
        sum(2 / 3_600 / (1 - n / 1e4) / 10 for n in range(9_000)), rel=1e-3
    )
    movement, failed = movement.after(slope, 0.1, 101)
    assert failed == pytest.approx(100)
    assert movement.speed_mm_h(slope) == inf


def test_a_slope_that_dries_comes_to_rest() -> None:
    slope = Slope(creep_mm_h=2.0, collapse_s=600)
    movement, _ = Movement().after(slope, 0.1, 300)
    assert movement.speed_mm_h(slope) == pytest.approx(4.0)
    for _ in range(100):
        movement, failed = movement.after(slope, -0.2, 60)
        assert failed is None
    assert movement.speed_mm_h(slope) == pytest.approx(2.0, rel=1e-3)


def test_a_river_rises_with_the_rain_and_drains_with_its_time_constant() -> None:
    river, held = River(drain_s=3_600, base_m=1.0, rise_m_per_mm=0.1), 0.0
    for _ in range(60 * 12):
        held = held_after(held, 10.0, river, 60)
    assert held == pytest.approx(10.0, rel=1e-3)  # S = R * k
    assert depth_m(held, river) == pytest.approx(2.0, rel=1e-3)
    for _ in range(60):
        held = held_after(held, 0.0, river, 60)
    assert held == pytest.approx(10.0 / 2.718, rel=0.02)


def test_waves_come_at_their_speeds() -> None:
    quake = Quake(KOCHI, 7.0, at_s=5.0, depth_m=30_000)
    far = (distance_m(KOCHI, MUROTO) ** 2 + 30_000**2) ** 0.5
    assert ground_motion.p_arrival_s(quake, MUROTO) == pytest.approx(5 + far / 6_000)
    assert ground_motion.s_arrival_s(quake, MUROTO) == pytest.approx(5 + far / 3_500)
    assert ground_motion.s_arrival_s(quake, KOCHI) == pytest.approx(5 + 30_000 / 3_500)


def test_the_velocity_is_that_of_si_and_midorikawa() -> None:
    # M 7.0, 10 km deep, epicentre 65 km away: X = R - L/2 with L = 10^(0.5 * 7 - 1.85) = 44.7 km
    quake = Quake(KOCHI, 7.0, depth_m=10_000)
    x = ground_motion.hypocentral_m(quake, MUROTO) / 1_000 - 44.668 / 2
    expected = 0.58 * 7 + 0.0038 * 10 - 1.29 - log10(x + 0.0028 * 10**3.5) - 0.002 * x
    assert log10(ground_motion.velocity_cm_s(quake, MUROTO)) == pytest.approx(expected, rel=1e-4)
    assert ground_motion.intensity(100.0) == pytest.approx(2.68 + 3.44)
    assert ground_motion.intensity(0.0) == 0.0


@given(st.floats(4, 8.5), st.floats(0, 1.5), st.floats(0, 2))
def test_farther_and_weaker_earthquakes_shake_less(
    magnitude: float, off: float, more: float
) -> None:
    near, far = (33.0 + off, 133.0), (33.0 + off + more, 133.0)
    quake, weaker = Quake((33.0, 133.0), magnitude), Quake((33.0, 133.0), magnitude - 0.5)
    assert ground_motion.velocity_cm_s(quake, near) >= ground_motion.velocity_cm_s(quake, far) * (
        1 - 1e-12
    )
    assert ground_motion.velocity_cm_s(quake, near) >= ground_motion.velocity_cm_s(weaker, near)


def test_a_series_holds_from_step_to_step() -> None:
    rain = Rainfall(Rain(series=((0.0, 5.0), (600.0, 20.0)), before_mm=24.0, before_s=86_400), 1)
    found = [rain.rate_mm_h(None, at_s) for at_s in (-90_000, -1, 0, 599, 600, 1e6)]
    assert found == [0, 1, 5, 5, 20, 20]


@pytest.mark.parametrize("shape", StormShape)
def test_every_storm_reaches_its_peak_once_and_never_more(shape: StormShape) -> None:
    parts = [envelope(shape, n / 1_000) for n in range(1_000)]
    assert max(parts) == pytest.approx(1.0)
    assert min(parts) >= 0


@given(st.integers(0, 2**32), st.floats(-100, 4_000), st.floats(0, 1))
def test_a_storm_rains_between_its_shape_and_that_less_its_variation(
    seed: int, at_s: float, variation: float
) -> None:
    storm = Storm(for_s=1_800, peak_mm_h=100, variation=variation)
    rate = Rainfall(Rain(storm=storm), seed).rate_mm_h(None, at_s)
    most = 100 * envelope(storm.shape, at_s / 1_800) if 0 <= at_s < 1_800 else 0.0
    assert most * (1 - variation) - 1e-9 <= rate <= most
    assert rate == Rainfall(Rain(storm=storm), seed).rate_mm_h(None, at_s)


def test_a_cell_rains_where_it_is() -> None:
    cell = Cell(KOCHI, MUROTO, radius_m=10_000)
    rain = Rainfall(Rain(storm=Storm(shape=StormShape.BLOCK, variation=0.0, cell=cell)), 1)
    assert rain.rate_mm_h(KOCHI, 0) == pytest.approx(100)
    assert rain.rate_mm_h(MUROTO, 0) < 1e-6
    assert rain.rate_mm_h(MUROTO, 1_799.99) == pytest.approx(100, rel=1e-3)
    north = (KOCHI[0] + 10_000 / 111_195, KOCHI[1])
    assert rain.rate_mm_h(north, 0) == pytest.approx(100 * 2.718281828**-0.5, rel=1e-3)
