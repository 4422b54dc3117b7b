"""A broker of the map as a member of the graph: its keys, what it says to others, and what it hears.

Words are dealt with one after the other, in the order in which they come, also those to itself: none begins while
another is being dealt with. But a change in the ring is followed at once: no word is heard in between (`holdings`).
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from nodes.overlay.seen import Seen
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.contacts import VECTOR_BITS
from nodes.overlay.skipgraph.messages import Multicast
from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.tbps.base import Action, Doubted, Place, Refuse, Send
from nodes.overlay.tbps.letters import written
from nodes.overlay.zorder_map.keys import Keys
from nodes.overlay.zorder_map.registry import LIFE_BITS
from nodes.overlay.zorder_map.settings import Settings
from nodes.overlay.zorder_map.words import MapWord, Register, hear, say
from nodes.wire import WireError, message_id

Handlers = dict[type[Any], Callable[[int, Any], None]]


class Member(ABC):
    """What a broker is before it knows of any area."""

    def __init__(self, place: Place, settings: Settings, random: Random) -> None:
        self.number = place.number
        self.keys = Keys(settings.dimensions)
        self.graph = SkipGraphNode(
            place.number,
            random.getrandbits(VECTOR_BITS) if place.vector is None else place.vector,
            place.introducers,
            random,
            place.incarnation,
            settings.period_s,
            settings.idle_period_s,
            place.watched,
            place.fallbacks,
        )
        self._random = random
        self._handlers: Handlers = {}
        self._life = (place.incarnation & 0xFFFFFFFF) << LIFE_BITS
        self._numbers = self._life
        self._inbox: deque[tuple[int, MapWord]] = deque()
        self._heard = Seen()  # words to all
        self._out: list[Action] = []
        self._now = 0.0

    @abstractmethod
    def _on_moved(self) -> None:
        """The ring has changed at one of the own keys."""

    @abstractmethod
    def _on_inserted(self, key: bytes) -> None:
        """An own key stands in the ring."""

    @abstractmethod
    def _on_restored(self) -> None:
        """An own key had lost its place in the ring, and has it again."""

    def _next_number(self) -> int:
        """For versions, tickets and words to all; it goes on growing, also from one life to the next."""
        self._numbers += 1
        return self._numbers

    def _wavering(self, seconds: float) -> float:
        """About so many, so that not all brokers do the same at the same time."""
        return seconds * (0.9 + 0.2 * self._random.random())

    def _neighbours(self) -> list[int]:
        """Other nodes that are known from the graph."""
        peers = map(self.graph.peer, self.graph.own_keys())
        near = {contact.node for peer in peers if peer is not None for contact in peer.neighbours()}
        return sorted(near - {self.number})

    # What it says

    def _do(self, action: Action) -> None:
        self._out.append(action)

    def _tell(self, node: int, word: MapWord) -> None:
        self._act(self.graph.tell(node, say(word), self._now))

    def _carry(self, walk: Register) -> None:
        self._act(self.graph.carry(self.keys.sought(walk.first), say(walk), self._now))

    def _say_to_all(self, word: MapWord) -> None:
        identity = message_id(self.number, self._next_number())
        end = self.keys.sought((1 << self.keys.bits) - 1)
        self._act(self.graph.multicast(b"", end, identity, say(word), self._now))

    # What happens

    def _act(self, actions: list[graph.Action]) -> None:
        if any(isinstance(action, graph.Moved | graph.Removed) for action in actions):
            self._on_moved()
        for action in actions:
            match action:
                case graph.Send():
                    self._out.append(Send(action.node, written(action.message, self.number)))
                case graph.Told(sender, body) | graph.Carried(_, sender, body):
                    self._inbox.append((sender, hear(body, self.keys.bits)))
                case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body) as to_all):
                    if self._heard.add(to_all.identity):
                        self._inbox.append((sender, hear(body, self.keys.bits)))
                case graph.Inserted(key):
                    self._on_inserted(key)
                case graph.Restored():
                    self._on_restored()
                case graph.Doubted(node):
                    self._out.append(Doubted(node))

    def _hear_all(self) -> None:
        """What has come."""
        while self._inbox:
            sender, word = self._inbox.popleft()
            try:
                self._handlers[type(word)](sender, word)
            except WireError as error:
                self._out.append(Refuse(sender, str(error)))
