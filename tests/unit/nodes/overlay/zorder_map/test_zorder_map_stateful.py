"""The Z-order map under any sequence of joins, leaves and moves: each point has one server, no event is missed."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from nodes.protocol.interests import Interest
from support.overlays.map_network import ALL_CELLS, Cell, MapNetwork, box_of

NUMBERS = range(1, 8)
TOPICS = ["slope", "valley"]
numbers = st.sampled_from(NUMBERS)
cells = st.sampled_from(ALL_CELLS)
interests = st.builds(
    lambda topic, low, high, boxed, level: (
        Interest(topic, box_of(low, high) if boxed else None, level).text
    ),
    st.sampled_from(TOPICS),
    cells,
    cells,
    st.booleans(),
    st.sampled_from([1, 1, 4]),
)


class AreaOperations(RuleBasedStateMachine):
    """Broker 0 always runs; the others come, go and move, subscribe and publish."""

    @initialize(
        seed=st.integers(0, 2**32),
        slowest=st.sampled_from([0.02, 0.3, 0.8]),
        start=st.sampled_from(["even", "hash"]),
        stretches=st.sampled_from([1, 3, 8]),
    )
    def begin(self, seed: int, slowest: float, start: str, stretches: int) -> None:
        self.network = MapNetwork(seed, {"start": start, "stretches": stretches}, slowest=slowest)
        self.network.start(0, [])
        self.network.run(2)
        for number in NUMBERS[:4]:
            self.network.join(number)
        self.network.run(10)
        self.expected: list[tuple[int, set[int]]] = []  # message id, brokers that must get it

    @rule(number=numbers)
    def join(self, number: int) -> None:
        if number not in self.network.nodes:
            self.network.join(number)

    @rule(number=numbers)
    def leave(self, number: int) -> None:
        if number in self.network.present():
            for _, wanted in self.expected:
                wanted.discard(number)
            self.network.leave(number)

    @rule(number=numbers, cell=cells)
    def move(self, number: int, cell: Cell) -> None:
        if number in self.network.present():
            self.network.move(number, cell)

    @rule(number=numbers, text=interests)
    def subscribe(self, number: int, text: str) -> None:
        if number in self.network.present():
            self.network.subscribe(number, text)

    @rule(number=numbers, data=st.data())
    def unsubscribe(self, number: int, data: st.DataObject) -> None:
        own = sorted(text for broker, text in self.network.subscribed if broker == number)
        if own:
            for _, wanted in self.expected:
                wanted.discard(number)
            self.network.unsubscribe(number, data.draw(st.sampled_from(own)))

    @rule(
        number=st.sampled_from([0, *NUMBERS]),
        topic=st.sampled_from(TOPICS),
        cell=st.none() | cells,
        level=st.integers(1, 5),
    )
    def publish(self, number: int, topic: str, cell: Cell | None, level: int) -> None:
        if number in self.network.present():
            message = self.network.publish_at(number, topic, cell, level)
            self.expected.append((message.message_id, self.network.wanting(message)))

    @rule(seconds=st.floats(0.01, 3))
    def wait(self, seconds: float) -> None:
        self.network.run(seconds)

    @rule(seed=st.integers(0, 2**32))
    def bustle(self, seed: int) -> None:
        """Let many operations overlap, which single rules seldom do."""
        random = Random(seed)
        for _ in range(20):
            number, cell = random.choice(NUMBERS), random.choice(ALL_CELLS)
            match random.choice("jlmmmsppppww"):
                case "j":
                    self.join(number)
                case "l":
                    self.leave(number)
                case "m":
                    self.move(number, cell)
                case "s":
                    box = box_of(cell, random.choice(ALL_CELLS))
                    self.subscribe(number, Interest(random.choice(TOPICS), box).text)
                case "p":
                    self.publish(number, random.choice(TOPICS), cell, random.randint(1, 5))
                case _:
                    self.network.run(random.uniform(0, 1.5))

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        network = self.network
        network.slowest = 0.05
        network.run(60)
        assert network.most_servers <= 1, "at every moment, at most one serves a point"
        assert {len(servers) for servers in network.servers().values()} == {1}
        assert network.unknown() == []
        for identity, wanted in self.expected:
            assert wanted <= network.receivers(identity), f"{identity:016x}"
        for cell in (None, *ALL_CELLS[::9]):
            message = network.publish_at(0, TOPICS[0], cell, 4)
            network.run(5)
            assert network.receivers(message.message_id) == network.wanting(message)
        assert set(network.delivered.values()) <= {1}


TestAreaOperations = AreaOperations.TestCase
TestAreaOperations.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
