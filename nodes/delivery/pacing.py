"""A queue outside TCP: the next piece is sent only when the link is free for it.

What pq-pc, dmpq-pc and preemptive have in common. They differ in which piece is next (`Cutter`), and by what they know
that the link is free (`LinkModel`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nodes.delivery.base import Chunk, Dropped, Queued
from nodes.delivery.queues import Levels, Waiting


@dataclass(frozen=True, slots=True)
class Piece:
    """What one chunk has: one message, a part of one, or several."""

    chunk: Chunk
    messages: tuple[Waiting, ...]
    upto: int | None = (
        None  # so many bytes of the one message are with the kernel then; None: everything
    )


class LinkModel(Protocol):
    """Knows when the link is free. Each connection begins with `on_up`."""

    def on_up(self, packet_payload: int, now: float) -> None:
        """A new link, of which nothing is known but how much fills one packet."""

    def free(self, now: float) -> bool:
        """Whether the next chunk may go to the kernel."""

    def on_handed(self, size: int, at: float) -> None:
        """A chunk of so many bytes went to the kernel, from this time on: writing it may take a while."""

    def on_unsent(self, unsent_bytes: int, now: float, round_trip_s: float | None) -> None:
        """What the kernel holds, sent or not, and the other side has not acknowledged."""

    def on_ack(self, number: int, now: float) -> None:
        """The other side says that it has a chunk."""

    def look_at(self, waiting: bool) -> float | None:
        """When to look at the kernel's bytes again; `waiting`: there is something to send."""


class Cutter(Protocol):
    """Knows which piece is next."""

    def on_up(self, packet_payload: int) -> None:
        """A connection begins; the other side has begun no message."""

    def at_once(self, levels: Levels) -> bool:
        """Whether the next piece need not wait until the link is free: nothing could come before it."""

    def cut(self, levels: Levels) -> Piece | None:
        """The next piece; None if nothing waits."""


class Paced:
    """The scheduler."""

    def __init__(self, limit: int, link_model: LinkModel, cutter: Cutter) -> None:
        self._levels = Levels(limit)
        self._link_model = link_model
        self._cutter = cutter
        self._up = False
        self._in_hand: Piece | None = None
        self._given_at = 0.0

    @property
    def queued(self) -> Queued:
        return self._levels.queued

    def offer(
        self,
        data: bytes,
        priority: int,
        now: float,
        *,
        control: bool = False,
        upkeep: bool = False,
    ) -> tuple[Dropped, ...]:
        return self._levels.offer(data, priority, control, upkeep)

    def on_link_up(self, packet_payload: int, now: float) -> None:
        self._link_model.on_up(packet_payload, now)
        self._cutter.on_up(packet_payload)
        self._up = True

    def next_chunk(self, now: float) -> Chunk | None:
        if self._in_hand is None and self._up and self._may_go(now):
            self._in_hand, self._given_at = self._cutter.cut(self._levels), now
            if self._in_hand is not None:
                for message in self._in_hand.messages:
                    message.begun = True
        return None if self._in_hand is None else self._in_hand.chunk

    def _may_go(self, now: float) -> bool:
        return self._link_model.free(now) or self._cutter.at_once(self._levels)

    def on_progress(self, unsent_bytes: int, now: float, round_trip_s: float | None = None) -> None:
        piece, self._in_hand = self._in_hand, None
        if piece is not None:
            self._link_model.on_handed(len(piece.chunk.data), self._given_at)
            for message in piece.messages:
                message.sent = len(message.data) if piece.upto is None else piece.upto
                if message.left == 0:
                    self._levels.remove(message)
        if self._up:
            self._link_model.on_unsent(unsent_bytes, now, round_trip_s)

    def on_ack(self, number: int, now: float) -> None:
        self._link_model.on_ack(number, now)

    def on_link_lost(self, now: float, *, orderly: bool = False) -> None:
        self._in_hand = None
        self._up = False
        self._levels.begin_anew(keep_all=orderly)

    def withdraw(self, unwanted: Callable[[bytes], bool]) -> None:
        self._levels.withdraw(unwanted)

    def next_deadline(self) -> float | None:
        if not self._up or self._in_hand is not None:
            return None
        return self._link_model.look_at(waiting=self._levels.queued.messages > 0)
