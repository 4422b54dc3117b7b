"""PQ-PC (Lee 2016, section 3.1): whole messages, the most urgent first, one at a time on the link.

What waits, waits here and not in TCP, so a more urgent message overtakes everything but the message under way.

`urgent_from: N` gives the two classes of the thesis: levels N and above before all others, in either class the first
that came. Without it each of the five levels is a class.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nodes.delivery.base import Chunk, Needs
from nodes.delivery.link_model import KernelLinkModel
from nodes.delivery.pacing import LinkModel, Paced, Piece
from nodes.delivery.queues import LEVELS, Levels, limit_bytes
from nodes.parameters import check_known, one_of, seconds, whole_number
from nodes.protocol.wire import HIGHEST_PRIORITY, LOWEST_PRIORITY

# The thesis knows that the link is free when the other side acknowledges a chunk by UDP (Lee 2016, section 4).
#
# One chunk is under way at a time. If the acknowledgement is lost, the sender of the thesis waits for ever. Ours goes
# on when the kernel has held nothing unacknowledged for `timeout_s`: then the chunk has arrived.


NUMBERS = 256  # an acknowledgement is one byte


class UdpAckModel:
    """The link is free when the last chunk was acknowledged by UDP."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._begin()

    def on_up(self, packet_payload: int, now: float) -> None:
        self._begin()

    def _begin(self) -> None:
        self._handed = 0
        self._acknowledged: int | None = None
        self._looked = 0.0
        self._empty_since: float | None = None

    def free(self, now: float) -> bool:
        if self._handed == 0 or self._acknowledged == self._last():
            return True
        return self._empty_since is not None and now >= self._empty_since + self._timeout_s

    def on_handed(self, size: int, at: float) -> None:
        self._handed += 1
        self._empty_since = None
        if self._acknowledged != self._last():
            self._acknowledged = None

    def on_unsent(self, unsent_bytes: int, now: float, round_trip_s: float | None) -> None:
        self._looked = now
        if unsent_bytes > 0:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now

    def on_ack(self, number: int, now: float) -> None:
        # It may come before `on_handed` for its chunk; any other number is of a chunk that was given up.
        if number in (self._last(), self._handed % NUMBERS):
            self._acknowledged = number

    def look_at(self, waiting: bool) -> float | None:
        if not waiting:
            return None
        if self._empty_since is not None:
            return self._empty_since + self._timeout_s
        return self._looked + self._timeout_s / 4

    def _last(self) -> int:
        return (self._handed - 1) % NUMBERS


ACKS = ("kernel", "udp")
ACK_TIMEOUT_S = 1.0
NAMES = ("limit_bytes", "urgent_from", "ack", "ack_timeout_s")


def link_model_of(method: str, parameters: Mapping[str, Any]) -> LinkModel:
    """The link model for the parameter `ack`."""
    timeout_s = seconds(method, parameters, "ack_timeout_s", ACK_TIMEOUT_S, most=3600)
    if one_of(method, parameters, "ack", ACKS) == "udp":
        return UdpAckModel(timeout_s)
    return KernelLinkModel()


def first_urgent(method: str, parameters: Mapping[str, Any], default: int) -> int:
    """The lowest level of the urgent class."""
    return whole_number(
        method, parameters, "urgent_from", default, LOWEST_PRIORITY + 1, HIGHEST_PRIORITY
    )


class WholeMessages:
    """The oldest message of the first class that has one; control messages before all."""

    def __init__(self, classes: tuple[tuple[int, ...], ...]) -> None:
        self._classes = classes

    def on_up(self, packet_payload: int) -> None:
        pass

    def at_once(self, levels: Levels) -> bool:
        return False

    def cut(self, levels: Levels) -> Piece | None:
        message = levels.control()
        for levels_of_class in self._classes:
            message = message or levels.oldest(levels_of_class)
        return None if message is None else Piece(Chunk(message.data), (message,))


class PqPc(Paced):
    """The queue."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        chosen = _read(parameters)
        super().__init__(chosen.limit, chosen.link_model, WholeMessages(chosen.classes))


class WholeOnly:
    """Each chunk is a message."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        _read(parameters)

    def on_chunk(self, chunk: Chunk) -> list[bytes]:
        return [chunk.data]


def needs(parameters: Mapping[str, Any]) -> Needs:
    """Acknowledgements by UDP, or TCP's without delay."""
    _read(parameters)
    udp_acks = parameters.get("ack") == "udp"
    return Needs(udp_acks=udp_acks, prompt_acks=not udp_acks, link_model=True)


class _Chosen(NamedTuple):
    limit: int
    link_model: LinkModel
    classes: tuple[tuple[int, ...], ...]


def _read(parameters: Mapping[str, Any]) -> _Chosen:
    check_known("pq-pc", parameters, NAMES)
    classes: tuple[tuple[int, ...], ...] = tuple((level,) for level in LEVELS)
    if "urgent_from" in parameters:
        first = first_urgent("pq-pc", parameters, HIGHEST_PRIORITY)
        urgent = tuple(level for level in LEVELS if level >= first)
        classes = (urgent, tuple(level for level in LEVELS if level < first))
    return _Chosen(limit_bytes("pq-pc", parameters), link_model_of("pq-pc", parameters), classes)
