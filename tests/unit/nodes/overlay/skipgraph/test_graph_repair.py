"""Nodes of an idle graph die or come: one neighbour notices, all levels are repaired in seconds, others stay idle."""

from random import Random

import pytest

from nodes.overlay.skipgraph.node import IDLE_PERIOD_S
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact, vector_of
from support.overlays.overlay_network import (
    OverlayNetwork,
    actual_links,
    expected_links,
    graph_node,
    report_death,
)


def idle_graph(count: int, seed: int) -> OverlayNetwork:
    """One key a node, and nothing has changed for long; shells report dead nodes to the nodes that send to them."""
    network = OverlayNetwork(seed, fastest=0.05, slowest=0.05)
    random = Random(seed)
    for number in range(count):
        node = graph_node(network, number, range(3), idle_period_s=IDLE_PERIOD_S)
        network.act(number, node.insert(random.randbytes(4), network.now))
        network.run(0.1)
    network.run(400)
    assert is_exact(network)
    network.in_vain = lambda sender, receiver, message: report_death(network, sender, receiver)
    return network


def is_exact(network: OverlayNetwork) -> bool:
    nodes = list(network.nodes.values())
    return actual_links(nodes) == expected_links(nodes)


def neighbours(network: OverlayNetwork, number: int) -> dict[str, int]:
    """A left neighbour, a right one, and a node that is a neighbour only in an upper level."""
    node = network.nodes[number]
    peer = node.peer(node.own_keys()[0])
    beside = {"left": peer.left.node, "right": peer.right.node}
    above = [contact.node for contact in peer.neighbours()]
    return beside | {"above": next(node for node in above if node not in beside.values())}


@pytest.mark.parametrize("noticed_by", ["left", "right", "above"])
@pytest.mark.parametrize("seed", range(3))
def test_one_neighbour_notices_a_death_and_all_levels_are_mended_in_seconds(
    noticed_by: str, seed: int
) -> None:
    network = idle_graph(40, seed)
    dead = Random(seed).randrange(3, 40)
    witness = neighbours(network, dead)[noticed_by]
    network.crash(dead)
    report_death(network, witness, dead)
    network.run(8)
    assert is_exact(network)


@pytest.mark.parametrize("noticed_by", ["left", "right", "above"])
def test_all_levels_are_repaired_also_without_reports_to_senders(noticed_by: str) -> None:
    network = idle_graph(40, 5)
    network.in_vain = lambda sender, receiver, message: None
    witness = neighbours(network, 20)[noticed_by]
    network.crash(20)
    report_death(network, witness, 20)
    network.run(16)
    assert is_exact(network)


def test_an_unreported_death_is_found_by_the_next_check() -> None:
    network = idle_graph(20, 6)
    network.crash(9)
    network.run(IDLE_PERIOD_S + 20)
    assert is_exact(network)


def test_nodes_that_are_not_concerned_stay_idle() -> None:
    network = idle_graph(40, 7)
    network.passed.clear()
    node = graph_node(network, 40, [0], idle_period_s=IDLE_PERIOD_S)
    network.act(40, node.insert(b"\x80", network.now))
    network.run(10)
    checkers = {sender for sender, _, message in network.passed if isinstance(message, m.Check)}
    assert 40 in checkers
    assert len(checkers) < 20


def test_a_check_announces_the_time_of_the_next_one() -> None:
    network = OverlayNetwork(seed=1)
    for number in range(3):
        node = graph_node(network, number, [0], idle_period_s=16)
        network.act(number, node.insert(bytes([number]), network.now))
    network.run(120)
    checks = [message for _, _, message in network.passed if isinstance(message, m.Check)]
    assert checks[0].pause == 1
    assert checks[-1].pause == 16
    assert is_exact(network)


