"""The Z-order curve: known points, there and back, and the bits in the order of the paper."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.zorder_map.curve import deinterleave, interleave


@st.composite
def points(draw: st.DrawFn) -> tuple[tuple[int, ...], int]:
    """A point and how many bits its coordinates have."""
    bits = draw(st.integers(1, 40))
    dimensions = draw(st.integers(1, 9))
    coordinate = st.integers(0, 2**bits - 1)
    return draw(st.tuples(*[coordinate] * dimensions)), bits


@pytest.mark.parametrize(
    ("point", "bits", "z"),
    [
        ((0, 0), 10, 0),
        ((0b0, 0b1), 1, 0b01),
        ((0b1, 0b0), 1, 0b10),
        ((0b011, 0b101), 3, 0b011011),
        ((2**10 - 1, 0), 10, 0b10101010101010101010),
        ((2**10 - 1, 2**10 - 1), 10, 2**20 - 1),
        ((0x1234,), 16, 0x1234),
        ((0b100, 0b010, 0b001), 3, 0b100_010_001),
    ],
)
def test_known_points(point: tuple[int, ...], bits: int, z: int) -> None:
    assert interleave(point, bits) == z
    assert deinterleave(z, len(point), bits) == point


def test_the_curve_of_a_square_is_a_z_in_each_quarter() -> None:
    assert [deinterleave(z, 2, 2) for z in range(8)] == [
        *[(0, 0), (0, 1), (1, 0), (1, 1)],
        *[(0, 2), (0, 3), (1, 2), (1, 3)],
    ]


@given(points())
def test_the_bits_stand_in_turn_the_most_significant_first(
    drawn: tuple[tuple[int, ...], int],
) -> None:
    point, bits = drawn
    in_turn = "".join(
        str(coordinate >> bit & 1) for bit in reversed(range(bits)) for coordinate in point
    )
    assert interleave(point, bits) == int(in_turn, 2)


@given(points())
def test_there_and_back(drawn: tuple[tuple[int, ...], int]) -> None:
    point, bits = drawn
    assert deinterleave(interleave(point, bits), len(point), bits) == point


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 5), (2, 3), (3, 2), (4, 2)])
def test_each_point_of_a_space_has_one_place(dimensions: int, bits: int) -> None:
    places = [interleave(point, bits) for point in product(range(2**bits), repeat=dimensions)]
    assert sorted(places) == list(range(2 ** (bits * dimensions)))


@given(points(), st.data())
def test_the_number_never_falls_when_a_coordinate_grows(
    drawn: tuple[tuple[int, ...], int], data: st.DataObject
) -> None:
    point, bits = drawn
    further = tuple(data.draw(st.integers(each, 2**bits - 1)) for each in point)
    assert interleave(point, bits) <= interleave(further, bits)


@pytest.mark.parametrize("point", [(8, 0), (0, 8), (-1, 0)])
def test_a_point_outside_of_the_space_is_refused(point: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit into 3 bits"):
        interleave(point, 3)


@pytest.mark.parametrize("z", [64, -1])
def test_a_number_that_is_not_on_the_curve_is_refused(z: int) -> None:
    with pytest.raises(ValueError, match="not on the curve"):
        deinterleave(z, 2, 3)


def test_a_point_without_dimensions_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one dimension"):
        interleave((), 3)
    with pytest.raises(ValueError, match="at least one dimension"):
        deinterleave(0, 0, 3)
