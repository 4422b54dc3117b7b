"""When the queue is full: the newest of the lowest level goes first, and nothing goes silently."""

import pytest

from nodes.delivery import METHODS
from nodes.delivery.base import Dropped, Scheduler

URGENT_FIRST = ["pq-pc", "dmpq-pc", "preemptive"]


def full(method: str) -> Scheduler:
    """100 bytes: two of level 1, one of level 2, one of level 4."""
    scheduler = METHODS[method].scheduler({"limit_bytes": 100})
    scheduler.on_link_up(1444, 0.0)
    for data, level in ((b"a" * 30, 1), (b"b" * 20, 2), (b"c" * 30, 1), (b"d" * 20, 4)):
        assert scheduler.offer(data, level, 0.0) == ()
    return scheduler


@pytest.mark.parametrize("method", URGENT_FIRST)
def test_the_newest_message_of_the_lowest_level_is_evicted(method: str) -> None:
    reason = "made room for a message of level 5"
    assert full(method).offer(b"e" * 30, 5, 0.0) == (Dropped(b"c" * 30, 1, reason),)
    assert full(method).offer(b"e" * 70, 5, 0.0) == (
        Dropped(b"c" * 30, 1, reason),
        Dropped(b"a" * 30, 1, reason),
        Dropped(b"b" * 20, 2, reason),
    )


@pytest.mark.parametrize("method", URGENT_FIRST)
def test_nothing_is_dropped_in_vain_and_never_the_same_level(method: str) -> None:
    scheduler = full(method)
    for data, level in ((b"e" * 81, 4), (b"e" * 101, 5), (b"e", 1)):
        reason = f"{len(data)} bytes do not fit: 100 of 100 are taken"
        assert scheduler.offer(data, level, 0.0) == (Dropped(data, level, reason),)
    assert scheduler.queued.messages == 4
    assert scheduler.queued.bytes == 100


def test_even_an_emergency_is_returned_when_it_cannot_be_kept() -> None:
    scheduler = METHODS["preemptive"].scheduler({"limit_bytes": 10})
    assert scheduler.offer(b"first five", 5, 0.0) == ()
    (dropped,) = scheduler.offer(b"next", 5, 0.0)
    assert dropped == Dropped(b"next", 5, "4 bytes do not fit: 10 of 10 are taken")


@pytest.mark.parametrize("method", URGENT_FIRST)
@pytest.mark.parametrize("given_out_only", [True, False])
def test_a_message_that_is_partly_sent_is_not_evicted(method: str, given_out_only: bool) -> None:
    scheduler = METHODS[method].scheduler({"limit_bytes": 5000})
    scheduler.on_link_up(1444, 0.0)
    scheduler.offer(b"a" * 4000, 1, 0.0)
    scheduler.next_chunk(0.0)
    if method != "pq-pc" and not given_out_only:
        scheduler.on_progress(0, 0.0)
    (dropped,) = scheduler.offer(b"e" * 2000, 5, 0.0)
    assert dropped.priority == 5
    assert scheduler.offer(b"e" * 1000, 5, 0.0) == ()
