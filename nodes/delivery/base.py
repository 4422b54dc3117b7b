"""In which order bytes leave on a link: the interface of every delivery method. Pure; `now` is passed in.

Sending side, one `Scheduler` a link: messages are offered whole and encoded, chunks are taken out; each chunk becomes
one WebSocket binary message. Receiving side, one `Assembler` a connection: it puts the chunks together again.

    on_link_up               a connection is there; so many bytes fill one packet of it
    offer ... offer          next_chunk -> Chunk      the shell writes it to the socket
                             on_progress              ... it is in the kernel's hands; the next one, please
                             on_answer                ... the other side has it (methods that ask for answers)
                             on_link_lost             ... or it is not: the chunk belongs to the queue again

Control messages (SUBSCRIBED, TAKEN, ...) and the upkeep of the overlay between brokers have room of their own,
`CONTROL_BYTES`: for want of a SUBSCRIBED a node would never be ready, only because others publish much. They belong to
the connection and go with it. Where there is an order, control messages go before everything else; upkeep waits as if
it were of `UPKEEP_LEVEL`: an emergency overtakes it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nodes.protocol.wire import HEADER_SIZE, HIGHEST_PRIORITY, MAX_SUBSCRIPTIONS, MAX_TOPIC_BYTES

UPKEEP_LEVEL = HIGHEST_PRIORITY - 1

# All that one node may want: to subscribe and to ask for what it missed, topic by topic; and what it says that it has.
CONTROL_BYTES = 2 * MAX_SUBSCRIPTIONS * (HEADER_SIZE + MAX_TOPIC_BYTES) + 128 * 1024


@dataclass(frozen=True, slots=True)
class Queued:
    """What was offered and is not yet in the kernel's hands."""

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
    """A message that the queue will not send: it had no room, or made room for a more urgent one."""

    data: bytes
    priority: int
    reason: str  # a sentence


@dataclass(frozen=True, slots=True)
class Needs:
    """What a method asks of the connection below it."""

    udp_acks: bool = (
        False  # the receiver answers each chunk with one byte by UDP: its number, modulo 256
    )
    bits: bool = False  # labels travel in the reserved bits of WebSocket frames
    prompt_acks: bool = False  # the receiver's TCP acknowledges at once
    link_model: bool = (
        False  # `on_progress` is told what the kernel holds; else 0 and None, which costs nothing
    )


class Scheduler(Protocol):
    """The queue in front of one link."""

    @property
    def queued(self) -> Queued:
        """Including what `next_chunk` gave out last, until `on_progress` says that it has left."""

    def offer(
        self,
        data: bytes,
        priority: int,
        now: float,
        *,
        control: bool = False,
        upkeep: bool = False,
    ) -> tuple[Dropped, ...]:
        """Take one encoded message; what was dropped for it, or the message itself if there is no room."""

    def on_link_up(self, packet_payload: int, now: float) -> None:
        """A connection begins; a WebSocket message of `packet_payload` bytes fills exactly one packet of it."""

    def next_chunk(self, now: float) -> Chunk | None:
        """What to write next, the same again until `on_progress` or `on_link_lost`; None: nothing now."""

    def on_progress(self, unsent_bytes: int, now: float, round_trip_s: float | None = None) -> None:
        """The last chunk is with the kernel, which holds `unsent_bytes` not yet acknowledged by the other side.

        Also called without a new chunk, at `next_deadline`. The round trip is the shortest that TCP has seen.
        """

    def on_ack(self, number: int, now: float) -> None:
        """The other side has the chunk of this number (counted from 0 on each connection, modulo 256)."""

    def on_link_lost(self, now: float, *, orderly: bool = False) -> None:
        """The connection ended; a later one begins with a new assembler at the other side.

        Publications stay queued. Control messages and upkeep are forgotten, as the next connection begins with its
        own; `orderly`: both sides go on where they were, and everything stays.
        """

    def withdraw(self, unwanted: Callable[[bytes], bool]) -> None:
        """Forget the publications for which this is true, while there is no connection: somebody else keeps them."""

    def next_deadline(self) -> float | None:
        """When the method wants to hear of progress, although it gave out no chunk; None: no need."""


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
