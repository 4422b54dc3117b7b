"""How a graph begins, and how nodes find it: all at once, with dead seeds, and with seeds that come back.

The seeds are nodes 0 to 2; every node joins through the seeds other than itself.
"""

import pytest

from nodes.overlay.skipgraph.node import IDLE_PERIOD_S
from support.overlays.overlay_network import (
    OverlayNetwork,
    actual_links,
    expected_links,
    graph_node,
    report_death,
)

SEEDS = range(3)


def network_of(numbers: list[int], seed: int) -> OverlayNetwork:
    """Start all nodes at the same moment; shells report dead nodes to the nodes that send to them."""
    network = OverlayNetwork(seed, fastest=0.05, slowest=0.05)
    network.in_vain = lambda sender, receiver, _: report_death(network, sender, receiver)
    for number in network.random.sample(numbers, len(numbers)):
        begin(network, number)
    return network


def begin(network: OverlayNetwork, number: int) -> None:
    node = graph_node(network, number, SEEDS, idle_period_s=IDLE_PERIOD_S)
    network.act(number, node.insert(bytes([number * 37 % 256]), network.now))


def is_exact(network: OverlayNetwork) -> bool:
    nodes = list(network.nodes.values())
    settled = all(peer.settled for node in nodes if (peer := node.peer(node.own_keys()[0])))
    return settled and bool(actual_links(nodes) == expected_links(nodes))


def exact_after(network: OverlayNetwork, at_most_s: int) -> bool:
    """Whether the graph becomes exact in this time."""
    for _ in range(at_most_s):
        network.run(1)
        if is_exact(network):
            return True
    return False


def alone(network: OverlayNetwork) -> set[int]:
    """Nodes that are alone in their ring."""
    peers = [node.peer(node.own_keys()[0]) for node in network.nodes.values()]
    return {peer.me.node for peer in peers if peer.in_ring and peer.right == peer.me}


@pytest.mark.parametrize("seed", range(3))
def test_only_the_first_seed_founds_the_graph_when_fifty_nodes_start_at_once(seed: int) -> None:
    network = network_of(list(range(50)), seed)
    for _ in range(6):
        network.run(0.5)
        assert alone(network) <= {0}
    assert exact_after(network, 20)


@pytest.mark.parametrize("dead", [{0}, {1}, {0, 2}])
def test_the_first_running_seed_founds_the_graph(dead: set[int]) -> None:
    numbers = [number for number in range(20) if number not in dead]
    network = network_of(numbers, 1)
    for _ in range(8):
        network.run(0.5)
        assert alone(network) <= {min(numbers)}
    assert exact_after(network, 20)


@pytest.mark.parametrize("number", [0, 2, 9])
@pytest.mark.parametrize("noticed", [True, False])
def test_a_node_that_crashes_and_restarts_gets_its_place_again(number: int, noticed: bool) -> None:
    network = network_of(list(range(20)), 2)
    network.run(200)
    network.crash(number)
    if noticed:
        report_death(network, (number + 1) % 20, number)
        network.run(3)
    begin(network, number)
    network.run(0.5)
    assert number not in alone(network)
    assert exact_after(network, 10)


def test_without_any_seed_the_graph_stays_exact_and_new_nodes_wait_for_one() -> None:
    network = network_of(list(range(30)), 3)
    network.run(200)
    for number in SEEDS:
        network.crash(number)
        report_death(network, 10, number)
    assert exact_after(network, 150)
    begin(network, 40)
    network.run(30)
    assert alone(network) == {40}
    begin(network, 1)
    assert exact_after(network, 300)
    begin(network, 0)
    assert exact_after(network, 15)


def test_all_find_each_other_when_the_first_seed_comes_late() -> None:
    network = network_of(list(range(3, 15)), 4)
    network.run(60)
    assert alone(network) == set(network.nodes)
    begin(network, 2)
    assert exact_after(network, 300)
