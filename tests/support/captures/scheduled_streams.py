"""Messages through a real scheduler, as the frames that a link would write."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.delivery import METHODS
from nodes.delivery.base import Chunk
from nodes.protocol import wire
from support.runs.star_runs import frame

MAX_PAYLOAD = 1444  # maximum payload of a WebSocket message in one packet to a client, MTU 1500


def chunks_of(
    method: str, parameters: Mapping[str, Any], messages: Sequence[wire.Message], burst: int = 1
) -> list[Chunk]:
    """Offer this many messages at once, send three chunks, offer as many again; go on until nothing is left."""
    scheduler = METHODS[method].scheduler(parameters)
    udp_acks = METHODS[method].needs(parameters).udp_acks
    scheduler.on_link_up(MAX_PAYLOAD, 0.0)
    waiting, chunks, now = list(messages), [], 0.0
    for turn in range(100_000):
        for message in waiting[:burst] if turn % 3 == 0 else ():
            data = wire.encode(message)
            assert not scheduler.offer(
                data, message.priority, now, control=message.control, upkeep=message.upkeep
            )
            waiting.remove(message)
        chunk = scheduler.next_chunk(now)
        if chunk is not None:
            chunks.append(chunk)
        elif not waiting and not scheduler.queued.messages:
            return chunks
        elif not waiting and (deadline := scheduler.next_deadline()) is not None:
            now = max(now, deadline)
        scheduler.on_progress(0, now)
        if chunk is not None and udp_acks:
            scheduler.on_ack(len(chunks) - 1 & 0xFF, now)
    raise AssertionError("the queue never became empty")


def completing(
    method: str, parameters: Mapping[str, Any], chunks: Sequence[Chunk]
) -> list[list[int]]:
    """For each chunk the ids of the messages that it completes, as the receiver reassembles them."""
    assembler = METHODS[method].assembler(parameters)
    return [
        [wire.decode(whole).message_id for whole in assembler.on_chunk(chunk)] for chunk in chunks
    ]


def framed(chunks: Sequence[Chunk], mask: bytes = b"") -> list[bytes]:
    """Each chunk as a frame."""
    return [frame(chunk.data, mask, 0x82 | chunk.bits << 4) for chunk in chunks]
