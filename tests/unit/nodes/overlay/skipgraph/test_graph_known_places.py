"""A Skip Graph whose nodes begin at known places is one that messages would have built, and no message changes it."""

from random import Random
from typing import Any

import pytest

from nodes.overlay.skipgraph.actions import Inserted, Moved, Removed
from nodes.protocol.skipgraph_messages import (
    Check,
    Contact,
    Declined,
    Find,
    Gap,
    Gone,
    Locate,
    Noted,
)
from support.overlays.known_graph import known_places
from support.overlays.overlay_network import (
    OverlayNetwork,
    actual_links,
    expected_links,
    graph_node,
)

LONG_S = 30.0


def settled_graph(count: int, seed: int, introducers: int = 3) -> OverlayNetwork:
    random = Random(seed)
    network = OverlayNetwork(seed)
    contacts = [
        Contact(random.randbytes(4), number, random.getrandbits(64)) for number in range(count)
    ]
    places = known_places(contacts)
    for contact in contacts:
        others = random.sample(range(count), min(introducers, count))
        node = graph_node(network, contact.node, others, contact.vector)
        network.act(contact.node, node.begin_at([places[contact.key]], network.now))
    return network


def state(network: OverlayNetwork) -> list[Any]:
    """Everything that a node knows of its neighbours."""
    peers = [node.peer(key) for node in network.nodes.values() for key in node.own_keys()]
    return [
        (
            p.me,
            p.left,
            p.left_number,
            p.right,
            p.right_number,
            p.settled,
            p.successors,
            str(p.levels),
        )
        for p in peers
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
def test_it_is_exact_and_no_message_changes_it(count: int) -> None:
    network = settled_graph(count, seed=count)
    assert not network.passed
    assert actual_links(network.nodes.values()) == expected_links(network.nodes.values())
    before = state(network)
    network.run(LONG_S)
    assert state(network) == before
    assert not network.reported
    sent = {type(message) for _, _, message in network.passed}
    assert not sent & {Declined, Gone}
    if count > 2:
        assert {Check, Find} <= sent


def test_nodes_join_and_leave_as_in_any_graph() -> None:
    network = settled_graph(40, seed=7)
    random = Random("others")
    for number in range(40, 60):
        node = graph_node(network, number, random.sample(range(40), 8))
        network.act(number, node.insert(random.randbytes(4), network.now))
        network.run(0.01)
    leaving = random.sample(range(40), 20)
    for number in leaving:
        node = network.nodes[number]
        network.act(number, node.remove(node.own_keys()[0], network.now))
        network.run(0.01)
    network.run(60.0)
    events = [(number, type(event)) for number, event in network.reported]
    assert {number for number, kind in events if kind is Inserted} == set(range(40, 60))
    assert {number for number, kind in events if kind is Removed} == set(leaving)
    assert any(kind is Moved for _, kind in events)
    assert actual_links(network.nodes.values()) == expected_links(network.nodes.values())
    assert len(actual_links(network.nodes.values())) == 40


def test_a_key_that_has_left_a_known_place_comes_back() -> None:
    """The numbers of its new links are above those of its old ones."""
    network = settled_graph(10, seed=3)
    node = network.nodes[4]
    (key,) = node.own_keys()
    network.act(4, node.remove(key, network.now))
    network.act(4, node.insert(key, network.now))
    network.run(60.0)
    assert (4, Removed(key)) in network.reported
    assert (4, Inserted(key)) in network.reported
    assert actual_links(network.nodes.values()) == expected_links(network.nodes.values())


def test_neighbours_that_leave_at_the_same_time_do_not_wait_for_each_other() -> None:
    """A question to a node that has just left is asked again as soon as the new left neighbour introduces itself."""
    network = settled_graph(30, seed=5, introducers=0)
    network.fastest = network.slowest = 0.02
    ring = sorted(network.nodes.values(), key=lambda node: node.own_keys()[0])
    leaving = Random(5).sample(ring[5:25], 20)
    for node in leaving:
        network.act(node.number, node.remove(node.own_keys()[0], network.now))
        network.run(0.01)
    network.run(0.5)
    gone = {number for number, event in network.reported if isinstance(event, Removed)}
    assert gone == {node.number for node in ring[5:25]}


def test_a_question_that_comes_over_an_old_link_finds_its_way() -> None:
    """A node that has no key any more passes it to an introducer of its own, and notifies the sender."""
    network = settled_graph(30, seed=6)
    ring = sorted(network.nodes.values(), key=lambda node: node.own_keys()[0])
    left, gone, asker = ring[3], ring[4], ring[20]
    (key,) = gone.own_keys()
    network.act(gone.number, gone.remove(key, network.now))
    network.run(0.5)
    network.act(gone.number, gone.on_message(left.number, Locate(key, asker.number, 77, 1), 1.0))
    network.run(0.5)
    answers = [message for _, to, message in network.passed if to == asker.number]
    assert [gap.ticket for gap in answers if isinstance(gap, Gap)] == [77]
    assert (gone.number, left.number, Noted(77, empty=True)) in network.passed
