"""Custody: the copies of publications that a broker has to answer for, and those that it waits for itself.

    copy comes in -> open -> passed on to others, held -> all have answered, nothing is held -> closed, TAKEN goes back

Each copy is a duty of its own, also of a publication that came before: what it causes at this broker is caused by it
alone, so duties form trees and never wait for each other. A copy is known by its peer, its id, and its mark
(`nodes.overlay.reliability.custody`). A duty that answers to nobody (a repetition for another broker, say) only sees to
it that its copies arrive. Memory is bounded: where there is no room, no duty is opened, and the one before keeps his.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from nodes.overlay.base import Peer
from nodes.overlay.reliability.custody import copy_mark, taken
from nodes.protocol.wire import Message

AGAIN_S = 60.0  # a copy that nobody answers is sent again, then after twice as long
MAX_BYTES = 32 << 20
MAX_CLOSED = 8192  # copies that are remembered as answered
OVERHEAD = 500  # bytes of a duty or of a copy in memory, besides its payload or routing


class Copy(NamedTuple):
    """One copy of a publication on the link with a peer."""

    peer: Peer
    message_id: int
    mark: int


def copy_of(peer: Peer, message: Message) -> Copy:
    """The copy that this message to or from the peer is."""
    return Copy(peer, message.message_id, copy_mark(message))


@dataclass(slots=True)
class _Sent:
    """A copy that was passed on."""

    message: Message
    again_at: float
    wait: float = AGAIN_S
    cut: bool = False  # the link broke since


@dataclass(slots=True, eq=False)
class Duty:
    """What follows from one copy."""

    message_id: int
    copy: Copy | None  # that came in
    answer: Message  # to it
    until: float  # then it is given up, without an answer
    size: int
    held_until: float = -inf
    waiting: dict[Copy, _Sent] = field(default_factory=dict)


class Due(NamedTuple):
    """What the time has brought."""

    again: tuple[tuple[Peer, Message], ...] = ()
    given_up: tuple[int, ...] = ()  # message ids


class Duties:
    """All of a broker."""

    def __init__(self, number: int, keep_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._number = number
        self._keep_s = keep_s
        self._max_bytes = max_bytes
        self._by_copy: dict[Copy, Duty] = {}
        self._by_id: dict[int, list[Duty]] = {}
        self._touched: list[Duty] = []
        self._closed: OrderedDict[Copy, None] = OrderedDict()
        self._look_at = inf  # nothing is due before
        self.bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    def _all(self) -> Iterator[Duty]:
        for duties in self._by_id.values():
            yield from duties

    # Copies that come in

    def is_closed(self, copy: Copy) -> bool:
        """Whether it was answered lately."""
        return copy in self._closed

    def is_open(self, copy: Copy) -> bool:
        return copy in self._by_copy

    def open(self, peer: Peer | None, message: Message, now: float) -> Duty | None:
        """A new duty for this publication, that came from the peer, or from nobody; None if there is no room."""
        size = len(message.payload) + OVERHEAD
        if self.bytes + size > self._max_bytes:
            return None
        copy = None if peer is None else copy_of(peer, message)
        answer = taken(self._number, message)
        duty = Duty(message.message_id, copy, answer, now + self._keep_s, size)
        self.bytes += size
        self._by_id.setdefault(message.message_id, []).append(duty)
        if copy is not None:
            self._by_copy[copy] = duty
        self._touched.append(duty)
        self._look_at = min(self._look_at, duty.until)
        return duty

    def of(self, message_id: int) -> Duty | None:
        """An open duty for this publication, one that waits for no answer if there is such.

        None that has not begun: what is sent before that is not in its consequence, and must not end it.
        """
        return self._idlest(self._by_id.get(message_id, []))

    def of_guest(self, message_id: int, guest: Peer | None) -> Duty | None:
        """The same, but one that answers to this guest, or to nobody.

        What one that answers to another broker waits for must not be sent a second time: the copy would be the same,
        and might be what that broker waits for itself.
        """
        duties = self._by_id.get(message_id, [])
        return self._idlest([one for one in duties if one.copy is None or one.copy.peer == guest])

    def _idlest(self, duties: list[Duty]) -> Duty | None:
        begun = [duty for duty in duties if duty.held_until != inf]
        return min(begun, key=lambda duty: len(duty.waiting), default=None)

    def awaits(self, copy: Copy) -> bool:
        """Whether some duty waits for the answer to this copy."""
        return any(copy in duty.waiting for duty in self._by_id.get(copy.message_id, []))

    def drop(self, duty: Duty) -> None:
        """Without an answer: the copy was none, or others are to keep it."""
        if not self._has(duty):
            return
        duties = self._by_id[duty.message_id]
        duties.remove(duty)
        if not duties:
            del self._by_id[duty.message_id]
        if duty.copy is not None:
            del self._by_copy[duty.copy]
        self.bytes -= duty.size

    def drop_held(self, holds: Callable[[int], bool]) -> None:
        """Nothing that is held, here or by whom `holds` asks, will be passed on any more."""
        for duty in list(self._all()):
            if duty.held_until != -inf or (not duty.waiting and holds(duty.message_id)):
                self.drop(duty)

    def idle_of(self, peers: Container[Peer], until: float) -> list[Duty]:
        """Duties that answer to one of these peers, wait for nobody, and are not held until then."""
        of_peers = [duty for copy, duty in self._by_copy.items() if copy.peer in peers]
        return [duty for duty in of_peers if not duty.waiting and duty.held_until < until]

    # Copies that go out

    def passed(self, duty: Duty, peer: Peer, message: Message, now: float) -> None:
        """A copy was sent in consequence."""
        size = len(message.routing) + OVERHEAD
        duty.waiting[copy_of(peer, message)] = _Sent(message, now + AGAIN_S)
        duty.size += size
        self.bytes += size
        self._look_at = min(self._look_at, now + AGAIN_S)

    def hold(self, duty: Duty, until: float) -> None:
        """More may follow until then."""
        duty.held_until = until
        self._look_at = min(self._look_at, until)

    def release(self, duty: Duty) -> None:
        """What was held is passed on."""
        duty.held_until = -inf
        self._touched.append(duty)

    def on_taken(self, copy: Copy) -> None:
        """A peer has answered."""
        for duty in self._by_id.get(copy.message_id, []):
            if duty.waiting.pop(copy, None) is not None:
                self._touched.append(duty)

    def on_cut(self, peer: Peer) -> None:
        """The link broke: what is not answered may not have arrived."""
        for duty in self._all():
            for copy, sent in duty.waiting.items():
                sent.cut = sent.cut or copy.peer == peer

    def cut_copies(self, peer: Peer, now: float) -> list[Message]:
        """The link is up again: what is to be sent again."""
        again = []
        for duty in self._all():
            for copy, sent in duty.waiting.items():
                if copy.peer == peer and sent.cut:
                    sent.cut, sent.again_at = False, now + sent.wait
                    again.append(sent.message)
        return again

    def take_from(self, peer: Peer) -> list[tuple[Duty, Message]]:
        """The peer is gone: nobody waits for it any more, nor answers it; what it has not answered."""
        found = []
        for duty in self._all():
            copies = [copy for copy in duty.waiting if copy.peer == peer]
            found += [(duty, duty.waiting.pop(copy).message) for copy in copies]
            if duty.copy is not None and duty.copy.peer == peer:
                del self._by_copy[duty.copy]
                duty.copy = None
            self._touched.append(duty)
        return found

    # The end of duties, and time

    def close(self, holds: Callable[[int], bool]) -> list[tuple[Peer, Message]]:
        """The answers of duties that are done now; `holds`: more of this publication is going to be sent."""
        touched, self._touched = dict.fromkeys(self._touched), []
        answers = []
        for duty in touched:
            if duty.waiting or duty.held_until != -inf or not self._has(duty):
                continue
            if holds(duty.message_id):
                self._touched.append(duty)
                continue
            self.drop(duty)
            if duty.copy is not None:
                answers.append((duty.copy.peer, duty.answer))
                self._closed[duty.copy] = None
        while len(self._closed) > MAX_CLOSED:
            self._closed.popitem(last=False)
        return answers

    def _has(self, duty: Duty) -> bool:
        return duty in self._by_id.get(duty.message_id, [])

    def next_deadline(self) -> float | None:
        return None if self._look_at == inf else self._look_at

    def due(self, now: float) -> Due:
        """What is to be sent again, and what is given up; those whose hold has ended may be closed."""
        if now < self._look_at:
            return Due()
        again, given_up = [], []
        for duty in list(self._all()):
            if -inf < duty.held_until <= now:
                self.release(duty)
            elif duty.until <= now:
                self.drop(duty)
                given_up.append(duty.message_id)
                continue
            for copy, sent in duty.waiting.items():
                if sent.again_at <= now:
                    sent.wait *= 2
                    sent.again_at = now + sent.wait
                    again.append((copy.peer, sent.message))
        self._look_at = min(
            (moment for duty in self._all() for moment in _moments(duty)), default=inf
        )
        return Due(tuple(again), tuple(given_up))


def _moments(duty: Duty) -> Iterator[float]:
    yield duty.until
    if duty.held_until != -inf:
        yield duty.held_until
    yield from (sent.again_at for sent in duty.waiting.values())
