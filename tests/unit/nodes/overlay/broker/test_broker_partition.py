"""How soon brokers form one graph again after a partition, and what an isolated broker may acknowledge."""

from collections.abc import Callable

import pytest

from nodes.overlay.methods import TOPIC_METHODS
from support.overlays.broker_network import BrokerNetwork
from support.overlays.overlay_network import actual_links, expected_links

BROKERS = [f"b{number}" for number in range(1, 9)]
SEEDS = BROKERS[:3]
SOON_S = 30  # as the documentation says
RETAIN_S = 60.0

methods = pytest.mark.parametrize("method", sorted(TOPIC_METHODS))


def is_one_graph(network: BrokerNetwork) -> bool:
    nodes = [network.cores[name]._node.graph for name in network.alive()]
    settled = all(node.peer(key).settled for node in nodes for key in node.own_keys())
    return settled and actual_links(nodes) == expected_links(nodes)


def one_graph_soon(network: BrokerNetwork) -> bool:
    for _ in range(SOON_S):
        network.run(1)
        if is_one_graph(network):
            return True
    return False


def settled_network(method: str, brokers: list[str] = BROKERS) -> BrokerNetwork:
    """Eight brokers with a subscriber at each of `brokers`, after so long that nothing changes any more."""
    network = BrokerNetwork(method, 1, len(BROKERS), {"retain_s": RETAIN_S})
    for number, broker in enumerate(brokers):
        network.join(f"c{number}", 111 + number, ["slope"], [broker])
    network.run(150)
    assert is_one_graph(network)
    return network


def isolate(network: BrokerNetwork) -> None:
    network.isolate("b6")


def halve(network: BrokerNetwork) -> None:
    network.split(*BROKERS[::2])


@methods
@pytest.mark.parametrize("part", [isolate, halve])
def test_separated_graphs_merge_soon_after_they_can_reach_each_other(
    method: str, part: Callable[[BrokerNetwork], None]
) -> None:
    network = settled_network(method)
    part(network)
    network.run(18)
    assert not is_one_graph(network)
    network.isolated.clear()
    network.split_off.clear()
    assert one_graph_soon(network)


@pytest.mark.parametrize("part", [isolate, halve])
def test_separated_graphs_merge_also_after_a_long_partition(
    part: Callable[[BrokerNetwork], None],
) -> None:
    network = settled_network("sg-tbps")
    part(network)
    network.run(RETAIN_S - 5)
    network.isolated.clear()
    network.split_off.clear()
    assert one_graph_soon(network)


def test_a_broker_that_has_lost_all_others_never_stops_calling_them() -> None:
    network = settled_network("sg-tbps")
    network.isolate("b6")
    network.run(5 * RETAIN_S)
    network.isolated.clear()
    assert one_graph_soon(network)


@methods
def test_seeds_that_crashed_together_rejoin_the_graph_after_their_restart(method: str) -> None:
    network = settled_network(method)
    for seed in SEEDS:
        network.kill(seed)
    network.run(10)
    for seed in SEEDS:
        network.start(seed)
    assert one_graph_soon(network)


@methods
def test_a_restarted_broker_finds_the_others_while_all_seeds_are_down(method: str) -> None:
    network = settled_network(method)
    for seed in SEEDS:
        network.kill(seed)
    network.run(20)
    network.kill("b5")
    network.run(2)
    network.start("b5")
    assert one_graph_soon(network)
    network.run(5)
    assert network.cores["b5"].ready


def test_a_restarted_broker_finds_the_others_also_through_brokers_without_clients() -> None:
    network = settled_network("sg-tbps", brokers=["b4", "b8"])
    for seed in SEEDS:
        network.kill(seed)
    network.run(20)
    network.kill("b8")
    network.run(2)
    network.start("b8")
    assert one_graph_soon(network)


def with_isolated_broker(method: str) -> BrokerNetwork:
    """A sensor and a subscriber at an isolated broker; another subscriber elsewhere."""
    network = BrokerNetwork(method, 1, 5, {"retain_s": RETAIN_S})
    sensor = network.join("s1", 101, [], ["b4"])
    network.act("s1", sensor.advertise(["slope"], 0.0))
    network.join("near", 111, ["slope"], ["b4"])
    network.join("far", 112, ["slope"], ["b5"])
    network.run(30)
    network.isolate("b4")
    network.run(10)
    return network


@methods
def test_clients_of_an_isolated_broker_are_served_at_once_but_the_acknowledgement_waits(
    method: str,
) -> None:
    network = with_isolated_broker(method)
    identity = network.publish("s1", 1, "slope")
    network.run(1)
    assert network.receivers(identity) == {"near"}
    network.run(20)
    assert identity not in network.acknowledged
    network.isolated.clear()
    network.run(SOON_S)
    assert network.receivers(identity) == {"near", "far"}
    assert identity in network.acknowledged
    assert set(network.delivered.values()) == {1}


@methods
def test_an_isolated_broker_acknowledges_once_the_others_would_retain_nothing_any_more(
    method: str,
) -> None:
    network = with_isolated_broker(method)
    first = network.publish("s1", 1, "slope")
    network.run(RETAIN_S + 1)
    assert first in network.acknowledged
    second = network.publish("s1", 2, "slope")
    network.run(1)
    assert second in network.acknowledged, "from now on it is the whole overlay"
    assert network.receivers(second) == {"near"}
    network.isolated.clear()
    network.run(SOON_S)
    assert network.receivers(second) == {"near", "far"}, "it is still retained"
    assert not [note for _, note in network.notes if note.event == "given-up"]
