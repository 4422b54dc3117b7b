"""Collections under any sequence of events: crashes may lose readings, nothing else does; no reading arrives twice."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nodes.overlay.collection.rules import Way
from support.overlays.broker_network import BrokerNetwork
from support.overlays.collection_network import TOPIC, CollectionNetwork

BROKERS = range(1, 8)
brokers = st.sampled_from(BROKERS)
how = st.fixed_dictionaries(
    {
        "way": st.sampled_from([way.value for way in Way]),
        "aggregate": st.sampled_from([True, True, False]),
        "wait_s": st.sampled_from([0, 0.3, 2.0]),
    }
)


class Changes(RuleBasedStateMachine):
    """Brokers begin to publish, change periods, leave; collectors come and go. No message is lost, no broker dies."""

    @initialize(
        seed=st.integers(0, 2**32), parameters=how, slowest=st.sampled_from([0.02, 0.3, 0.8])
    )
    def begin(self, seed: int, parameters: dict[str, object], slowest: float) -> None:
        self.network = CollectionNetwork(seed, parameters, slowest=slowest)
        self.expected: dict[int, set[int]] = {}  # message id -> collectors that must get it
        self.publishing: set[int] = set()
        for number in (0, *BROKERS):
            self.network.start(number)
        self.network.collect(0)
        self.network.run(20)

    @rule(number=brokers)
    def publishes(self, number: int) -> None:
        self.publishing.add(number)
        self.network.begin(number)

    @rule(number=brokers)
    def publishes_no_more(self, number: int) -> None:
        if number in self.publishing:
            self.network.run(15)  # readings that wait for the collector's question are asked for
            self.publishing.discard(number)
            self.act(number, "withdraw")

    @rule(number=brokers)
    def collects_too(self, number: int) -> None:
        self.network.collect(number)

    @rule(number=st.sampled_from([0, *BROKERS]))
    def collects_no_more(self, number: int) -> None:
        for wanted in self.expected.values():
            wanted.discard(number)
        self.network.subscribed.discard(number)
        self.act(number, "unsubscribe")

    def act(self, number: int, what: str) -> None:
        node = self.network.nodes[number]
        self.network.act(number, getattr(node, what)(TOPIC, self.network.now))

    @rule(number=brokers, level=st.integers(1, 5))
    def publish(self, number: int, level: int) -> None:
        if number in self.publishing:
            wanted = set(self.network.subscribed)
            self.expected[self.network.publish(number, level)] = wanted

    @rule(seed=st.integers(0, 2**32))
    def rounds(self, seed: int) -> None:
        """Let every broker publish with a period of its own, long enough for others to learn it."""
        random = Random(seed)
        periods = {number: random.choice([0.5, 1.0, 1.5]) for number in sorted(self.publishing)}
        if periods:
            wanted = set(self.network.subscribed)
            for identity in self.network.play(periods, 5):
                self.expected[identity] = wanted

    @rule(seconds=st.floats(0.01, 3))
    def wait(self, seconds: float) -> None:
        self.network.run(seconds)

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        network = self.network
        network.slowest = 0.05
        network.run(120)
        for identity, wanted in self.expected.items():
            assert wanted <= network.receivers(identity), f"{identity:016x}"
        assert set(network.delivered.values()) <= {1}
        for number in sorted(self.publishing):
            self.expected = {}
            identity = network.publish(number)
            network.run(10)
            assert network.receivers(identity) == network.subscribed


class Crashes(RuleBasedStateMachine):
    """Whole brokers with clients on links that break: after any crash, readings of running sensors go on arriving."""

    names = tuple(f"b{number}" for number in range(1, 7))

    @initialize(seed=st.integers(0, 2**32), parameters=how)
    def begin(self, seed: int, parameters: dict[str, object]) -> None:
        self.random = Random(seed)
        self.network = BrokerNetwork("collection", seed, len(self.names), parameters)
        self.counter = 0
        self.alerts: set[int] = set()
        self.sensors = [f"s{number}" for number in range(4)]
        for number, name in enumerate(self.sensors):
            brokers = self.random.sample(self.names, len(self.names))
            sensor = self.network.join(name, 101 + number, [], brokers)
            self.network.act(name, sensor.advertise([TOPIC], 0.0))
        self.network.join("collector", 111, [TOPIC], [self.names[-1], *self.names[:-1]])
        self.network.run(20)

    @rule(seconds=st.sampled_from([1.0, 4.0]), level=st.integers(1, 5))
    def publish(self, seconds: float, level: int) -> None:
        for _ in range(3):
            self.counter += 1
            for name in self.sensors:
                identity = self.network.publish(name, self.counter, TOPIC, level)
                if level >= 3:
                    self.alerts.add(identity)
            self.network.run(seconds / 3)

    @precondition(lambda self: len(self.network.alive()) > len(self.names) - 2)
    @rule(name=st.sampled_from(names))
    def crash(self, name: str) -> None:
        if name in self.network.cores:
            self.network.kill(name)

    @rule(name=st.sampled_from(names))
    def restart(self, name: str) -> None:
        if name not in self.network.cores:
            self.network.start(name)

    @rule(one=st.sampled_from(names), other=st.sampled_from(names))
    def cut(self, one: str, other: str) -> None:
        if one in self.network.cores:
            self.network.cut(one, other)

    @rule(name=st.sampled_from(names))
    def leave(self, name: str) -> None:
        """Let a broker leave in order, and start it again."""
        if name in self.network.cores and len(self.network.alive()) > len(self.names) - 2:
            self.network.leave(name)
            self.network.run(3)
            self.network.kill(name)
            self.network.start(name)

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        network = self.network
        network.run(140)
        for identity in self.alerts:
            assert network.receivers(identity) == {"collector"}
        last = []
        for _ in range(3):
            self.counter += 1
            last += [network.publish(name, self.counter, TOPIC, 1) for name in self.sensors]
            network.run(2)
        network.run(20)
        assert all(network.receivers(identity) == {"collector"} for identity in last)
        assert set(network.delivered.values()) <= {1}
        assert network.refused == []


def case(machine: type[RuleBasedStateMachine], examples: int) -> type:
    found = machine.TestCase
    found.settings = settings(max_examples=examples, stateful_step_count=12, deadline=None)
    return found


TestChanges = case(Changes, 25)
TestCrashes = case(Crashes, 15)
