"""Boxes and the spans of the curve that they cover, compared with every point of a small space."""

from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodes.overlay.zorder_map.curve import Cell, cells, interleave, intervals, next_within
from nodes.protocol.regions import Box, Interval

BITS_OF = {1: 6, 2: 4, 3: 3, 4: 2}  # dimensions -> bits: spaces small enough to check each point


@st.composite
def boxes(draw: st.DrawFn, dimensions: int | None = None) -> Box:
    dimensions = dimensions or draw(st.integers(1, 4))
    side = st.integers(0, 2 ** BITS_OF[dimensions] - 1)
    ends = [sorted(draw(st.tuples(side, side))) for _ in range(dimensions)]
    return Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))


def bits_of(box: Box) -> int:
    return BITS_OF[len(box.low)]


def points_of(box: Box) -> set[tuple[int, ...]]:
    sides = (range(low, high + 1) for low, high in zip(box.low, box.high, strict=True))
    return set(product(*sides))


def numbers_of(box: Box) -> list[int]:
    return sorted(interleave(point, bits_of(box)) for point in points_of(box))


def every_gap(numbers: list[int]) -> list[Interval]:
    return [(a + 1, b - 1) for a, b in pairwise(numbers) if b - a > 1]


def held(stretches: list[Interval]) -> list[int]:
    return [z for first, last in stretches for z in range(first, last + 1)]


@given(boxes())
@example(Box((0, 0), (15, 15)))
@example(Box((7, 7), (8, 8)))
def test_the_intervals_hold_the_box_and_nothing_else(box: Box) -> None:
    stretches = intervals(box, bits_of(box), None)
    assert held(stretches) == numbers_of(box)
    assert all(b - a > 1 for (_, a), (b, _) in pairwise(stretches))


@given(boxes(), st.integers(1, 12))
def test_of_too_many_intervals_those_with_the_smallest_gaps_are_joined(box: Box, most: int) -> None:
    stretches = intervals(box, bits_of(box), most)
    numbers = numbers_of(box)
    gaps = every_gap(numbers)
    assert len(stretches) == min(most, len(gaps) + 1)
    assert set(numbers) <= set(held(stretches))
    left_out = [(a + 1, b - 1) for (_, a), (b, _) in pairwise(stretches)]
    assert set(left_out) <= set(gaps)
    sizes = sorted((last - first + 1 for first, last in gaps), reverse=True)
    assert sorted((b - a + 1 for a, b in left_out), reverse=True) == sizes[: most - 1]
    assert (stretches[0][0], stretches[-1][1]) == (numbers[0], numbers[-1])


def numbers_in(cell: Cell) -> list[int]:
    return list(range(cell.prefix << cell.shift, (cell.prefix + 1) << cell.shift))


@given(boxes())
def test_the_cells_hold_each_point_of_the_box_once_and_nothing_else(box: Box) -> None:
    found = cells(box, bits_of(box), None)
    assert sorted(z for cell in found for z in numbers_in(cell)) == numbers_of(box)
    assert all(cell.inside for cell in found)


@given(boxes(), st.integers(1, 12))
def test_a_few_cells_hold_the_box_and_say_which_of_them_lie_inside(box: Box, most: int) -> None:
    found = cells(box, bits_of(box), most)
    assert len(found) <= most
    every = [z for cell in found for z in numbers_in(cell)]
    assert len(every) == len(set(every))
    numbers = set(numbers_of(box))
    assert numbers <= set(every)
    for cell in found:
        assert cell.inside == (set(numbers_in(cell)) <= numbers)
        assert set(numbers_in(cell)) & numbers


@given(boxes(), st.integers(0, 40))
def test_cells_that_are_not_cut_further_hold_no_more_than_allowed(box: Box, spare: int) -> None:
    found = cells(box, bits_of(box), None, spare)
    numbers = set(numbers_of(box))
    assert numbers <= {z for cell in found for z in numbers_in(cell)}
    assert all(len(set(numbers_in(cell)) - numbers) <= spare for cell in found)


@given(boxes(), st.integers(0, 300))
def test_the_next_number_in_a_box(box: Box, z: int) -> None:
    expected = next((number for number in numbers_of(box) if number >= z), None)
    assert next_within(box, z, bits_of(box)) == expected


@given(st.data())
def test_a_box_contains_its_points_and_meets_what_shares_one(data: st.DataObject) -> None:
    dimensions = data.draw(st.integers(1, 4))
    one, other = data.draw(boxes(dimensions)), data.draw(boxes(dimensions))
    everywhere = product(range(2 ** BITS_OF[dimensions]), repeat=dimensions)
    assert {point for point in everywhere if one.contains(point)} == points_of(one)
    assert one.size == len(points_of(one))
    assert one.meets(other) == other.meets(one) == bool(points_of(one) & points_of(other))


@pytest.mark.parametrize(
    ("box", "bits", "stretches"),
    [
        (Box((0, 0), (1023, 1023)), 10, [(0, 2**20 - 1)]),
        (Box((0, 0), (511, 1023)), 10, [(0, 2**19 - 1)]),
        (Box((1, 0), (2, 3)), 2, [(2, 3), (6, 9), (12, 13)]),
        (Box((5, 6), (5, 6)), 3, [(0b110110, 0b110110)]),
        (Box((10,), (700,)), 10, [(10, 700)]),
    ],
)
def test_known_boxes(box: Box, bits: int, stretches: list[Interval]) -> None:
    assert intervals(box, bits, None) == stretches


def test_a_box_of_a_huge_space_is_split_as_far_as_asked() -> None:
    box = Box((1, 1), (2**32 - 2, 2**32 - 2))  # exactly: more spans than there is memory for
    stretches = intervals(box, 32, 8)
    assert len(stretches) == 8
    assert (stretches[0][0], stretches[-1][1]) == (3, 2**64 - 4)


@pytest.mark.parametrize(("low", "high"), [((3, 2), (4, 1)), ((1,), (0,))])
def test_a_box_without_points_is_refused(low: tuple[int, ...], high: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="holds no point"):
        Box(low, high)


@pytest.mark.parametrize(("low", "high"), [((), ()), ((1,), (2, 3))])
def test_corners_of_different_spaces_are_refused(
    low: tuple[int, ...], high: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="no corners of one box"):
        Box(low, high)


def test_a_limit_of_0_intervals_is_refused() -> None:
    for split in (intervals, cells):
        with pytest.raises(ValueError, match="at least one"):
            split(Box((0,), (1,)), 1, 0)
