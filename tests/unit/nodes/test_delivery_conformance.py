"""What every delivery method promises, whichever it is: runs on each registered method."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.delivery import METHODS
from nodes.delivery.base import CONTROL_BYTES, Queued, Scheduler
from nodes.runtime.connection import SETTINGS
from nodes.runtime.publisher import publication
from nodes.wire import MAX_PAYLOAD_BYTES, MAX_TOPIC_BYTES, Kind, Message, encode

offers = st.lists(st.tuples(st.binary(min_size=1, max_size=5000), st.integers(1, 5)), max_size=30)


def drain(scheduler: Scheduler, most: int = 100_000) -> list[bytes]:
    """All chunks, as over a line that takes everything at once; time passes where the method waits for it."""
    chunks: list[bytes] = []
    now = 0.0
    for _ in range(most):
        chunk = scheduler.next_chunk(now)
        if chunk is not None:
            chunks.append(chunk)
        elif scheduler.queued.messages == 0:
            return chunks
        else:
            deadline = scheduler.next_deadline()
            assert deadline is not None, "messages wait, and nothing will ever move them"
            now = max(now, deadline)
        scheduler.on_progress(0, now)
    raise AssertionError("the queue never became empty")


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers)
@settings(deadline=None)
def test_what_was_offered_arrives_exactly_once_and_whole(
    method: str, messages: list[tuple[bytes, int]]
) -> None:
    scheduler, assembler = METHODS[method].scheduler({}), METHODS[method].assembler({})
    for data, priority in messages:
        assert scheduler.offer(data, priority, 0.0) is None
    arrived = [whole for chunk in drain(scheduler) for whole in assembler.on_chunk(chunk)]
    assert sorted(arrived) == sorted(data for data, _ in messages)
    assert scheduler.queued == Queued(0, 0)


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers)
@settings(deadline=None)
def test_messages_of_one_priority_keep_their_order(
    method: str, messages: list[tuple[bytes, int]]
) -> None:
    scheduler, assembler = METHODS[method].scheduler({}), METHODS[method].assembler({})
    for index, (data, _) in enumerate(messages):
        scheduler.offer(index.to_bytes(2) + data, 3, 0.0)
    arrived = [whole for chunk in drain(scheduler) for whole in assembler.on_chunk(chunk)]
    assert [int.from_bytes(data[:2]) for data in arrived] == list(range(len(messages)))


@pytest.mark.parametrize("method", METHODS)
@given(messages=offers, sent=st.integers(0, 40))
@settings(deadline=None)
def test_a_broken_link_loses_only_what_had_left(
    method: str, messages: list[tuple[bytes, int]], sent: int
) -> None:
    scheduler = METHODS[method].scheduler({})
    before = METHODS[method].assembler({})
    for data, priority in messages:
        scheduler.offer(data, priority, 0.0)
    arrived = []
    for _ in range(sent):
        if (chunk := scheduler.next_chunk(0.0)) is not None:
            arrived += before.on_chunk(chunk)
        scheduler.on_progress(0, 0.0)
    scheduler.next_chunk(0.0)  # given out, never with the kernel
    scheduler.on_link_lost(0.0)
    after = METHODS[method].assembler({})
    arrived += [whole for chunk in drain(scheduler) for whole in after.on_chunk(chunk)]
    assert sorted(arrived) == sorted(data for data, _ in messages)


@pytest.mark.parametrize("method", METHODS)
def test_an_endless_flood_is_refused_and_not_kept(method: str) -> None:
    scheduler = METHODS[method].scheduler({})
    flood = b"x" * 1_000_000
    answers = [scheduler.offer(flood, 1, 0.0) for _ in range(100)]
    assert answers[0] is None
    assert answers[-1]
    assert scheduler.queued.messages == answers.count(None)


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_parameter_is_named_on_both_sides(method: str) -> None:
    for side in (METHODS[method].scheduler, METHODS[method].assembler):
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
    scheduler, assembler = METHODS[method].scheduler({}), METHODS[method].assembler({})
    assert publication("t" * MAX_TOPIC_BYTES, 5, MAX_PAYLOAD_BYTES).size == MAX_PAYLOAD_BYTES
    assert scheduler.offer(largest, 5, 0.0) is None
    chunks = drain(scheduler)
    assert max(map(len, chunks)) <= SETTINGS["max_size"]
    assert [whole for chunk in chunks for whole in assembler.on_chunk(chunk)] == [largest]


@pytest.mark.parametrize("method", METHODS)
def test_a_full_queue_takes_control_messages_but_not_without_end(method: str) -> None:
    scheduler = METHODS[method].scheduler({})
    while scheduler.offer(bytes(1_000_000), 1, 0.0) is None:
        pass
    assert scheduler.offer(bytes(CONTROL_BYTES), 1, 0.0, control=True) is None
    assert scheduler.offer(b"x", 1, 0.0, control=True)
    drain(scheduler)
    assert scheduler.offer(b"x", 1, 0.0, control=True) is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given_out", [False, True])
def test_control_messages_go_with_their_connection_and_publications_stay(
    method: str, given_out: bool
) -> None:
    scheduler, assembler = METHODS[method].scheduler({}), METHODS[method].assembler({})
    scheduler.offer(b"subscribe", 1, 0.0, control=True)
    scheduler.offer(b"alert", 5, 0.0)
    scheduler.offer(b"subscribe more", 1, 0.0, control=True)
    if given_out:
        scheduler.next_chunk(0.0)
    scheduler.on_link_lost(0.0)
    assert scheduler.queued == Queued(1, 5)
    assert [whole for chunk in drain(scheduler) for whole in assembler.on_chunk(chunk)] == [
        b"alert"
    ]
