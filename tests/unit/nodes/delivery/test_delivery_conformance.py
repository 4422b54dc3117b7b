"""The rules for every delivery method: runs on each registered one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.delivery import METHODS
from nodes.delivery.base import CONTROL_BYTES, Assembler, Chunk, Queued, Scheduler
from nodes.protocol.wire import (
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_TOPIC_BYTES,
    Kind,
    Message,
    encode,
)
from nodes.runtime.publisher import publication

offers = st.lists(st.tuples(st.binary(min_size=1, max_size=5000), st.integers(1, 5)), max_size=30)


PACKET_PAYLOAD = 1444  # bytes of a WebSocket message that fill one packet toward a client, MTU 1500


def both_sides(method: str, now: float = 0.0) -> tuple[Scheduler, Assembler]:
    """A link that is up, and its other end."""
    scheduler = METHODS[method].scheduler({})
    scheduler.on_link_up(PACKET_PAYLOAD, now)
    return scheduler, METHODS[method].assembler({})


def arriving(assembler: Assembler, chunks: list[Chunk]) -> list[bytes]:
    """The messages in these chunks."""
    return [whole for chunk in chunks for whole in assembler.on_chunk(chunk)]


def drain(scheduler: Scheduler, now: float = 0.0, most: int = 100_000) -> list[Chunk]:
    """All chunks, as over a link that accepts everything at once; time passes where the method waits for it."""
    chunks: list[Chunk] = []
    for _ in range(most):
        chunk = scheduler.next_chunk(now)
        if chunk is not None:
            chunks.append(chunk)
        elif scheduler.queued.messages == 0:
            return chunks
        else:
            deadline = scheduler.next_deadline()
            assert deadline is not None, "messages wait, but the scheduler has no deadline"
            now = max(now, deadline)
        scheduler.on_progress(0, now)
    raise AssertionError("the queue never became empty")


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers)
@settings(deadline=None)
def test_offered_messages_arrive_exactly_once_and_whole(
    method: str, messages: list[tuple[bytes, int]]
) -> None:
    scheduler, assembler = both_sides(method)
    for data, priority in messages:
        assert scheduler.offer(data, priority, 0.0) == ()
    arrived = arriving(assembler, drain(scheduler))
    assert sorted(arrived) == sorted(data for data, _ in messages)
    assert scheduler.queued == Queued(0, 0)


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers)
@settings(deadline=None)
def test_messages_of_one_priority_keep_their_order(
    method: str, messages: list[tuple[bytes, int]]
) -> None:
    scheduler, assembler = both_sides(method)
    for index, (data, _) in enumerate(messages):
        scheduler.offer(index.to_bytes(2) + data, 3, 0.0)
    arrived = arriving(assembler, drain(scheduler))
    assert [int.from_bytes(data[:2]) for data in arrived] == list(range(len(messages)))


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers, sent=st.integers(0, 40))
@settings(deadline=None)
def test_a_broken_link_loses_only_messages_that_had_left(
    method: str, messages: list[tuple[bytes, int]], sent: int
) -> None:
    scheduler, before = both_sides(method)
    for data, priority in messages:
        scheduler.offer(data, priority, 0.0)
    arrived = []
    for _ in range(sent):
        if (chunk := scheduler.next_chunk(0.0)) is not None:
            arrived += before.on_chunk(chunk)
        scheduler.on_progress(0, 0.0)
    scheduler.next_chunk(0.0)  # given out, never with the kernel
    scheduler.on_link_lost(0.0)
    scheduler.on_link_up(PACKET_PAYLOAD, 0.0)
    after = METHODS[method].assembler({})
    arrived += arriving(after, drain(scheduler))
    assert sorted(arrived) == sorted(data for data, _ in messages)


@pytest.mark.parametrize("method", METHODS)
def test_an_endless_flood_is_refused_and_not_kept(method: str) -> None:
    scheduler = METHODS[method].scheduler({})
    flood = b"x" * 1_000_000
    answers = [scheduler.offer(flood, 1, 0.0) for _ in range(100)]
    assert answers[0] == ()
    (refused,) = answers[-1]
    assert (refused.data, refused.priority) == (flood, 1)
    assert "do not fit" in refused.reason
    assert scheduler.queued.messages == answers.count(())


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_parameter_is_named_on_both_sides(method: str) -> None:
    known = METHODS[method]
    for side in (known.scheduler, known.assembler, known.needs):
        with pytest.raises(ValueError, match=f"{method} has no parameter 'colour'"):
            side({"colour": "red"})


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "8", True, None])
def test_a_limit_of_fifo_that_is_no_number_of_bytes_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="limit_bytes is"):
        METHODS["fifo"].scheduler({"limit_bytes": wrong})


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_message_fits_where_the_control_socket_and_the_link_take_it(
    method: str,
) -> None:
    largest = encode(
        Message(Kind.PUBLISH, topic="t" * MAX_TOPIC_BYTES, payload=bytes(MAX_PAYLOAD_BYTES))
    )
    scheduler, assembler = both_sides(method)
    assert publication("t" * MAX_TOPIC_BYTES, 5, MAX_PAYLOAD_BYTES).size == MAX_PAYLOAD_BYTES
    assert scheduler.offer(largest, 5, 0.0) == ()
    chunks = drain(scheduler)
    assert max(len(chunk.data) for chunk in chunks) <= MAX_MESSAGE_BYTES
    assert arriving(assembler, chunks) == [largest]


@pytest.mark.parametrize("method", METHODS)
def test_a_full_queue_takes_control_messages_but_not_without_end(method: str) -> None:
    scheduler, _ = both_sides(method)
    while scheduler.offer(bytes(1_000_000), 1, 0.0) == ():
        pass
    assert scheduler.offer(bytes(CONTROL_BYTES), 1, 0.0, control=True) == ()
    (refused,) = scheduler.offer(b"x", 1, 0.0, control=True)
    assert refused.data == b"x"
    drain(scheduler)
    assert scheduler.offer(b"x", 1, 0.0, control=True) == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given_out", [False, True])
def test_control_messages_go_with_their_connection_and_publications_stay(
    method: str, given_out: bool
) -> None:
    scheduler, assembler = both_sides(method)
    scheduler.offer(b"subscribe", 1, 0.0, control=True)
    scheduler.offer(b"alert", 5, 0.0)
    scheduler.offer(b"subscribe more", 1, 0.0, control=True)
    if given_out:
        scheduler.next_chunk(0.0)
    scheduler.on_link_lost(0.0)
    assert scheduler.queued == Queued(1, 5)
    scheduler.on_link_up(PACKET_PAYLOAD, 0.0)
    assert arriving(assembler, drain(scheduler)) == [b"alert"]


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers, sent=st.integers(0, 10))
@settings(deadline=None)
def test_messages_kept_by_the_core_can_be_withdrawn_between_two_connections(
    method: str, messages: list[tuple[bytes, int]], sent: int
) -> None:
    scheduler, before = both_sides(method)
    for data, priority in messages:
        scheduler.offer(data, priority, 0.0)
    scheduler.offer(b"subscribe", 1, 0.0, control=True)
    arrived = []
    for _ in range(sent):
        if (chunk := scheduler.next_chunk(0.0)) is not None:
            arrived += before.on_chunk(chunk)
        scheduler.on_progress(0, 0.0)
    scheduler.next_chunk(0.0)
    scheduler.on_link_lost(0.0)
    left = [data for data, _ in messages]
    for data in arrived:
        if data in left:
            left.remove(data)
    scheduler.withdraw(lambda data: data[0] % 2 == 0)
    staying = [data for data in left if data[0] % 2 == 1]
    assert scheduler.queued == Queued(len(staying), sum(map(len, staying)))
    scheduler.on_link_up(PACKET_PAYLOAD, 0.0)
    after = METHODS[method].assembler({})
    assert sorted(arriving(after, drain(scheduler))) == sorted(staying)
