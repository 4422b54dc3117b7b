"""Sets of points as stretches of the curve: as the sets of numbers that they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.regions import EMPTY, Spans

BITS = 6
stretches = st.tuples(st.integers(0, 63), st.integers(0, 63)).map(lambda ends: tuple(sorted(ends)))
several = st.lists(stretches, max_size=6).map(Spans)


def numbers(spans: Spans) -> set[int]:
    return {number for first, last in spans for number in range(first, last + 1)}


@given(several, several)
def test_they_are_joined_and_cut_as_sets_are(one: Spans, other: Spans) -> None:
    assert numbers(one | other) == numbers(one) | numbers(other)
    assert numbers(one & other) == numbers(one) & numbers(other)
    assert numbers(one - other) == numbers(one) - numbers(other)
    assert one.meets(other) == bool(numbers(one) & numbers(other))
    assert (one == other) == (numbers(one) == numbers(other))


@given(several)
def test_stretches_are_sorted_and_none_touches_the_next(spans: Spans) -> None:
    ends = [end for stretch in spans for end in stretch]
    assert ends == sorted(ends)
    assert all(
        after > before + 1 for (_, before), (after, _) in zip(spans, list(spans)[1:], strict=False)
    )
    assert spans.size == len(numbers(spans))
    assert bool(spans) == (spans != EMPTY)


@given(several, st.integers(0, 63))
def test_a_number_lies_in_one_stretch_or_in_none(spans: Spans, number: int) -> None:
    stretch = spans.stretch_at(number)
    assert (number in spans) == (number in numbers(spans)) == (stretch is not None)
    if stretch is not None:
        assert stretch in list(spans)
        assert stretch[0] <= number <= stretch[1]


@given(st.integers(0, 63), st.integers(0, 63))
def test_around_the_ring_two_areas_make_the_whole(first: int, behind: int) -> None:
    area, rest = Spans.around(first, behind, BITS), Spans.around(behind, first, BITS)
    if first == behind:
        assert numbers(area) == set(range(64))
    else:
        assert not area.meets(rest)
        assert numbers(area | rest) == set(range(64))
        assert first in area
        assert behind not in area
