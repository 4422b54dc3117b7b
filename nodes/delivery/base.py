"""In which order bytes leave on a link: the interface of every delivery method. Pure; `now` is passed in.

Sending side, one `Scheduler` a link: messages are offered whole and encoded, chunks are taken out; each chunk becomes
one WebSocket binary message. Receiving side, one `Assembler` a connection: it puts the chunks together again.

    on_link_up               a connection begins; so many bytes fill one packet of it
    offer ... offer          next_chunk -> Chunk      the shell writes it to the socket
                             on_progress              ... the kernel has it; the next chunk may follow
                             on_ack                   ... the other side has it (methods with acknowledgements by UDP)
                             on_link_lost             ... or the connection ended: the chunk is in the queue again

Control messages (SUBSCRIBED, ACK, ...) and the upkeep of the overlay between brokers have a capacity of their own,
`CONTROL_BYTES`: publications that fill the queue must not displace a SUBSCRIBED, without which a node is never ready.
They belong to the connection and are dropped with it. Where there is an order, control messages go before everything
else; upkeep waits as if it were of `UPKEEP_LEVEL`: an emergency overtakes it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nodes.protocol.wire import HEADER_SIZE, HIGHEST_PRIORITY, MAX_SUBSCRIPTIONS, MAX_TOPIC_BYTES

UPKEEP_LEVEL = HIGHEST_PRIORITY - 1

# All control messages of one client: SUBSCRIBE and MISSED for each topic, with the digests of MISSED.
CONTROL_BYTES = 2 * MAX_SUBSCRIPTIONS * (HEADER_SIZE + MAX_TOPIC_BYTES) + 128 * 1024


@dataclass(frozen=True, slots=True)
class Queued:
    """Messages that were offered and that the kernel does not have yet."""

    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One WebSocket binary message; `bits` (0 to 7) go into the three reserved bits of its frame, where both sides
    have agreed on that (`Needs.bits`)."""

    data: bytes
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message that the queue does not send: it did not fit, or was dropped for a more urgent one."""

    data: bytes
    priority: int
    reason: str  # a sentence


@dataclass(frozen=True, slots=True)
class Needs:
    """What a method asks of the connection below it."""

    udp_acks: bool = (
        False  # the receiver acknowledges each chunk with one byte by UDP: its number, modulo 256
    )
    bits: bool = False  # labels travel in the reserved bits of WebSocket frames
    prompt_acks: bool = False  # the receiver's TCP acknowledges at once
    link_model: bool = (
        False  # `on_progress` gets what the kernel holds; else 0 and None, which costs nothing
    )


class Scheduler(Protocol):
    """The queue in front of one link."""

    @property
    def queued(self) -> Queued:
        """The queued messages, with the last chunk of `next_chunk`, until `on_progress` reports it as sent."""

    def offer(
        self,
        data: bytes,
        priority: int,
        now: float,
        *,
        control: bool = False,
        upkeep: bool = False,
    ) -> tuple[Dropped, ...]:
        """Queue one encoded message; the messages dropped for it, or the message itself if it does not fit."""

    def on_link_up(self, packet_payload: int, now: float) -> None:
        """A connection begins; a WebSocket message of `packet_payload` bytes fills exactly one packet of it."""

    def next_chunk(self, now: float) -> Chunk | None:
        """What to write next, the same again until `on_progress` or `on_link_lost`; None: nothing now."""

    def on_progress(self, unsent_bytes: int, now: float, round_trip_s: float | None = None) -> None:
        """The kernel has the last chunk, and holds `unsent_bytes` that the other side has not acknowledged.

        Also called without a new chunk, at `next_deadline`. The round trip is the shortest that TCP has seen.
        """

    def on_ack(self, number: int, now: float) -> None:
        """The other side has the chunk of this number (counted from 0 on each connection, modulo 256)."""

    def on_link_lost(self, now: float, *, orderly: bool = False) -> None:
        """The connection ended; a later one begins with a new assembler at the other side.

        Publications stay queued. Control messages and upkeep are dropped, because the next connection begins with its
        own; `orderly`: both sides continue where they were, and everything stays queued.
        """

    def withdraw(self, unwanted: Callable[[bytes], bool]) -> None:
        """Drop the publications for which this is true, while there is no connection: the overlay core stores them."""

    def next_deadline(self) -> float | None:
        """When to call `on_progress`, although there was no chunk; None: not needed."""


class Assembler(Protocol):
    """What makes messages of chunks."""

    def on_chunk(self, chunk: Chunk) -> list[bytes]:
        """The messages that this chunk completes; ValueError if it cannot be a chunk of this method."""


def no_needs(parameters: Mapping[str, Any]) -> Needs:
    """For methods that ask for nothing."""
    return Needs()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery method: both its sides. ValueError with a sentence if the parameters are wrong."""

    scheduler: Callable[[Mapping[str, Any]], Scheduler]
    assembler: Callable[[Mapping[str, Any]], Assembler]
    needs: Callable[[Mapping[str, Any]], Needs] = no_needs
