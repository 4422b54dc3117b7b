"""The Z-order map with brokers that crash, are isolated and move by load: publications with custody arrive, once."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from nodes.protocol.interests import Interest, parse
from nodes.protocol.wire import Kind, Message
from support.overlays.broker_network import BrokerNetwork
from support.overlays.broker_operations import BROKERS, SENSORS, BrokerOperations
from support.overlays.map_network import ALL_CELLS, box_of, place_of

WANTED = {
    "c1": [Interest("slope", box_of((0, 0), (4, 4))), Interest("valley")],
    "c2": [Interest("slope", box_of((2, 2), (7, 7))), Interest("slope", None, 5)],
    "c3": [Interest("valley", box_of((0, 3), (7, 5)))],
    "c4": [Interest("slope", box_of((5, 0), (7, 7))), Interest("slope", box_of((0, 0), (7, 3)), 4)],
}
RESTLESS = {"level_s": 2, "k": 3, "e": 0.2}  # brokers move as often as possible


class AreaBrokerOperations(BrokerOperations):
    """The same sequences, with places and areas, and with brokers that level their load all the time."""

    @initialize(
        seed=st.integers(0, 2**32),
        slowest=st.sampled_from([0.02, 0.1, 0.3]),
        level=st.booleans(),
        begin=st.sampled_from([1.0, 20.0]),
    )
    def begin(self, seed: int, slowest: float, level: bool, begin: float) -> None:
        self.random = Random(seed)
        parameters = RESTLESS if level else {"level_s": 0}
        self.network = BrokerNetwork("zorder-map", seed, len(BROKERS), parameters, slowest)
        self.published: dict[int, set[str]] = {}
        self.confirmed: set[tuple[str, str]] = set()
        for number, (name, topics) in enumerate(SENSORS.items(), 101):
            sensor = self.network.join(name, number, [], self.brokers_in_random_order())
            self.network.act(name, sensor.advertise(topics, 0.0))
        for number, (name, interests) in enumerate(WANTED.items(), 111):
            texts = [interest.text for interest in interests]
            self.network.join(name, number, texts, self.brokers_in_random_order())
        self.run(begin)

    def publish_on(self, sensor: str, topic: str, level: int) -> None:
        cell = self.random.choice([None, *ALL_CELLS])
        place = () if cell is None else place_of(cell)
        message = Message(Kind.PUBLISH, level, topic=topic, place=place)
        wanted = {name for name, text in self.confirmed if parse(text).wants(message)}
        counter = len(self.published) + 1
        self.published[self.network.publish(sensor, counter, topic, level, place)] = wanted


TestAreaBrokerOperations = AreaBrokerOperations.TestCase
TestAreaBrokerOperations.settings = settings(
    max_examples=15, stateful_step_count=12, deadline=None, derandomize=True, database=None
)
