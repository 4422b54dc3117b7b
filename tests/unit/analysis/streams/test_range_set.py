"""The range set, compared with a set of single bytes."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.streams.range_set import RangeSet

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=30)


def bytes_of(ranges: list[tuple[int, int]]) -> set[int]:
    return {byte for low, high in ranges for byte in range(low, high)}


@given(RANGES)
def test_new_and_missing_ranges_equal_those_of_a_set_of_bytes(
    segments: list[tuple[int, int]],
) -> None:
    ranges, seen = RangeSet(), set[int]()
    for low, size in segments:
        these = set(range(low, low + size))
        assert bytes_of(ranges.add(low, low + size)) == these - seen
        seen |= these
        assert bytes_of(ranges.gaps(0)) == set(range(max(seen, default=-1) + 1)) - seen
    assert bool(ranges) == bool(seen)
    assert ranges.lowest == min(seen, default=0)
    assert ranges.has_gaps == bool(set(range(ranges.lowest, max(seen, default=0))) - seen)
    for place in seen:
        whole = place
        while whole in seen:
            whole += 1
        assert ranges.contiguous_end(place) == whole


@given(RANGES, st.integers(1, 60), RANGES)
def test_released_bytes_count_as_seen(
    segments: list[tuple[int, int]], place: int, more: list[tuple[int, int]]
) -> None:
    ranges, plain = RangeSet(), RangeSet()
    for low, size in segments:
        ranges.add(low, low + size)
        plain.add(low, low + size)
    ranges.release(place)
    plain.add(0, place)
    for low, size in more:
        new = plain.add(max(low, place), low + size)
        assert ranges.add(max(low, place), low + size) == new
    assert ranges.gaps(place) == plain.gaps(0)
