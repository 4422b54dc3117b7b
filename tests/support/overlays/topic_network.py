"""Topic nodes in virtual time, with a record of all deliveries."""

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.topics.base import Advertised, Deliver, Duplicate, Place, Subscribed, Withheld
from nodes.overlay.topics.keys import topic_of
from nodes.protocol.wire import Kind, Message, decode, encode, message_id
from support.overlays.overlay_network import RESTLESS_S, OverlayNetwork

FAREWELL_S = 6.0  # for this long other nodes may not know that a node no longer takes part


def parameter_sets(method: str) -> list[dict[str, str]]:
    """The parameters under which a method is tested: each of its variants, or none."""
    return [{"multicast": way} for way in TOPIC_METHODS[method].ways] or [{}]


class TopicNetwork(OverlayNetwork):
    """Nodes of one method. Every message is encoded and decoded on its way.

    Unless the parameters set another idle period, nodes check their neighbours all the time. A test that needs shells,
    which report dead nodes, provides them itself.
    """

    def __init__(self, method: str, seed: int, parameters: Mapping[str, Any], **how: Any) -> None:
        super().__init__(seed, listen=self._record, **how)
        self.method = method
        self.parameters = {"idle_period_s": RESTLESS_S, **parameters}
        self.subscribed: set[tuple[int, str]] = set()  # confirmed and not given up
        self.advertised: set[tuple[int, str]] = set()
        self.delivered: Counter[tuple[int, int]] = Counter()  # node, message id
        self.hops: dict[tuple[int, int], int] = {}
        self.duplicates = 0
        self.withheld: set[int] = set()
        self.relays: list[
            tuple[int, Message]
        ] = []  # nodes that received publications of topics they take no part in
        self._took_part: dict[tuple[int, str], float] = {}
        self._published = 0

    def start(self, number: int, introducers: Iterable[int], vector: int | None = None) -> Any:
        """Start a node, perhaps again after a crash."""
        place = Place(number, tuple(introducers), int(self.now * 1000), vector)
        random = Random(f"{self.seed} {number} {self.now}")
        self.nodes[number] = TOPIC_METHODS[self.method](place, self.parameters, random)
        self.act(number, [])
        return self.nodes[number]

    def act(self, number: int, actions: Iterable[Any]) -> None:
        super().act(number, actions)
        if number in self.nodes and TOPIC_METHODS[self.method].relay_free:
            for key in self.nodes[number].graph.own_keys():
                self._took_part[number, topic_of(key)] = self.now

    def send(self, sender: int, receiver: int, message: Message) -> None:
        assert decode(encode(message)) == message
        if message.kind is Kind.PUBLISH:
            self._look_for_relays(receiver, message)
        super().send(sender, receiver, message)

    def _look_for_relays(self, receiver: int, message: Message) -> None:
        """Record the receiver as a relay, unless it takes part in the topic or did until a moment ago."""
        last = self._took_part.get((receiver, message.topic), float("-inf"))
        if self.now - last > FAREWELL_S:
            self.relays.append((receiver, message))

    def crash(self, number: int) -> None:
        super().crash(number)
        self.subscribed = {entry for entry in self.subscribed if entry[0] != number}
        self.advertised = {entry for entry in self.advertised if entry[0] != number}

    def subscribe(self, number: int, topic: str) -> None:
        self.act(number, self.nodes[number].subscribe(topic, self.now))

    def unsubscribe(self, number: int, topic: str) -> None:
        self.subscribed.discard((number, topic))
        self.act(number, self.nodes[number].unsubscribe(topic, self.now))

    def advertise(self, number: int, topic: str) -> None:
        self.act(number, self.nodes[number].advertise(topic, self.now))

    def withdraw(self, number: int, topic: str) -> None:
        self.advertised.discard((number, topic))
        self.act(number, self.nodes[number].withdraw(topic, self.now))

    def publish(self, number: int, topic: str, priority: int = 1, flags: int = 0) -> int:
        """Publish; return the message id."""
        self._published += 1
        identity = message_id(number, self._published)
        message = Message(
            Kind.PUBLISH, priority, 0, flags, origin=number, message_id=identity, topic=topic
        )
        self.act(number, self.nodes[number].publish(message, self.now))
        return identity

    def receivers(self, identity: int) -> set[int]:
        """The nodes that got the publication."""
        return {number for number, message in self.delivered if message == identity}

    def publications(self) -> list[tuple[int, int, Message]]:
        """Sender, receiver and message of all publications that were sent between nodes."""
        return [entry for entry in self.passed if entry[2].kind is Kind.PUBLISH]

    def _record(self, number: int, action: Any) -> None:
        match action:
            case Subscribed(topic):
                self.subscribed.add((number, topic))
            case Advertised(topic):
                self.advertised.add((number, topic))
            case Deliver(message):
                self.delivered[number, message.message_id] += 1
                self.hops.setdefault((number, message.message_id), message.hops)
            case Duplicate():
                self.duplicates += 1
            case Withheld(message):
                self.withheld.add(message.message_id)