def test_a_node_that_is_asked_whether_it_still_checks_does_so_at_once() -> None:
    network = idle_graph(10, 8)
    node = network.nodes[4]
    (key,) = node.own_keys()
    right = node.peer(key).right
    question = m.Recheck(key, right.key)
    sent = [action.message for action in node.on_message(right.node, question, network.now)]
    assert [message.at for message in sent if isinstance(message, m.Check)] == [right.key]
    strange = m.Recheck(key, b"somebody else")
    assert node.on_message(right.node, strange, network.now) == []


def test_a_way_that_ends_at_a_dead_node_goes_round_the_ring() -> None:
    """Only the right neighbour knows of the death, and it has no other link to the left."""
    network = OverlayNetwork(seed=2)
    bits = {0: 0, 1: 0, 2: 1 << 63, 3: 3 << 62}
    for number, vector in bits.items():
        node = graph_node(network, number, [0], vector, idle_period_s=IDLE_PERIOD_S)
        network.act(number, node.insert(bytes([10 * number]), network.now))
        network.run(3)
    network.run(300)
    asker = network.nodes[2]
    assert {c.node for c in asker.peer(bytes([20])).neighbours()} == {1, 3}
    network.crash(1)
    report_death(network, 2, 1)
    network.reported.clear()
    ticket, actions = asker.search(bytes([5]), network.now)
    network.act(2, actions)
    network.run(0.5)
    found = [action.contact for _, action in network.reported if hasattr(action, "contact")]
    assert found == [Contact(bytes([0]), 0, 0)]
    assert ticket


def test_a_node_that_is_back_at_once_with_none_of_its_keys_is_passed_over() -> None:
    """Its old keys are the right neighbours of one peer, in its levels, and left ones of another: none leads back."""
    network = OverlayNetwork(1, fastest=0.05, slowest=0.05)
    alike = vector_of("10")
    keys = {0: [b"a"], 1: [b"b", b"f"], 2: [b"c", b"d", b"e"]}
    for number, own in keys.items():
        node = graph_node(network, number, [0], alike if number else vector_of("0"), watched=True)
        for key in own:
            network.act(number, node.insert(key, network.now))
            network.run(3)
    network.run(20)
    network.crash(2)
    node = graph_node(
        network, 2, [0], alike, watched=True
    )  # no node noticed, and it lives: it answers
    network.act(2, node.insert(b"g", network.now))
    network.run(30)
    assert is_exact(network)


def test_a_node_left_alone_by_a_restarted_neighbour_lets_it_in_again() -> None:
    """That node, which lives, was its left neighbour, too: it must not wait for a message from there to be sure."""
    network = OverlayNetwork(1, fastest=0.05, slowest=0.05)
    for number, key in enumerate((b"a", b"b")):
        node = graph_node(network, number, [1 - number], watched=True)
        network.act(number, node.insert(key, network.now))
        network.run(10)
    assert is_exact(network)
    network.crash(1)
    node = graph_node(network, 1, [0], watched=True)
    network.run(3)
    network.act(1, node.insert(b"c", network.now))
    network.run(10)
    assert network.nodes[1].peer(b"c").settled
    assert is_exact(network)


@pytest.mark.parametrize("seed", range(4))
def test_a_node_does_not_ask_a_restarted_neighbour_for_its_place_without_end(
    seed: int,
) -> None:
    network = OverlayNetwork(seed)
    all_nodes = range(1, 9)
    for number in all_nodes:
        graph_node(network, number, all_nodes)
    for number, key in ((1, b"\x05"), (3, b"\x10")):
        network.act(number, network.nodes[number].insert(key, network.now))
        network.run(20)
    network.crash(3)
    graph_node(network, 3, all_nodes)  # without its key, and no node has noticed
    before = len(network.passed)
    network.act(1, network.nodes[1].insert(b"\x1c", network.now))
    network.run(4)
    assert len(network.passed) - before < 300  # each of seven is asked, and may ask seven
    network.run(60)
    assert is_exact(network)
