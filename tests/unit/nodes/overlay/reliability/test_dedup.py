"""The dedup window never takes a new message for a repetition, and its size is limited."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.reliability.dedup import (
    MAX_ORIGINS,
    MAX_RECENT_DELIVERIES,
    WINDOW,
    DedupWindow,
    DeliveryRecord,
    RecentDeliveries,
)
from nodes.protocol.wire import message_id


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, WINDOW - 1)), max_size=60))
def test_within_the_window_every_repetition_is_recognised(ids: list[tuple[int, int]]) -> None:
    window, model = DedupWindow(), set()
    for origin, counter in ids:
        assert window.add(message_id(origin, counter)) == ((origin, counter) not in model)
        model.add((origin, counter))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=60))
def test_a_new_message_is_never_taken_for_a_repetition(counters: list[int]) -> None:
    window, model = DedupWindow(), set()
    for counter in counters:
        new = window.add(message_id(1, counter))
        assert new or counter in model
        model.add(counter)


def test_forged_origins_do_not_fill_the_memory_and_active_origins_are_not_forgotten() -> None:
    window = DedupWindow()
    assert window.add(message_id(0, 1))
    assert window.add(message_id(1, 1))
    for origin in range(2, 3 * MAX_ORIGINS):
        assert window.add(message_id(origin, 1))
        assert not window.add(message_id(0, 1))
    assert window.origins == MAX_ORIGINS
    assert window.add(message_id(1, 1))  # so old that it counts as new


def test_the_newest_deliveries_with_custody_are_remembered_and_the_oldest_dropped() -> None:
    deliveries = RecentDeliveries()
    for counter in range(MAX_RECENT_DELIVERIES + 1):
        deliveries.add(DeliveryRecord(message_id(1, counter), "rain", 5, float(counter)))
    assert message_id(1, 0) not in deliveries
    assert message_id(1, 1) in deliveries
    newest = deliveries.since(MAX_RECENT_DELIVERIES - 1.0, ["rain", "tilt"])
    assert newest == {
        "rain": [message_id(1, MAX_RECENT_DELIVERIES), message_id(1, MAX_RECENT_DELIVERIES - 1)],
        "tilt": [],
    }
