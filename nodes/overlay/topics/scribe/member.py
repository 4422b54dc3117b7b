"""A node of Scribe as a member of the graph: its one key, what it says to others, and the way to each topic's root."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import blake2b
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.node import IDLE_PERIOD_S, PERIOD_S, SkipGraphNode
from nodes.overlay.topics.base import Action, Doubted, Place, Send
from nodes.overlay.topics.membership import NEVER_S
from nodes.overlay.topics.scribe.routing import Bearing, Compass
from nodes.parameters import seconds
from nodes.protocol.overlay_messages import written
from nodes.protocol.scribe_messages import ScribeWord, hear_scribe, say_scribe
from nodes.protocol.skipgraph_messages import VECTOR_BITS
from nodes.protocol.wire import encode_topic

UNSURE_PERIODS = 3  # after a node has come, before it takes itself for a root


def topic_hash(topic: str) -> int:
    """Where the topic's root is looked for; the same everywhere and always."""
    return int.from_bytes(blake2b(encode_topic(topic), digest_size=VECTOR_BITS // 8).digest())


def node_key(number: int) -> bytes:
    """The one key of a node."""
    return number.to_bytes(4)


class Rooted(ABC):
    """What a node is before it takes part in any topic."""

    def __init__(
        self, method: str, place: Place, parameters: Mapping[str, Any], random: Random
    ) -> None:
        self._period_s = seconds(method, parameters, "period_s", PERIOD_S, NEVER_S)
        self._idle_s = seconds(method, parameters, "idle_period_s", IDLE_PERIOD_S, NEVER_S)
        self.number = place.number
        self.graph = SkipGraphNode(
            place.number,
            random.getrandbits(VECTOR_BITS) if place.vector is None else place.vector,
            place.introducers,
            random,
            place.incarnation,
            self._period_s,
            self._idle_s,
            place.watched,
            place.fallbacks,
        )
        self.compass = Compass(
            lambda: self.graph.peer(node_key(self.number)), self._tell, self._next_ticket
        )
        self._random = random
        self._tickets = (place.incarnation & 0xFFFFFFFF) << 32
        self._out: list[Action] = []
        self._now = 0.0
        self._begun = False
        self._sure_at: float | None = None  # None: not in the graph yet

    def _begin(self, now: float) -> None:
        """Every call begins here: the first one inserts the key, unless the graph stands already."""
        self._now = now
        if self._begun:
            return
        self._begun = True
        if self.graph.own_keys():
            self._sure_at = now
        self._act(self.graph.insert(node_key(self.number), now))

    def _heading(self, topic: str) -> int | Bearing:
        """The next node on the way to the topic's root, if it is known and not taken for dead."""
        if self._begun and not self.graph.own_keys():  # it has left: others know the way
            guide = self.graph.guide()
            return Bearing.UNKNOWN if guide is None else guide
        heading = self.compass.heading(topic_hash(topic))
        if isinstance(heading, int):
            return Bearing.UNKNOWN if self.graph.suspects(heading) else heading
        sure = self._sure_at is not None and self._now >= self._sure_at
        return heading if sure or heading is not Bearing.HERE else Bearing.UNKNOWN

    def _next_ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _tell(self, node: int, word: ScribeWord) -> None:
        self._act(self.graph.tell(node, say_scribe(word), self._now))

    def _act(self, actions: list[graph.Action]) -> None:
        for action in actions:
            match action:
                case graph.Send():
                    self._out.append(Send(action.node, written(action.message, self.number)))
                case graph.Told(sender, body):
                    self._hear(sender, hear_scribe(body))
                case graph.Moved():
                    self._on_moved()
                case graph.Restored():
                    self._on_restored()
                case graph.Doubted():
                    self._out.append(Doubted(action.node))
                case graph.Inserted():
                    self._sure_at = self._now + UNSURE_PERIODS * self._period_s

    @abstractmethod
    def _hear(self, sender: int, word: ScribeWord) -> None:
        """Another node says this."""

    @abstractmethod
    def _on_restored(self) -> None:
        """The node had lost its place in the graph, and has it again."""

    @abstractmethod
    def _on_moved(self) -> None:
        """A neighbour is another one now."""
