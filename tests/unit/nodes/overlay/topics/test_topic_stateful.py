"""Every method under any sequence of events: confirmed subscribers miss nothing, no node is a relay, flows settle."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.topics.keys import Role
from support.overlays.topic_network import TopicNetwork, parameter_sets

NODES = range(1, 8)
TOPICS = ["slope", "valley"]
nodes = st.sampled_from(NODES)
topics = st.sampled_from(TOPICS)


class TopicOperations(RuleBasedStateMachine):
    """Nodes join and leave two topics; node 0 always runs, in a topic of its own, and introduces the others."""

    losses = (0.0,)
    slowest = (0.02, 0.3, 0.8)

    @initialize(
        seed=st.integers(0, 2**32),
        method=st.sampled_from(sorted(TOPIC_METHODS)),
        data=st.data(),
    )
    def begin(self, seed: int, method: str, data: st.DataObject) -> None:
        parameters = data.draw(st.sampled_from(parameter_sets(method)))
        slowest = data.draw(st.sampled_from(self.slowest))
        loss = data.draw(st.sampled_from(self.losses))
        self.network = TopicNetwork(method, seed, parameters, slowest=slowest)
        self.network.start(0, [])
        self.network.subscribe(0, "anchor")
        for number in NODES:
            self.network.start(number, [0])
        self.network.run(60)  # for methods whose nodes have a key before they subscribe
        self.network.loss = loss
        self.advertised: set[tuple[int, str]] = set()
        self.expected: dict[int, tuple[str, set[int]]] = {}

    @rule(number=nodes, topic=topics)
    def subscribe(self, number: int, topic: str) -> None:
        self.network.subscribe(number, topic)

    @rule(number=nodes, topic=topics)
    def unsubscribe(self, number: int, topic: str) -> None:
        for name, wanted in self.expected.values():
            if name == topic:
                wanted.discard(number)
        self.network.unsubscribe(number, topic)

    @rule(number=nodes, topic=topics)
    def advertise(self, number: int, topic: str) -> None:
        self.advertised.add((number, topic))
        self.network.advertise(number, topic)

    @rule(number=nodes, topic=topics)
    def withdraw(self, number: int, topic: str) -> None:
        if (number, topic) in self.advertised:
            self.network.run(15)  # withheld publications are sent, or thrown away
            self.advertised.discard((number, topic))
            self.network.withdraw(number, topic)

    @precondition(lambda self: self.advertised)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        number, topic = data.draw(st.sampled_from(sorted(self.advertised)))
        self.publish_from(number, topic, data.draw(st.integers(1, 5)))

    def publish_from(self, number: int, topic: str, priority: int) -> None:
        wanted = {node for node, name in self.network.subscribed if name == topic}
        self.expected[self.network.publish(number, topic, priority)] = topic, wanted

    @rule(seconds=st.floats(0.01, 3))
    def wait(self, seconds: float) -> None:
        self.network.run(seconds)

    @rule(seed=st.integers(0, 2**32))
    def bustle(self, seed: int) -> None:
        """Let many operations overlap, which single rules seldom do."""
        random = Random(seed)
        for _ in range(15):
            number, topic = random.choice(NODES), random.choice(TOPICS)
            match random.choice("ssuappppww"):
                case "s":
                    self.subscribe(number, topic)
                case "u":
                    self.unsubscribe(number, topic)
                case "a":
                    self.advertise(number, topic)
                case "p" if self.advertised:
                    self.publish_from(*random.choice(sorted(self.advertised)), random.randint(1, 5))
                case _:
                    self.wait(random.uniform(0, 1.5))

    def settle(self) -> None:
        """Stop all losses, and give all repairs their time."""
        self.network.loss, self.network.slowest = 0.0, 0.05
        self.network.run(120)

    def check_flows(self) -> None:
        """Check that a publisher is in state GO exactly if its topic has a subscriber."""
        if not TOPIC_METHODS[self.network.method].stops:
            return
        for number, topic in sorted(self.advertised):
            state = self.network.nodes[number].membership.get(topic)
            if Role.PUBLISHER in state.keys:
                anybody = any(name == topic for _, name in self.network.subscribed)
                assert state.flow.going == anybody, (number, topic)

    def check_all_reached(self) -> None:
        """Check that a new publication reaches all subscribers, once."""
        for number, topic in sorted(self.advertised):
            identity = self.network.publish(number, topic)
            self.network.run(10)
            wanted = {node for node, name in self.network.subscribed if name == topic}
            assert self.network.receivers(identity) == wanted
        assert set(self.network.delivered.values()) <= {1}


class Changes(TopicOperations):
    """No message is lost and no node crashes."""

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        self.settle()
        for identity, (_, wanted) in self.expected.items():
            assert wanted <= self.network.receivers(identity)
        assert set(self.network.delivered.values()) <= {1}
        self.check_flows()
        self.check_all_reached()
        if TOPIC_METHODS[self.network.method].relay_free:
            assert self.network.relays == []


class Disasters(TopicOperations):
    """Messages are lost, nodes crash and may come back without memory."""

    losses = (0.0, 0.1, 0.3)

    @rule(number=nodes)
    def crash(self, number: int) -> None:
        self.network.crash(number)
        self.advertised = {entry for entry in self.advertised if entry[0] != number}
        self.network.start(number, [0])

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        self.settle()
        self.check_flows()
        self.check_all_reached()


def case(machine: type[TopicOperations], examples: int) -> type:
    found = machine.TestCase
    found.settings = settings(max_examples=examples, stateful_step_count=12, deadline=None)
    return found


TestChanges = case(Changes, 10)
TestDisasters = case(Disasters, 12)
