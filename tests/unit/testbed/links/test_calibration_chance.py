"""How far chance leads: against exact counts and against simple models of it."""

from fractions import Fraction
from math import comb
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.calibration.verdict import at_least, median_reach, plausible

shares = st.integers(0, 20).map(lambda n: Fraction(n, 20))


@given(st.integers(0, 40), st.integers(0, 45), shares)
def test_tails_are_those_of_the_binomial_distribution(
    trials: int, count: int, share: Fraction
) -> None:
    exact = sum(
        comb(trials, n) * share**n * (1 - share) ** (trials - n) for n in range(count, trials + 1)
    )
    assert at_least(count, trials, float(share)) == pytest.approx(float(exact), abs=1e-9)


@given(st.integers(1, 2000), st.floats(0.001, 0.5))
def test_the_expected_count_is_always_plausible(trials: int, share: float) -> None:
    assert plausible(round(trials * share), trials, share)


def test_a_link_that_should_lose_nothing_may_lose_nothing() -> None:
    assert plausible(0, 1000, 0.0)
    assert not plausible(1, 1000, 0.0)
    assert not plausible(999, 1000, 1.0)


def test_five_in_a_thousand_may_well_be_one_but_hardly_twenty() -> None:
    assert plausible(1, 1000, 0.005)
    assert plausible(12, 1000, 0.005)
    assert not plausible(20, 1000, 0.005)
    assert not plausible(0, 3000, 0.005)


@given(st.integers(0, 200))
def test_the_median_of_more_packets_is_nearer(half: int) -> None:
    fewer, more = 2 * half + 1, 2 * half + 3
    assert 0 < median_reach(more) < median_reach(fewer) <= 1


@pytest.mark.parametrize("samples", [1, 3, 15, 51])
def test_medians_stay_within_reach(samples: int) -> None:
    chance = Random(samples)
    beyond = sum(
        abs(median(chance.uniform(-1, 1) for _ in range(samples))) > median_reach(samples)
        for _ in range(4000)
    )
    assert beyond <= 15  # 4 are expected
    nearer = 0.8 * median_reach(samples)
    assert any(
        abs(median(chance.uniform(-1, 1) for _ in range(samples))) > nearer for _ in range(4000)
    )


def test_without_a_packet_any_median_is_possible() -> None:
    assert median_reach(0) == 1.0
