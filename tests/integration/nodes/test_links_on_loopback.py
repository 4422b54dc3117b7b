"""Every delivery method over a real connection: each message that is offered at one end arrives whole at the other."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from nodes.delivery import METHODS
from nodes.protocol.wire import Kind, Message, encode
from nodes.runtime.config import Method
from support.nodes.link_pair import VARIANTS, End, link_pair, title

SIZES = (1, 100, 1_443, 1_500, 30_000, 1_000_000)
LEVELS = (1, 2, 3, 4, 5)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.005)


def messages(seed: int) -> list[Message]:
    random = Random(seed)
    built = [
        Message(
            Kind.PUBLISH,
            priority=level,
            message_id=1 + number,
            topic="slope",
            payload=random.randbytes(size),
        )
        for number, (level, size) in enumerate((level, size) for size in SIZES for level in LEVELS)
    ]
    random.shuffle(built)
    return built


def offer(end: End, sent: list[Message]) -> None:
    for message in sent:
        assert end.link.offer(encode(message), message.priority) == ()


def by_level(some: list[Message]) -> list[list[Message]]:
    return [[message for message in some if message.priority == level] for level in LEVELS]


def test_every_registered_method_is_tried() -> None:
    assert {variant.method for variant in VARIANTS} == set(METHODS)


@pytest.mark.parametrize("variant", VARIANTS, ids=title)
def test_messages_of_all_levels_and_sizes_arrive_whole_both_ways_in_order_within_a_level(
    variant: Method,
) -> None:
    async def scenario() -> None:
        up, down = messages(1), messages(2)
        async with link_pair(variant) as (client, broker):
            offer(client, up)
            offer(broker, down)
            await until(lambda: len(broker.got) == len(up) and len(client.got) == len(down))
            assert by_level(broker.got) == by_level(up)
            assert by_level(client.got) == by_level(down)
            assert client.refusals == broker.refusals == []
            assert client.link.scheduler.queued.messages == 0

    run(scenario)


@pytest.mark.parametrize("lost", [1, 2], ids=["all", "every second"])
def test_lost_acknowledgements_cost_time_and_nothing_else(lost: int) -> None:
    variant = Method("dmpq-pc", {"ack": "udp", "ack_timeout_s": 0.02, "dv": 2_000})

    async def scenario() -> None:
        sent = [message for message in messages(3) if len(message.payload) <= 30_000]
        async with link_pair(variant) as (client, broker):
            udp_acks = broker.link._udp_acks
            assert udp_acks is not None
            send = udp_acks.send
            udp_acks.send = lambda number: None if number % lost == 0 else send(number)  # type: ignore[method-assign]
            offer(client, sent)
            await until(lambda: len(broker.got) == len(sent))
            assert by_level(broker.got) == by_level(sent)

    run(scenario)


def test_an_urgent_message_overtakes_queued_messages() -> None:
    """With fifo the urgent message is the last, whatever its level."""

    async def arrived(variant: Method) -> list[int]:
        async with link_pair(variant) as (client, broker):
            offer(client, [m for m in messages(4) if len(m.payload) == 1_000_000])
            late = Message(Kind.PUBLISH, priority=5, message_id=99, topic="t", payload=b"now")
            offer(client, [late])
            await until(lambda: len(broker.got) == 6)
            return [message.message_id for message in broker.got]

    async def scenario() -> None:
        assert (await arrived(Method("fifo", {})))[-1] == 99
        for method in sorted(set(METHODS) - {"fifo"}):
            assert 99 in (await arrived(Method(method, {})))[:2]

    run(scenario)
