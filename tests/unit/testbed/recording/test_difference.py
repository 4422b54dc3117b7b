"""Two sequences of publications differ in missing ones, extra ones, and those at another time."""

from dataclasses import replace
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from testbed.recording.difference import difference
from testbed.scenario import Publication

ALERT = Publication(1_000, "sensor", "alerts", 5, 100)
WITHIN_NS = 10


def test_the_same_publications_within_the_limit_are_no_difference() -> None:
    differences = difference([ALERT], [replace(ALERT, at_ns=1_010)], WITHIN_NS)
    assert differences.empty
    assert (differences.same, differences.farthest_ns) == (1, 10)
    assert differences.as_json()["empty"] is True


def test_another_time_or_another_size_is_reported_as_a_difference() -> None:
    late, fat = replace(ALERT, at_ns=1_011), replace(ALERT, size=101)
    differences = difference([ALERT], [late], WITHIN_NS)
    assert [(each.publication, each.by_ns) for each in differences.moved] == [(ALERT, 11)]
    assert not differences.empty
    differences = difference([ALERT, ALERT], [ALERT, fat], WITHIN_NS)
    assert (differences.same, differences.missing, differences.extra) == (1, (ALERT,), (fat,))
    assert differences.as_json()["extra"] == [
        {"at_s": 1e-6, "node": "sensor", "topic": "alerts", "priority": 5, "size": 101}
    ]


def test_a_missing_publication_does_not_shift_the_others() -> None:
    row = [replace(ALERT, at_ns=place * 1_000) for place in range(5)]
    differences = difference(row, row[:2] + row[3:], WITHIN_NS)
    assert (differences.same, differences.missing, differences.moved) == (4, (row[2],), ())


moments = st.lists(st.integers(0, 60), max_size=5)


@given(moments, moments)
def test_no_matching_finds_more_equal_publications(one, two) -> None:
    """Compared with all possible matchings."""

    def row(times: list[int]) -> list[Publication]:
        return [replace(ALERT, at_ns=at) for at in times]

    few, many = sorted((one, two), key=len)
    best = max(
        sum(abs(a - b) <= WITHIN_NS for a, b in zip(few, order, strict=False))
        for order in permutations(many, len(few))
    )
    differences = difference(row(one), row(two), WITHIN_NS)
    assert differences.same == best
    assert differences.same + len(differences.moved) + len(differences.missing) == len(one)
    assert differences.same + len(differences.moved) + len(differences.extra) == len(two)
    assert differences.empty is (sorted(one) == sorted(two) or (best == len(one) == len(two)))


@given(moments)
def test_a_sequence_equals_itself_and_differs_entirely_from_an_empty_one(times) -> None:
    row = [replace(ALERT, at_ns=at, node=f"n{at % 3}") for at in times]
    assert difference(row, row[::-1], 0).empty
    assert len(difference(row, [], 0).missing) == len(difference([], row, 0).extra) == len(row)
