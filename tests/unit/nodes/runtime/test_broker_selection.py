"""Which broker is called next: nobody is stormed, nobody is left without trying all."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nodes.runtime.broker_selection import CAP_S, FIRST_S, STARTING_S, Backoff, BrokerSelection
from nodes.runtime.config import BrokerAddress, Endpoint

BROKERS = [BrokerAddress(f"b{i}", i, Endpoint("127.0.0.1", 9000)) for i in (1, 2, 3)]


def selection(brokers: int = 3) -> BrokerSelection:
    return BrokerSelection(BROKERS[:brokers], Backoff(Random(7)))


def test_a_node_that_starts_calls_the_nearest_for_a_while_before_it_calls_another() -> None:
    calls = selection()
    passed = 0.0
    while calls.next.name == "b1":
        passed += calls.on_unreachable(took_s=0.01) + 0.01
    assert STARTING_S <= passed <= STARTING_S + CAP_S
    assert calls.next.name == "b2"
    calls.on_unreachable()
    assert calls.next.name == "b3"


def test_a_nearest_broker_that_does_not_answer_at_all_is_called_once() -> None:
    calls = selection()
    calls.on_unreachable(took_s=10.0)
    assert calls.next.name == "b2"


def test_the_nearest_is_called_first_then_the_others_round_and_round() -> None:
    calls = selection()
    names = []
    for _ in range(5):
        names.append(calls.next.name)
        calls.on_unreachable(took_s=10.0)
    assert names == ["b1", "b2", "b3", "b1", "b2"]


def test_a_broker_whose_link_broke_is_called_once_more() -> None:
    calls = selection()
    calls.on_unreachable(took_s=10.0)
    calls.on_link_lost(lived_s=60, leave=False)
    assert FIRST_S / 2 <= calls.on_link_lost(lived_s=60, leave=False) <= FIRST_S
    assert calls.next.name == "b2"
    calls.on_unreachable()
    assert calls.next.name == "b3"


def test_who_is_sent_away_or_gave_a_silent_broker_up_calls_the_next_one_at_once() -> None:
    calls = selection()
    assert calls.on_link_lost(lived_s=0.1, leave=True) == 0
    assert calls.next.name == "b2"


def test_if_it_must_leave_all_brokers_it_waits() -> None:
    calls = selection()
    waits = [calls.on_link_lost(lived_s=0.1, leave=True) for _ in range(6)]
    assert waits[:2] == [0, 0]
    assert all(waits[2:])
    assert calls.on_link_lost(lived_s=2 * CAP_S, leave=True) == 0


def test_with_one_broker_there_is_nobody_else_to_call() -> None:
    calls = selection(brokers=1)
    assert calls.on_link_lost(lived_s=60, leave=True) >= FIRST_S / 2
    assert calls.next.name == "b1"


@given(st.lists(st.sampled_from(["unreachable", "lost", "away"]), min_size=20, max_size=60))
def test_whatever_happens_no_more_than_a_round_of_calls_goes_without_waiting(
    story: list[str],
) -> None:
    calls = selection()
    waits = []
    for what in story:
        if what == "unreachable":
            waits.append(calls.on_unreachable())
        else:
            waits.append(calls.on_link_lost(lived_s=0.1, leave=what == "away"))
    assert waits.count(0) < len(BROKERS)
