"""Real publications take the hops and the messages that converged overlays compute for the same keys and vectors."""

import pytest

from support.overlays.settled_topic import computed, follow, settled_topic
from testbed.converged.fan import fan_helpers, fan_parts, fan_paths
from testbed.converged.multicast import Strategy
from testbed.converged.psg import Publications, Support, start_nodes

SIZES = [(5, 16), (14, 7), (1, 12)]
sizes = pytest.mark.parametrize(("publishers", "subscribers"), SIZES)
PRIORITIES = range(1, 6)


@sizes
@pytest.mark.parametrize("strategy", [Strategy.SPLIT, Strategy.FLOOD])
def test_sg_tbps(publishers: int, subscribers: int, strategy: Strategy) -> None:
    network = settled_topic("sg-tbps", publishers, subscribers, multicast=strategy.value)
    known = computed(network, publishers)
    for publisher in range(publishers):
        hops, sent = follow(network, publisher)
        expected = known.to_subscribers(strategy)[0, publisher]
        assert [hops[publishers + n] for n in range(subscribers)] == expected.tolist()
        assert sent == known.messages[strategy][0, publisher]


@sizes
@pytest.mark.parametrize("support", Support)
@pytest.mark.parametrize("strategy", [Strategy.SPLIT, Strategy.FLOOD])
def test_psg_tbps(publishers: int, subscribers: int, strategy: Strategy, support: Support) -> None:
    network = settled_topic(
        "psg-tbps", publishers, subscribers, multicast=strategy.value, support=support.value
    )
    known = computed(network, publishers)
    for priority in PRIORITIES:
        starts = start_nodes(known.vectors, publishers, priority, support, publishers)
        publications = Publications(starts, known.size)
        paths = publications.paths(known.to_subscribers(strategy))[0]
        messages = publications.messages(known.messages[strategy])[0]
        for publisher in range(publishers):
            hops, sent = follow(network, publisher, priority)
            assert [hops[publishers + n] for n in range(subscribers)] == paths[publisher].tolist()
            if strategy is Strategy.SPLIT:
                assert sent == messages[publisher]
            else:  # a peer forwards a flood once; the thesis' start nodes do not know
                assert sent <= messages[publisher]


@sizes
def test_fan_tbps(publishers: int, subscribers: int) -> None:
    network = settled_topic("fan-tbps", publishers, subscribers)
    known = computed(network, publishers)
    for priority in PRIORITIES:
        part = fan_parts(known.size, subscribers, priority)
        helpers = fan_helpers(known.neighbours, publishers, part)
        rightward = known.hops[Strategy.SPLIT]
        (expected,) = fan_paths(known.neighbours, rightward, publishers, helpers, part)
        for publisher in range(publishers):
            hops, sent = follow(network, publisher, priority)
            assert [hops[publishers + n] for n in range(subscribers)] == expected.tolist()
            assert sent == subscribers
            assert sent <= known.messages[Strategy.SPLIT][0, publisher]
