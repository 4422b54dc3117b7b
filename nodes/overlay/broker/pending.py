"""Custody: the copies of publications that a broker has to acknowledge, and those whose acknowledgement it waits for.

    copy arrives -> open -> copies sent on, held -> all acknowledged, nothing held -> closed, acknowledgement goes back

Each copy that arrives has a pending acknowledgement of its own, even if the publication arrived before. The copies that
the broker sends because of it belong to it alone. So pending acknowledgements form trees and never wait for each other.
Peer, id and mark (`nodes.overlay.reliability.custody`) identify a copy. A pending acknowledgement without an incoming
copy (of a repetition for another broker, for example) only makes sure that its copies arrive. Memory is bounded:
without free memory the broker opens none, and the previous holder of the copy keeps custody.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from nodes.overlay.base import Peer
from nodes.overlay.reliability.custody import acknowledgement, copy_checksum, has_custody
from nodes.protocol.wire import Message

RESEND_S = (
    60.0  # a copy without acknowledgement is sent again after this time, then after twice as long
)
MAX_BYTES = 32 << 20
MAX_CLOSED = 8192  # copies that are remembered as acknowledged
OVERHEAD = 500  # bytes of an entry or of a copy in memory, besides its payload or routing


class Copy(NamedTuple):
    """One copy of a publication on the link with a peer."""

    peer: Peer
    message_id: int
    mark: int


def copy_of(peer: Peer, message: Message) -> Copy:
    """The copy that this message to or from the peer is."""
    return Copy(peer, message.message_id, copy_checksum(message))


@dataclass(slots=True)
class _Sent:
    """A copy that the broker sent on."""

    message: Message
    resend_at: float
    wait: float = RESEND_S
    broken: bool = False  # the link has broken since


@dataclass(slots=True, eq=False)
class PendingAck:
    """The pending acknowledgement of one copy that arrived."""

    message_id: int
    copy: Copy | None  # the copy that arrived
    ack: Message  # the acknowledgement for it
    until: float  # then the broker gives it up, without an acknowledgement
    size: int
    held_until: float = -inf
    waiting: dict[Copy, _Sent] = field(default_factory=dict)


class Due(NamedTuple):
    """The copies to send again, and the publications that the broker has given up."""

    resend: tuple[tuple[Peer, Message], ...] = ()
    given_up: tuple[int, ...] = ()  # message ids


class PendingAcks:
    """All pending acknowledgements of a broker."""

    def __init__(self, number: int, keep_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._number = number
        self._keep_s = keep_s
        self._max_bytes = max_bytes
        self._by_copy: dict[Copy, PendingAck] = {}
        self._by_id: dict[int, list[PendingAck]] = {}
        self._touched: list[PendingAck] = []
        self._closed: OrderedDict[Copy, None] = OrderedDict()
        self._look_at = inf  # nothing is due before
        self.bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    def _all(self) -> Iterator[PendingAck]:
        for entries in self._by_id.values():
            yield from entries

    # Copies that arrive

    def is_closed(self, copy: Copy) -> bool:
        """Whether the broker has acknowledged this copy lately."""
        return copy in self._closed

    def is_open(self, copy: Copy) -> bool:
        return copy in self._by_copy

    def open(self, peer: Peer | None, message: Message, now: float) -> PendingAck | None:
        """Open one for this publication, from the peer or without an incoming copy. Return None without free memory."""
        size = len(message.payload) + OVERHEAD
        if self.bytes + size > self._max_bytes:
            return None
        copy = None if peer is None else copy_of(peer, message)
        ack = acknowledgement(self._number, message)
        pending = PendingAck(message.message_id, copy, ack, now + self._keep_s, size)
        self.bytes += size
        self._by_id.setdefault(message.message_id, []).append(pending)
        if copy is not None:
            self._by_copy[copy] = pending
        self._touched.append(pending)
        self._look_at = min(self._look_at, pending.until)
        return pending

    def find(self, message_id: int) -> PendingAck | None:
        """A pending acknowledgement of this publication, preferably one that waits for no copy.

        One that has not begun does not count: a copy that is sent before that is not its consequence, and must not end
        it.
        """
        return self._least_waiting(self._by_id.get(message_id, []))

    def find_for_client(self, message_id: int, client: Peer | None) -> PendingAck | None:
        """The same, but one whose acknowledgement goes to this client, or to no peer.

        Copies of one whose acknowledgement goes to another broker must not be sent a second time: such a copy would be
        the same, and that broker may wait for it itself.
        """
        entries = self._by_id.get(message_id, [])
        own = [one for one in entries if one.copy is None or one.copy.peer == client]
        return self._least_waiting(own)

    def _least_waiting(self, entries: list[PendingAck]) -> PendingAck | None:
        begun = [one for one in entries if one.held_until != inf]
        return min(begun, key=lambda one: len(one.waiting), default=None)

    def awaits(self, copy: Copy) -> bool:
        """Whether a pending acknowledgement waits for this copy."""
        return any(copy in one.waiting for one in self._by_id.get(copy.message_id, []))

    def discard(self, pending: PendingAck) -> None:
        """Drop it without an acknowledgement: the copy was invalid, or others are to keep it."""
        if not self._has(pending):
            return
        entries = self._by_id[pending.message_id]
        entries.remove(pending)
        if not entries:
            del self._by_id[pending.message_id]
        if pending.copy is not None:
            del self._by_copy[pending.copy]
        self.bytes -= pending.size

    def discard_held(self, holds: Callable[[int], bool]) -> None:
        """Drop those that are held, here or by `holds`: their publications will not be sent on any more."""
        for one in list(self._all()):
            if one.held_until != -inf or (not one.waiting and holds(one.message_id)):
                self.discard(one)

    def idle_of(self, peers: Container[Peer], until: float) -> list[PendingAck]:
        """Those that go to one of these peers, wait for no acknowledgement, and are not held until then."""
        of_peers = [one for copy, one in self._by_copy.items() if copy.peer in peers]
        return [one for one in of_peers if not one.waiting and one.held_until < until]

    # Copies that go out

    def track(self, peer: Peer, message: Message, now: float, cause: PendingAck | None) -> None:
        """The broker sends a copy. Without a cause, the copy is of a publication that has waited here."""
        if not has_custody(message):
            return
        if cause is None and self.awaits(copy_of(peer, message)):
            return  # sent again: a second entry for the same copy might wait for itself
        if cause is None and (cause := self.find(message.message_id)) is not None:
            self.release(cause)
        cause = cause or self.open(None, message, now)
        if cause is not None:
            self.sent(cause, peer, message, now)

    def sent(self, pending: PendingAck, peer: Peer, message: Message, now: float) -> None:
        """Record a copy that was sent because of this one."""
        size = len(message.routing) + OVERHEAD
        pending.waiting[copy_of(peer, message)] = _Sent(message, now + RESEND_S)
        pending.size += size
        self.bytes += size
        self._look_at = min(self._look_at, now + RESEND_S)

    def hold(self, pending: PendingAck, until: float) -> None:
        """More copies may follow until then."""
        pending.held_until = until
        self._look_at = min(self._look_at, until)

    def release(self, pending: PendingAck) -> None:
        """No more copies follow but those that are sent now."""
        pending.held_until = -inf
        self._touched.append(pending)

    def on_ack(self, copy: Copy) -> None:
        """A peer has acknowledged this copy."""
        for one in self._by_id.get(copy.message_id, []):
            if one.waiting.pop(copy, None) is not None:
                self._touched.append(one)

    def on_link_broken(self, peer: Peer) -> None:
        """Copies without acknowledgement may not have arrived."""
        for one in self._all():
            for copy, sent in one.waiting.items():
                sent.broken = sent.broken or copy.peer == peer

    def on_link_up(self, peer: Peer, now: float) -> list[Message]:
        """The link is up: return the copies to send again, because the link had broken."""
        resend = []
        for one in self._all():
            for copy, sent in one.waiting.items():
                if copy.peer == peer and sent.broken:
                    sent.broken, sent.resend_at = False, now + sent.wait
                    resend.append(sent.message)
        return resend

    def forget_peer(self, peer: Peer) -> list[tuple[PendingAck, Message]]:
        """The peer is gone: expect and send no acknowledgement. Return the copies that it had not acknowledged."""
        found = []
        for one in self._all():
            copies = [copy for copy in one.waiting if copy.peer == peer]
            found += [(one, one.waiting.pop(copy).message) for copy in copies]
            if one.copy is not None and one.copy.peer == peer:
                del self._by_copy[one.copy]
                one.copy = None
            self._touched.append(one)
        return found

    # The end, and time

    def close(self, holds: Callable[[int], bool]) -> list[tuple[Peer, Message]]:
        """Close those that are complete; return their acknowledgements. `holds`: whether more copies will be sent."""
        touched, self._touched = dict.fromkeys(self._touched), []
        acks = []
        for one in touched:
            if one.waiting or one.held_until != -inf or not self._has(one):
                continue
            if holds(one.message_id):
                self._touched.append(one)
                continue
            self.discard(one)
            if one.copy is not None:
                acks.append((one.copy.peer, one.ack))
                self._closed[one.copy] = None
        while len(self._closed) > MAX_CLOSED:
            self._closed.popitem(last=False)
        return acks

    def _has(self, pending: PendingAck) -> bool:
        return pending in self._by_id.get(pending.message_id, [])

    def next_deadline(self) -> float | None:
        return None if self._look_at == inf else self._look_at

    def due(self, now: float) -> Due:
        """The copies to send again, and the publications to give up; those whose hold has ended may be closed."""
        if now < self._look_at:
            return Due()
        resend, given_up = [], []
        for one in list(self._all()):
            if -inf < one.held_until <= now:
                self.release(one)
            elif one.until <= now:
                self.discard(one)
                given_up.append(one.message_id)
                continue
            for copy, sent in one.waiting.items():
                if sent.resend_at <= now:
                    sent.wait *= 2
                    sent.resend_at = now + sent.wait
                    resend.append((copy.peer, sent.message))
        self._look_at = min(
            (moment for one in self._all() for moment in _moments(one)), default=inf
        )
        return Due(tuple(resend), tuple(given_up))


def _moments(pending: PendingAck) -> Iterator[float]:
    yield pending.until
    if pending.held_until != -inf:
        yield pending.held_until
    yield from (sent.resend_at for sent in pending.waiting.values())
