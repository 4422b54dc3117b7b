"""Brokers of one collection in virtual time, each with a sensor that publishes periodically."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.collection.node import Collection
from nodes.overlay.topics.base import Deliver, Place, Subscribed
from nodes.protocol.joined import split
from nodes.protocol.wire import Kind, Message, decode, encode, message_id
from support.overlays.overlay_network import OverlayNetwork

TOPIC = "slope/water"
ANCHOR = "anchor"  # keeps broker 0 in the graph
SENSORS = 1000  # the sensor of broker 7 has number 1007
NANOSECONDS = 1_000_000_000


class CollectionNetwork(OverlayNetwork):
    """Broker 0 introduces the others. Every message is encoded and decoded on its way."""

    def __init__(self, seed: int, parameters: Mapping[str, Any] | None = None, **how: Any) -> None:
        super().__init__(seed, listen=self._record, **how)
        self.parameters = {"idle_period_s": 1.0, **(parameters or {})}
        self.vectors: dict[int, int] = {}
        self.subscribed: set[int] = set()
        self.delivered: Counter[tuple[int, int]] = Counter()  # node, message id
        self.hops: dict[int, int] = {}  # message id -> hops between brokers to its first collector
        self.came: dict[int, float] = {}  # message id -> time of its first delivery
        self.counters: Counter[int] = Counter()
        self.published: dict[int, float] = {}  # message id -> time of its publication

    def start(self, number: int) -> None:
        """Start a broker, perhaps again after a crash."""
        vector = self.vectors.setdefault(number, Random(f"{self.seed} {number}").getrandbits(64))
        introducers = () if number == 0 else (0,)
        place = Place(number, introducers, int(self.now * 1000), vector)
        random = Random(f"{self.seed} {number} {self.now}")
        self.nodes[number] = Collection(place, self.parameters, random)
        self.act(number, [])
        if number == 0:
            self.act(number, self.nodes[number].subscribe(ANCHOR, self.now))

    def begin(self, number: int) -> None:
        """Let the broker advertise that it is going to publish."""
        self.act(number, self.nodes[number].advertise(TOPIC, self.now))

    def collect(self, number: int) -> None:
        """Let the broker subscribe to all readings."""
        self.act(number, self.nodes[number].subscribe(TOPIC, self.now))

    def publish(self, number: int, level: int = 1, flags: int = 0) -> int:
        """Publish a reading of the broker's sensor; return its message id."""
        sensor = SENSORS + number
        self.counters[sensor] += 1
        identity = message_id(sensor, self.counters[sensor])
        message = Message(
            Kind.PUBLISH,
            level,
            0,
            flags,
            sensor,
            identity,
            round(self.now * NANOSECONDS),
            TOPIC,
            b"1.25",
        )
        self.published[identity] = self.now
        self.act(number, self.nodes[number].publish(message, self.now))
        return identity

    def play(self, periods: Mapping[int, float], seconds: float) -> list[int]:
        """Let the sensors of these brokers publish for this long, at the multiples of their periods; return all ids."""
        begin, out = self.now, []
        times = dict.fromkeys(periods, 0)
        while True:
            moments = {number: begin + times[number] * periods[number] for number in periods}
            number = min(moments, key=lambda each: (moments[each], each))
            if moments[number] >= begin + seconds:
                break
            self.run(max(0.0, moments[number] - self.now))
            if number in self.nodes:
                out.append(self.publish(number))
            times[number] += 1
        self.run(max(0.0, begin + seconds - self.now))
        return out

    def send(self, sender: int, receiver: int, message: Message) -> None:
        assert decode(encode(message)) == message
        super().send(sender, receiver, message)

    def receivers(self, identity: int) -> set[int]:
        return {number for number, message in self.delivered if message == identity}

    def readings_sent(self, since: int = 0) -> list[tuple[int, int, list[Message]]]:
        """Sender, receiver and publications of all messages that carry any, beginning with message number `since`."""
        found = []
        for sender, receiver, message in self.passed[since:]:
            if message.kind is Kind.JOINED:
                found.append((sender, receiver, split(message)))
            elif message.kind is Kind.PUBLISH:
                found.append((sender, receiver, [message]))
        return found

    def _record(self, number: int, action: Any) -> None:
        match action:
            case Subscribed(topic) if topic == TOPIC:
                self.subscribed.add(number)
            case Deliver(message):
                self.delivered[number, message.message_id] += 1
                self.hops.setdefault(message.message_id, message.hops)
                self.came.setdefault(message.message_id, self.now)
