"""Heartbeats: which silent peers to probe, and which are dead.

    received ---- interval ----> probe ---- heartbeat_s ----> probe ---- heartbeat_s ----> dead

Everything that a peer sends shows that it is alive. The interval is at least `heartbeat_s`, and so long that all probes
and replies on the links of a node keep to `heartbeat_budget`. A node also probes a peer that owes it a reply and sends
nothing for `heartbeat_s`: such a link is in use now and is watched closely.
A probed peer replies with a heartbeat, unless it has sent something within the last `heartbeat_s`: then the probe left
before that message arrived.
"""

from dataclasses import dataclass
from typing import NamedTuple

from nodes.overlay.base import Peer
from nodes.overlay.reliability.custody import has_custody
from nodes.overlay.reliability.settings import ReliabilitySettings
from nodes.protocol.wire import Kind, Message

QUESTION, ANSWER = b"?", b""  # the payload of a HEARTBEAT
FOUND = b"!"  # the same, to another broker that was unreachable and is reachable again
# Bytes of a probe on a link, both ways: the probe, the reply, and TCP's acknowledgement of it, as Ethernet frames.
# A heartbeat is header and payload in a WebSocket frame with mask; TCP has time stamps.
FRAME = 66
EXCHANGE_COST = (28 + 1 + 6 + FRAME) + (28 + 6 + FRAME) + FRAME
QUESTIONS = 2  # without an answer, then the peer is dead


def heartbeat_message(number: int, payload: bytes) -> Message:
    """A question, an answer or FOUND from the node of this number."""
    return Message(Kind.HEARTBEAT, origin=number, payload=payload)


def awaits_answer(message: Message) -> bool:
    """Whether a living peer answers this message."""
    return has_custody(message) or (message.kind is Kind.HEARTBEAT and message.payload == QUESTION)


class Due(NamedTuple):
    """Silent peers: those to probe, and those that are dead."""

    ask: tuple[Peer, ...] = ()
    dead: tuple[Peer, ...] = ()


@dataclass(slots=True)
class _Silence:
    received_at: float
    next_at: float  # when a probe or a verdict is due, if nothing is received
    asked: int = 0  # probes since something was last received
    sent_at: float | None = None
    awaited_from: float | None = None  # since then a reply is due, and nothing was received


class Heartbeats:
    """The heartbeats of all links of one node."""

    def __init__(self, reliability: ReliabilitySettings) -> None:
        self._heartbeat_s = reliability.heartbeat_s
        self._budget = reliability.heartbeat_budget
        self._links: dict[Peer, _Silence] = {}
        self._next_check_at: float | None = None  # nothing is due before

    @property
    def interval(self) -> float:
        """How long a peer may be silent until it is probed; 0 if no peer is ever probed."""
        if self._heartbeat_s is None:
            return 0.0
        return max(self._heartbeat_s, len(self._links) * EXCHANGE_COST / self._budget)

    def up(self, peer: Peer, now: float) -> None:
        """A link to the peer is up."""
        if self._heartbeat_s is None:
            return
        silence = self._links[peer] = _Silence(now, now)
        self._ask_at(silence, now + self.interval)

    def down(self, peer: Peer) -> None:
        """The link to the peer is down."""
        self._links.pop(peer, None)
        if not self._links:
            self._next_check_at = None

    def received(self, peer: Peer, at: float) -> None:
        """The peer sent something, at this time; a late or repeated call does no harm."""
        silence = self._links.get(peer)
        if silence is not None and at > silence.received_at:
            silence.received_at = at
            silence.asked = 0
            self._ask_at(silence, at + self.interval)
            if silence.awaited_from is not None and silence.awaited_from <= at:
                silence.awaited_from = None
            self._watch_closely(silence)

    def sent(self, peer: Peer, now: float, *, awaits: bool = False) -> None:
        """This node sent something to the peer; `awaits`: something that the peer answers."""
        if (silence := self._links.get(peer)) is None:
            return
        silence.sent_at = now
        if awaits and silence.awaited_from is None:
            silence.awaited_from = now
            self._watch_closely(silence)

    def _watch_closely(self, silence: _Silence) -> None:
        if silence.awaited_from is not None and not silence.asked and self._heartbeat_s is not None:
            self._ask_at(silence, min(silence.next_at, silence.awaited_from + self._heartbeat_s))

    def _ask_at(self, silence: _Silence, at: float) -> None:
        silence.next_at = at
        if self._next_check_at is None or at < self._next_check_at:
            self._next_check_at = at

    def must_answer(self, peer: Peer, now: float) -> bool:
        """Whether a probe that came just now needs a reply of its own."""
        silence = self._links.get(peer)
        if silence is None or silence.sent_at is None or self._heartbeat_s is None:
            return True
        return now - silence.sent_at >= self._heartbeat_s

    def next_deadline(self) -> float | None:
        """When to call `due` next; nothing is due before, and perhaps nothing then."""
        return self._next_check_at

    def due(self, now: float) -> Due:
        """The peers to probe now, and those that are dead; the links of the dead are forgotten."""
        if self._next_check_at is None or self._heartbeat_s is None or now < self._next_check_at:
            return Due()
        ask, dead = [], []
        for peer, silence in self._links.items():
            if silence.next_at > now:
                continue
            if silence.asked == QUESTIONS:
                dead.append(peer)
            else:
                ask.append(peer)
                silence.asked += 1
                silence.next_at = now + self._heartbeat_s
        for peer in dead:
            del self._links[peer]
        self._next_check_at = min((each.next_at for each in self._links.values()), default=None)
        return Due(tuple(ask), tuple(dead))
