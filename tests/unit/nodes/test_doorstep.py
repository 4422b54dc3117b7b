"""Who stands at a broker's door without a proof, and how much is said of those who are turned away."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.runtime.broker import LINES_AT_ONCE, Complaints, Doorstep


def test_all_may_stand_there_while_there_is_room() -> None:
    doorstep: Doorstep[int] = Doorstep(room=3)
    assert [doorstep.enter(visitor, "a") for visitor in (1, 2, 3)] == [None, None, None]
    doorstep.leave(2)
    assert doorstep.enter(4, "a") is None


def test_who_comes_with_many_takes_the_places_of_its_own() -> None:
    doorstep: Doorstep[int] = Doorstep(room=4)
    for visitor, address in ((1, "honest"), (2, "crowd"), (3, "crowd"), (4, "other")):
        doorstep.enter(visitor, address)
    assert [doorstep.enter(visitor, "crowd") for visitor in range(5, 9)] == [2, 3, 5, 6]
    assert doorstep.enter(9, "late but honest") == 7


Step = tuple[bool, int, str]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.sampled_from("abc"))),
    st.integers(1, 5),
)
def test_there_are_never_more_than_there_is_room_for_and_nobody_goes_without_need(
    steps: list[Step], room: int
) -> None:
    doorstep: Doorstep[int] = Doorstep(room)
    there: dict[int, str] = {}
    for comes, visitor, address in steps:
        if comes and visitor not in there:
            gone = doorstep.enter(visitor, address)
            there[visitor] = address
            assert (gone is not None) == (len(there) > room)
            if gone is not None:
                crowds = [list(there.values()).count(other) for other in there.values()]
                assert list(there.values()).count(there.pop(gone)) == max(crowds)
        elif not comes:
            doorstep.leave(visitor)
            there.pop(visitor, None)
        assert len(doorstep) == len(there) <= room


def test_a_flood_is_told_in_few_lines_and_none_is_forgotten() -> None:
    complaints = Complaints()
    told = [complaints.worth_a_line(1000 + event / 1000) for event in range(10_000)]
    lines = [unsaid for unsaid in told if unsaid is not None]
    assert LINES_AT_ONCE <= len(lines) <= LINES_AT_ONCE + 11
    last = complaints.worth_a_line(2000)
    assert last is not None
    assert sum(lines) + len(lines) + last == 10_000


def test_single_events_are_all_told() -> None:
    complaints = Complaints()
    assert [complaints.worth_a_line(2.0 * event) for event in range(500)] == [0] * 500
