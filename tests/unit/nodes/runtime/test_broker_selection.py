"""Which broker a client calls next: it overloads no broker, and tries all of them."""

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


def test_a_client_that_must_leave_its_broker_calls_the_next_one_at_once() -> None:
    calls = selection()
    assert calls.on_link_lost(lived_s=0.1, leave=True) == 0
    assert calls.next.name == "b2"


def test_a_client_that_must_leave_all_brokers_waits() -> None:
    calls = selection()
    waits = [calls.on_link_lost(lived_s=0.1, leave=True) for _ in range(6)]
    assert waits[:2] == [0, 0]
    assert all(waits[2:])
    assert calls.on_link_lost(lived_s=2 * CAP_S, leave=True) == 0


def test_with_a_single_broker_the_client_calls_it_again_after_a_wait() -> None:
    calls = selection(brokers=1)
    assert calls.on_link_lost(lived_s=60, leave=True) >= FIRST_S / 2
    assert calls.next.name == "b1"


@given(st.lists(st.sampled_from(["unreachable", "lost", "away"]), min_size=20, max_size=60))
def test_any_sequence_of_failures_has_less_than_a_round_of_calls_without_waiting(
    failures: list[str],
) -> None:
    calls = selection()
    waits = []
    for what in failures:
        if what == "unreachable":
            waits.append(calls.on_unreachable())
        else:
            waits.append(calls.on_link_lost(lived_s=0.1, leave=what == "away"))
    assert waits.count(0) < len(BROKERS)
