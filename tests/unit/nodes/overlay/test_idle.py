"""Brokers exchange few bytes while nothing changes."""

from collections import Counter
from random import Random

import pytest

from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.skipgraph.node import IDLE_PERIOD_S
from nodes.protocol.wire import Message, encode
from support.overlays.topic_network import TopicNetwork

BUDGET = 200  # bytes a second on a 3G link, both ways, of which heartbeats may take half
WEBSOCKET, FRAME, ACKNOWLEDGEMENT = 6, 66, 66  # bytes around a message
TOPICS = [f"topic-{number}" for number in range(5)]
CALM_S = 300.0
MEASURED_S = 240.0  # two idle periods


def link_bytes(message: Message) -> int:
    """The bytes of a message on the link of its sender, and on that of its receiver."""
    return len(encode(message)) + WEBSOCKET + FRAME + ACKNOWLEDGEMENT


def idle_rates(method: str, nodes: int, all_publish: bool = False) -> dict[int, float]:
    """Bytes a second of each node when nothing has changed for long; node n is in 1 + n % 5 topics."""
    network = TopicNetwork(method, 1, {"idle_period_s": IDLE_PERIOD_S})
    random = Random(1)
    for number in range(nodes):
        network.start(number, range(3))
        for topic in random.sample(TOPICS, 1 + number % len(TOPICS)):
            publishes = random.random() < 0.4 or all_publish
            (network.advertise if publishes else network.subscribe)(number, topic)
        network.run(0.1)
    network.run(CALM_S)
    network.passed.clear()
    network.run(MEASURED_S)
    spent: Counter[int] = Counter()
    for sender, receiver, message in network.passed:
        spent[sender] += link_bytes(message)
        spent[receiver] += link_bytes(message)
    return {number: spent[number] / MEASURED_S for number in network.nodes}


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_an_idle_broker_spends_little(method: str) -> None:
    rates = idle_rates(method, 20)
    assert max(rates.values()) < BUDGET
    assert sum(rates.values()) / len(rates) < BUDGET / 2
    assert min(rates.values()) > 0


def test_publishers_without_subscribers_spend_little() -> None:
    assert max(idle_rates("sg-tbps", 20, all_publish=True).values()) < BUDGET
