"""The delay model and the packets of Lee 2016, with the numbers that the thesis itself gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.papers.lee2016 import model as ways
from testbed.papers.lee2016.model import bound, growth, load, packets_of_standard
from testbed.papers.lee2016.sheet import LARGEST_DELAY_RATE, LARGEST_DELAY_S


@pytest.mark.parametrize(
    ("way", "packets"),
    [
        (ways.DEFAULT, 70),
        (ways.PQ_PC, 70),
        (ways.DMPQ_10000, 70),
        (ways.DMPQ_5000, 80),
        (ways.DMPQ_1443, 70),
        (ways.DMPQ_1000, 100),
        (ways.PREEMPTIVE, None),
    ],
    ids=lambda value: getattr(value, "key", value),
)
def test_packets_for_one_standard_message(way: ways.Series, packets: int | None) -> None:
    assert packets_of_standard(way) == packets


@pytest.mark.parametrize("way", [ways.PQ_PC, ways.DMPQ_10000, ways.DMPQ_1443], ids=lambda w: w.key)
def test_the_measurements_of_the_thesis_agree_with_its_model(way: ways.Series) -> None:
    computed = bound(way, LARGEST_DELAY_RATE * 1_000.0)
    assert computed is not None
    assert LARGEST_DELAY_S[way.key] == pytest.approx(computed.before_s + computed.each_s, rel=0.1)


def test_default_has_a_bound_only_where_the_link_carries_what_is_offered() -> None:
    assert bound(ways.DEFAULT, 10_000) is None
    assert bound(ways.DEFAULT, 11_000) is not None


def test_at_7_kbps_the_delay_of_default_grows_by_half_a_second_each_second() -> None:
    assert growth(7_000) == pytest.approx(0.51, abs=0.01)
    assert growth(20_000) == 0


@given(st.floats(1_000, 1e6), st.sampled_from(ways.ALL))
def test_a_faster_link_is_never_worse(rate: float, way: ways.Series) -> None:
    assert load(rate * 1.1) < load(rate)
    slow, fast = bound(way, rate), bound(way, rate * 1.1)
    if slow is not None:
        assert fast is not None
        assert fast.before_s + fast.each_s < slow.before_s + slow.each_s


def test_each_smaller_dv_bounds_the_delay_further() -> None:
    bounds = [bound(way, 7_000.0) for way in (ways.PQ_PC, *ways.THESIS[2:])]
    before = [one.before_s for one in bounds if one]
    assert before == sorted(before, reverse=True)
    assert len(before) == 5
