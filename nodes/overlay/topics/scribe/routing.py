"""Which neighbour a bit string leads to, on a Skip Graph with one key a node: routing by membership vectors.

Level by level: if the node's own bit is the wanted one, the next level decides. Else the way leads along the list of
this level, to the nearest member that has the bit, whichever side it is on; of two as near, to the right one. Where no
member has it, the other bit is taken for it, by all alike, and the next level decides. Who is alone in a list is the
end of all ways: the root. The next hop depends on nothing but node and bits, so ways that meet stay together.

Neighbours' vectors are known, so often a look is enough. Else both sides are asked: a question goes along the list to
the first that has the bit, or to the end, and is answered to the asker at once. Answers hold for all topics; they are
asked for anew when the neighbours of the level are others, and now and then, because the list may change farther off.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from nodes.overlay.skipgraph.table import Peer
from nodes.protocol.scribe_messages import Answer, Ask, ScribeWord
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact

_SIDES = (False, True)  # left, right
_MOST_STEPS = 0xFFFFFFFF
_Near = tuple[Contact | None, Contact | None]


class Bearing(Enum):
    """Where there is no next hop."""

    HERE = auto()  # this node is the root
    UNKNOWN = auto()  # it has been asked for


@dataclass(slots=True)
class _Sight:
    """What is known of the nearest member of a list with the other bit."""

    near: _Near  # neighbours when it was asked for
    ticket: int
    steps: dict[bool, int] = field(default_factory=dict)  # answers so far; 0: nobody
    toward: Contact | None = None  # by the answers before; None: nobody has it
    known: bool = False
    used: bool = True


class Compass:
    """Finds next hops for the one peer of a node."""

    def __init__(
        self,
        peer: Callable[[], Peer | None],
        tell: Callable[[int, ScribeWord], None],
        ticket: Callable[[], int],
    ) -> None:
        self._peer = peer
        self._tell = tell
        self._ticket = ticket
        self._sights: dict[int, _Sight] = {}

    def heading(self, target: int) -> int | Bearing:
        """The next node on the way to the root of this bit string."""
        peer = self._peer()
        if peer is None or not peer.in_ring:
            return Bearing.UNKNOWN
        for level in range(VECTOR_BITS):
            near = peer.neighbour(level, False), peer.neighbour(level, True)
            if near == (None, None):
                break
            if _bit(peer.me.vector, level) == _bit(target, level):
                continue
            sight = self._sight(peer, level, near)
            if not sight.known:
                return Bearing.UNKNOWN
            if sight.toward is not None:
                return sight.toward.node
        return Bearing.HERE

    def on_ask(self, ask: Ask) -> None:
        """Somebody's question has come along a list."""
        peer = self._peer()
        if peer is None or not peer.in_ring:
            return
        steps = ask.steps
        if _bit(peer.me.vector, ask.level) != ask.bit:
            onward = peer.neighbour(ask.level, bool(ask.rightwards))
            if onward is not None and steps < _MOST_STEPS:
                self._tell(onward.node, replace(ask, steps=steps + 1))
                return
            steps = 0
        self._tell(ask.asker, Answer(ask.level, ask.rightwards, steps, ask.ticket))

    def on_answer(self, answer: Answer) -> None:
        sight = self._sights.get(answer.level)
        if sight is not None and sight.ticket == answer.ticket:
            sight.steps[bool(answer.rightwards)] = answer.steps
            _conclude(sight)

    def tick(self, renew: bool) -> None:
        """Ask again what has not been answered; and everything in use, if it is time to renew.

        What has not been answered keeps its ticket: the answer may only be late.
        """
        for level, sight in list(self._sights.items()):
            if renew and not sight.used:
                del self._sights[level]
            elif renew or not sight.known:
                sight.used = False
                if len(sight.steps) == len(_SIDES):
                    sight.ticket = self._ticket()
                    sight.steps.clear()
                self._question(level, sight)

    def _sight(self, peer: Peer, level: int, near: _Near) -> _Sight:
        own = _bit(peer.me.vector, level)
        for contact in reversed(near):  # the right one first
            if contact is not None and _bit(contact.vector, level) != own:
                return _Sight(near, 0, toward=contact, known=True)
        sight = self._sights.get(level)
        if sight is None or sight.near != near:
            sight = self._sights[level] = _Sight(near, self._ticket())
            self._question(level, sight)
        sight.used = True
        return sight

    def _question(self, level: int, sight: _Sight) -> None:
        peer = self._peer()
        if peer is None:
            return
        wanted = 1 - _bit(peer.me.vector, level)
        for rightwards, contact in zip(_SIDES, sight.near, strict=True):
            if contact is None:
                sight.steps[rightwards] = 0
            else:
                ask = Ask(level, wanted, int(rightwards), 1, peer.me.node, sight.ticket)
                self._tell(contact.node, ask)


def _conclude(sight: _Sight) -> None:
    """Both sides have answered: the nearer one it is."""
    if len(sight.steps) < len(_SIDES):
        return
    left, right = (sight.steps[rightwards] for rightwards in _SIDES)
    rightwards = bool(right) and (not left or right <= left)
    sight.toward = sight.near[rightwards] if left or right else None
    sight.known = True


def _bit(bits: int, level: int) -> int:
    return bits >> (VECTOR_BITS - 1 - level) & 1
