"""Values and coordinates: the order of values stays, ends stay ends, and a box holds what its ranges hold."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.space import AREA, Dimension, Space
from nodes.protocol.wire import MAX_COORDINATE

values = st.floats(-1e6, 1e6)
degrees = st.integers(-9000, 9000).map(lambda hundredths: hundredths / 100)
ranges = st.tuples(degrees, degrees).map(lambda pair: (min(pair), max(pair)))


@st.composite
def dimensions(draw: st.DrawFn) -> Dimension:
    low, high = sorted((draw(values), draw(values)))
    return Dimension("tilt", low, high)


@given(dimensions(), values, values)
def test_the_scale_never_turns_the_order_around(tilt: Dimension, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= tilt.coordinate(low) <= tilt.coordinate(high) <= MAX_COORDINATE


@given(dimensions(), values)
def test_a_value_outside_the_range_counts_as_the_nearest_end(tilt: Dimension, value: float) -> None:
    if value <= tilt.low:
        assert tilt.coordinate(value) == 0
    if value >= tilt.high > tilt.low:
        assert tilt.coordinate(value) == MAX_COORDINATE
    assert tilt.holds(value) == (tilt.low <= value <= tilt.high)


@given(st.integers(-180, 179), st.integers(1, 180), st.integers(0, MAX_COORDINATE))
def test_a_coordinate_comes_back_from_its_value(low: int, length: int, coordinate: int) -> None:
    one = Dimension("longitude", low, low + length)
    assert one.coordinate(one.value(coordinate)) == coordinate
    assert one.holds(one.value(coordinate))


@given(dimensions(), values)
def test_a_value_comes_back_to_within_one_step(tilt: Dimension, value: float) -> None:
    inside = min(max(value, tilt.low), tilt.high)
    step = (Fraction(tilt.high) - Fraction(tilt.low)) / MAX_COORDINATE
    found = tilt.value(tilt.coordinate(inside))
    assert abs(Fraction(found) - Fraction(inside)) <= step + Fraction(1, 10**9)


@given(ranges, ranges, ranges, degrees, degrees, degrees)
def test_a_box_holds_the_places_whose_values_lie_in_its_ranges(
    across: tuple[float, float],
    along: tuple[float, float],
    tilted: tuple[float, float],
    latitude: float,
    longitude: float,
    tilt: float,
) -> None:
    space = Space(
        (
            Dimension("latitude", -90, 90),
            Dimension("longitude", -90, 90),
            Dimension("tilt", -90, 90),
        )
    )
    wanted = dict(zip((*AREA, "tilt"), (across, along, tilted), strict=True))
    given_values = zip((latitude, longitude, tilt), wanted.values(), strict=True)
    inside = all(low <= value <= high for value, (low, high) in given_values)
    place = space.place((latitude, longitude), {"tilt": tilt})
    assert space.box(wanted).contains(place) == inside
    assert space.box({}).contains(place)


def test_a_value_that_is_not_given_counts_as_the_lowest() -> None:
    space = Space((Dimension("latitude", 33, 34), Dimension("longitude", 133, 134), RAIN))
    assert space.place((33.0, 134.0), {}) == (0, MAX_COORDINATE, 0)
    assert space.place((33.0, 134.0), {"rain": 200}) == (0, MAX_COORDINATE, MAX_COORDINATE)


RAIN = Dimension("rain", 10, 200)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Dimension("rain", 2, 1),
        lambda: Dimension("rain", float("nan"), 1),
        lambda: Dimension("rain", 0, float("inf")),
        lambda: Space((RAIN,)),
        lambda: Space((Dimension("longitude", 0, 1), Dimension("latitude", 0, 1))),
        lambda: Space((*(Dimension(name, 0, 1) for name in AREA), RAIN, RAIN)),
        lambda: Space(tuple(Dimension(name, 0, 1) for name in (*AREA, *"abcdefg"))),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match=r"nowhere|come first|at most 8"):
        wrong()
