"""How soon brokers form one graph again after a partition, and what a broker may claim that reaches no other."""

from collections.abc import Callable

import pytest

from mesh_network import MeshNetwork
from nodes.overlay.methods import TOPIC_METHODS
from overlay_network import actual_links, expected_links

BROKERS = [f"b{number}" for number in range(1, 9)]
SEEDS = BROKERS[:3]
SOON_S = 30  # as the documentation says
RETAIN_S = 60.0

methods = pytest.mark.parametrize("method", sorted(TOPIC_METHODS))


def is_one_graph(network: MeshNetwork) -> bool:
    nodes = [network.cores[name]._node.graph for name in network.alive()]
    settled = all(node.peer(key).settled for node in nodes for key in node.own_keys())
    return settled and actual_links(nodes) == expected_links(nodes)


def one_graph_soon(network: MeshNetwork) -> bool:
    for _ in range(SOON_S):
        network.run(1)
        if is_one_graph(network):
            return True
    return False


def standing(method: str, homes: list[str] = BROKERS) -> MeshNetwork:
    """Eight brokers with a subscriber at each of these, after so long that nothing changes any more."""
    network = MeshNetwork(method, 1, len(BROKERS), {"retain_s": RETAIN_S})
    for number, home in enumerate(homes):
        network.join(f"c{number}", 111 + number, ["slope"], [home])
    network.run(150)
    assert is_one_graph(network)
    return network


def isolate(network: MeshNetwork) -> None:
    network.isolate("b6")


def halve(network: MeshNetwork) -> None:
    network.split(*BROKERS[::2])


@methods
@pytest.mark.parametrize("part", [isolate, halve])
def test_graphs_that_grew_apart_are_one_soon_after_they_can_reach_each_other(
    method: str, part: Callable[[MeshNetwork], None]
) -> None:
    network = standing(method)
    part(network)
    network.run(18)
    assert not is_one_graph(network)
    network.isolated.clear()
    network.beyond.clear()
    assert one_graph_soon(network)


@pytest.mark.parametrize("part", [isolate, halve])
def test_also_after_a_long_time(part: Callable[[MeshNetwork], None]) -> None:
    network = standing("sg-tbps")
    part(network)
    network.run(RETAIN_S - 5)
    network.isolated.clear()
    network.beyond.clear()
    assert one_graph_soon(network)


def test_a_broker_that_has_lost_everybody_never_ceases_to_call() -> None:
    network = standing("sg-tbps")
    network.isolate("b6")
    network.run(5 * RETAIN_S)
    network.isolated.clear()
    assert one_graph_soon(network)


@methods
def test_seeds_that_crashed_all_at_once_are_no_island_when_they_are_back(method: str) -> None:
    network = standing(method)
    for seed in SEEDS:
        network.kill(seed)
    network.run(10)
    for seed in SEEDS:
        network.start(seed)
    assert one_graph_soon(network)


@methods
def test_while_all_seeds_are_down_who_begins_anew_finds_the_others(method: str) -> None:
    network = standing(method)
    for seed in SEEDS:
        network.kill(seed)
    network.run(20)
    network.kill("b5")
    network.run(2)
    network.start("b5")
    assert one_graph_soon(network)
    network.run(5)
    assert network.cores["b5"].ready


def test_also_through_brokers_that_have_no_guests_themselves() -> None:
    network = standing("sg-tbps", homes=["b4", "b8"])
    for seed in SEEDS:
        network.kill(seed)
    network.run(20)
    network.kill("b8")
    network.run(2)
    network.start("b8")
    assert one_graph_soon(network)


def cut_off_home(method: str) -> MeshNetwork:
    """A sensor and a subscriber at an isolated broker; another subscriber elsewhere."""
    network = MeshNetwork(method, 1, 5, {"retain_s": RETAIN_S})
    sensor = network.join("s1", 101, [], ["b4"])
    network.act("s1", sensor.advertise(["slope"], 0.0))
    network.join("near", 111, ["slope"], ["b4"])
    network.join("far", 112, ["slope"], ["b5"])
    network.run(30)
    network.isolate("b4")
    network.run(10)
    return network


@methods
def test_guests_of_a_broker_that_is_cut_off_are_served_at_once_but_taken_waits(method: str) -> None:
    network = cut_off_home(method)
    identity = network.publish("s1", 1, "slope")
    network.run(1)
    assert network.receivers(identity) == {"near"}
    network.run(20)
    assert identity not in network.taken
    network.isolated.clear()
    network.run(SOON_S)
    assert network.receivers(identity) == {"near", "far"}
    assert identity in network.taken
    assert set(network.delivered.values()) == {1}


@methods
def test_the_only_survivor_says_taken_when_nobody_would_remember_any_more(method: str) -> None:
    network = cut_off_home(method)
    first = network.publish("s1", 1, "slope")
    network.run(RETAIN_S + 1)
    assert first in network.taken
    second = network.publish("s1", 2, "slope")
    network.run(1)
    assert second in network.taken, "from now on it is the whole overlay"
    assert network.receivers(second) == {"near"}
    network.isolated.clear()
    network.run(SOON_S)
    assert network.receivers(second) == {"near", "far"}, "it is remembered still"
    assert not [note for _, note in network.notes if note.event == "given-up"]
