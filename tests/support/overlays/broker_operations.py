"""Sequences of crashes, broken links, isolated brokers and moves, played with the real cores of an overlay.

A publication with custody reaches every subscriber that was confirmed before it was made, wherever that subscriber is
now, and each application gets it once. Once the network is quiet, no
acknowledgement is pending, and the sensors have theirs.
"""

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nodes.overlay.methods import TOPIC_METHODS
from nodes.protocol.interests import Interest, parse
from nodes.protocol.regions import Box
from nodes.protocol.wire import Kind, Message
from support.overlays.broker_network import BrokerNetwork

BROKERS = [f"b{number}" for number in range(1, 7)]
SENSORS = {"s1": ["slope"], "s2": ["slope", "valley"]}
WEST, EAST = Box((0, 0), (6, 9)), Box((4, 0), (9, 9))  # they overlap
SUBSCRIBERS = {
    "c1": ["slope", "valley"],
    "c2": ["slope"],
    "c3": ["valley"],
    "c4": [Interest("slope", WEST).text, Interest("slope", EAST, 4).text],
}
MOST_DOWN = 2
QUIET_S = 140.0  # copies are sent again, and publishers are asked, for the last time after a minute

clients = st.sampled_from([*SENSORS, *SUBSCRIBERS])
brokers = st.sampled_from(BROKERS)


class BrokerOperations(RuleBasedStateMachine):
    """Six brokers, at most two of which are down at a time."""

    @initialize(
        seed=st.integers(0, 2**32),
        method=st.sampled_from(sorted(TOPIC_METHODS)),
        slowest=st.sampled_from([0.02, 0.1, 0.3]),
        begin=st.sampled_from([1.0, 20.0]),
    )
    def begin(self, seed: int, method: str, slowest: float, begin: float) -> None:
        self.random = Random(seed)
        self.network = BrokerNetwork(method, seed, len(BROKERS), slowest=slowest, dimensions=2)
        self.published: dict[int, set[str]] = {}  # message id -> subscribers that must get it
        self.confirmed: set[tuple[str, str]] = set()  # confirmed at some time so far
        for number, (name, topics) in enumerate(SENSORS.items(), 101):
            sensor = self.network.join(name, number, [], self.brokers_in_random_order())
            self.network.act(name, sensor.advertise(topics, 0.0))
        for number, (name, topics) in enumerate(SUBSCRIBERS.items(), 111):
            self.network.join(name, number, topics, self.brokers_in_random_order())
        self.run(begin)

    def brokers_in_random_order(self) -> list[str]:
        return self.random.sample(BROKERS, len(BROKERS))

    def run(self, seconds: float) -> None:
        self.network.run(seconds)
        for name in SUBSCRIBERS:
            self.confirmed |= {(name, topic) for topic in self.network.cores[name]._confirmed}

    @rule(data=st.data(), sensor=st.sampled_from(sorted(SENSORS)), level=st.integers(3, 5))
    def publish(self, data: st.DataObject, sensor: str, level: int) -> None:
        self.publish_on(sensor, data.draw(st.sampled_from(SENSORS[sensor])), level)

    def publish_on(self, sensor: str, topic: str, level: int) -> None:
        place = (self.random.randrange(10), self.random.randrange(10))
        message = Message(Kind.PUBLISH, level, topic=topic, place=place)
        wanted = {name for name, text in self.confirmed if parse(text).wants(message)}
        identity = self.network.publish(sensor, len(self.published) + 1, topic, level, place)
        self.published[identity] = wanted

    @rule(seconds=st.sampled_from([0.02, 0.1, 0.5, 3.0]))
    def wait(self, seconds: float) -> None:
        self.run(seconds)

    @rule(client=clients, broker=brokers)
    def move(self, client: str, broker: str) -> None:
        self.network.move(client, broker)

    @rule(one=brokers, other=brokers)
    def cut(self, one: str, other: str) -> None:
        if one in self.network.cores:
            self.network.cut(one, other)

    @precondition(lambda self: len(self.network.alive()) > len(BROKERS) - MOST_DOWN)
    @rule(broker=brokers)
    def crash(self, broker: str) -> None:
        if broker in self.network.cores:
            self.network.kill(broker)

    @rule(broker=brokers)
    def restart(self, broker: str) -> None:
        if broker not in self.network.cores:
            self.network.start(broker)

    @precondition(lambda self: len(self.network.alive()) > len(BROKERS) - MOST_DOWN)
    @rule(broker=brokers)
    def leave(self, broker: str) -> None:
        """Let a broker leave in order, and start it again."""
        if broker in self.network.cores:
            self.network.leave(broker)
            self.run(3.0)
            self.network.kill(broker)
            self.network.start(broker)

    @precondition(lambda self: not self.network.isolated)
    @rule(broker=brokers)
    def isolate(self, broker: str) -> None:
        if broker in self.network.cores:
            self.network.isolate(broker)

    @rule()
    def heal(self) -> None:
        self.network.isolated.clear()

    @rule(seed=st.integers(0, 2**32))
    def bustle(self, seed: int) -> None:
        """Let many operations overlap, which single rules seldom do."""
        random = Random(seed)
        for _ in range(12):
            broker, sensor = random.choice(BROKERS), random.choice(sorted(SENSORS))
            match random.choice("pppwwwmcxr"):
                case "p":
                    topic = random.choice(SENSORS[sensor])
                    self.publish_on(sensor, topic, random.randint(3, 5))
                case "m":
                    self.move(random.choice([*SENSORS, *SUBSCRIBERS]), broker)
                case "c":
                    self.cut(broker, random.choice(BROKERS))
                case "x" if len(self.network.alive()) > len(BROKERS) - MOST_DOWN:
                    self.crash(broker)
                case "r":
                    self.restart(broker)
                case _:
                    self.run(random.uniform(0, 1.5))

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        network = self.network
        network.isolated.clear()
        network.run(QUIET_S)
        for identity, wanted in self.published.items():
            missed = wanted - network.receivers(identity)
            assert not missed, f"{identity:016x}"
        assert set(network.delivered.values()) <= {1}
        assert network.acknowledged == set(self.published)
        assert all(network.cores[name].ready for name in [*SENSORS, *SUBSCRIBERS])
        assert network.refused == []
        for name in network.alive():
            core = network.cores[name]
            assert len(core._local.pending) == 0
            assert core._local.pending.bytes == 0
            assert len(core._local.retained) <= len(self.published)
