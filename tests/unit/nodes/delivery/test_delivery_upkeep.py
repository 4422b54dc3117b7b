"""Upkeep messages of the overlay do not delay alerts, and publications do not displace them."""

import pytest

from nodes.delivery import METHODS
from nodes.delivery.base import CONTROL_BYTES, Queued, Scheduler
from nodes.protocol.wire import Kind, Message, encode

URGENT_FIRST = ["pq-pc", "dmpq-pc", "preemptive"]


def upkeep(number: int) -> bytes:
    return encode(Message(Kind.OVERLAY, message_id=number, payload=bytes(100)))


def publication(level: int) -> bytes:
    return encode(Message(Kind.PUBLISH, priority=level, topic="slope"))


def link_up(method: str, **parameters: int) -> Scheduler:
    scheduler = METHODS[method].scheduler(parameters)
    scheduler.on_link_up(1444, 0.0)
    return scheduler


def order_on_a_busy_link(scheduler: Scheduler, method: str) -> list[bytes]:
    """The messages in the order of their arrival; the link takes the next piece when it has sent the last."""
    assembler = METHODS[method].assembler({})
    now, arrived = 0.0, list[bytes]()
    while scheduler.queued.messages:
        if (chunk := scheduler.next_chunk(now)) is not None:
            arrived += assembler.on_chunk(chunk)
            scheduler.on_progress(len(chunk.data), now, 0.1)
        now += 0.1
        scheduler.on_progress(0, now, 0.1)
    return arrived


@pytest.mark.parametrize("method", URGENT_FIRST)
def test_an_emergency_overtakes_upkeep_that_waits(method: str) -> None:
    scheduler = link_up(method)
    row = [upkeep(number) for number in range(20)]
    for data in row:
        scheduler.offer(data, 1, 0.0, upkeep=True)
    under_way = scheduler.next_chunk(0.0)
    assert under_way is not None
    scheduler.offer(publication(5), 5, 0.0)
    arrived = order_on_a_busy_link(scheduler, method)
    before = arrived[: arrived.index(publication(5))]
    assert before == [data for data in row if data in under_way.data]  # no more than that
    assert len(before) < len(row)
    assert [data for data in arrived if data in row] == row


@pytest.mark.parametrize("method", URGENT_FIRST)
def test_upkeep_goes_before_routine_and_among_orders_to_evacuate_in_the_order_of_coming(
    method: str,
) -> None:
    scheduler = link_up(method)
    scheduler.offer(publication(1), 1, 0.0)
    scheduler.offer(publication(3), 3, 0.0)
    scheduler.offer(upkeep(1), 1, 0.0, upkeep=True)
    scheduler.offer(publication(4), 4, 0.0)
    scheduler.offer(upkeep(2), 1, 0.0, upkeep=True)
    scheduler.offer(b"taken", 1, 0.0, control=True)
    assert order_on_a_busy_link(scheduler, method) == [
        b"taken",
        upkeep(1),
        publication(4),
        upkeep(2),
        publication(3),
        publication(1),
    ]


def test_under_fifo_it_waits_for_its_turn() -> None:
    scheduler = link_up("fifo")
    scheduler.offer(publication(1), 1, 0.0)
    scheduler.offer(upkeep(1), 1, 0.0, upkeep=True)
    scheduler.offer(publication(5), 5, 0.0)
    assert order_on_a_busy_link(scheduler, "fifo") == [publication(1), upkeep(1), publication(5)]


@pytest.mark.parametrize("method", METHODS)
def test_a_queue_full_of_publications_accepts_upkeep_but_not_without_end(method: str) -> None:
    scheduler = link_up(method, limit_bytes=100)
    assert scheduler.offer(bytes(100), 4, 0.0) == ()
    assert scheduler.offer(bytes(CONTROL_BYTES), 1, 0.0, upkeep=True) == ()
    (dropped,) = scheduler.offer(b"more", 1, 0.0, upkeep=True)
    assert dropped.data == b"more"


@pytest.mark.parametrize("method", URGENT_FIRST)
def test_publications_are_evicted_for_emergencies_but_upkeep_is_not(method: str) -> None:
    scheduler = link_up(method, limit_bytes=100)
    scheduler.offer(b"d" * 100, 4, 0.0)
    scheduler.offer(upkeep(1), 1, 0.0, upkeep=True)
    (dropped,) = scheduler.offer(b"e" * 60, 5, 0.0)
    assert dropped.data == b"d" * 100
    assert scheduler.queued == Queued(2, 60 + len(upkeep(1)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("orderly", [False, True])
def test_upkeep_goes_with_a_connection_that_breaks_and_outlives_one_that_was_closed_in_order(
    method: str, orderly: bool
) -> None:
    scheduler = link_up(method)
    scheduler.offer(upkeep(1), 1, 0.0, upkeep=True)
    scheduler.offer(publication(5), 5, 0.0)
    scheduler.offer(b"taken", 1, 0.0, control=True)
    scheduler.next_chunk(0.0)
    scheduler.on_link_lost(0.0, orderly=orderly)
    scheduler.on_link_up(1444, 0.0)
    arrived = set(order_on_a_busy_link(scheduler, method))
    assert arrived == {publication(5)} | ({upkeep(1), b"taken"} if orderly else set())
