"""No level starves under preemptive: the bound that its docstring states."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.delivery import METHODS
from nodes.delivery.preemptive import Turns

levels = st.sets(st.integers(1, 5), min_size=1)


@given(
    share_every=st.integers(2, 9),
    before=st.lists(levels, max_size=40),
    patient=st.integers(1, 5),
    others=st.lists(levels, min_size=37, max_size=37),
)
@settings(deadline=None, max_examples=60)
def test_a_level_that_waits_gets_one_of_any_four_times_so_many_pieces_and_one(
    share_every: int, before: list[set[int]], patient: int, others: list[set[int]]
) -> None:
    turns = Turns(share_every)
    for waiting in before:
        turns.next_level(sorted(waiting, reverse=True))
    chosen = [
        turns.next_level(sorted(waiting | {patient}, reverse=True))
        for waiting in others[: 4 * share_every + 1]
    ]
    assert patient in chosen


def test_a_level_passed_over_in_every_way_gets_its_turn() -> None:
    turns = Turns(2)
    taken = [turns.next_level([5, 3] if turn % 2 == 0 else [3, 1]) for turn in range(9)]
    assert 3 in taken


@given(share_every=st.integers(2, 9), waits=st.lists(levels, min_size=60, max_size=60))
@settings(deadline=None, max_examples=60)
def test_the_most_urgent_loses_at_most_one_of_so_many_pieces(
    share_every: int, waits: list[set[int]]
) -> None:
    turns = Turns(share_every)
    lost = [turns.next_level(sorted(waiting, reverse=True)) < max(waiting) for waiting in waits]
    for begin in range(len(lost) - share_every + 1):
        assert sum(lost[begin : begin + share_every]) <= 1


@pytest.mark.parametrize(("share_every", "routine"), [(16, 1), (4, 4), (0, 0)])
def test_the_share_of_a_low_level_beside_an_endless_high_one(
    share_every: int, routine: int
) -> None:
    scheduler = METHODS["preemptive"].scheduler({"share_every": share_every, "dv": 10})
    scheduler.on_link_up(1444, 0.0)
    scheduler.offer(bytes(1_000), 1, 0.0)
    scheduler.offer(bytes(1_000), 4, 0.0)
    taken = []
    for _ in range(16):
        chunk = scheduler.next_chunk(0.0)
        assert chunk is not None
        taken.append(chunk.data[0] & 0b111)
        scheduler.on_progress(0, 0.0)
    assert taken.count(1) == routine
    assert taken.count(4) == 16 - routine
