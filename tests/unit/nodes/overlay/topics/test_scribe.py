"""Scribe: the same trees as in converged overlays, pruned without subscribers, and repaired after crashes."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from nodes.overlay.topics.base import Asked
from nodes.overlay.topics.scribe.publishing import Publishers
from nodes.overlay.topics.scribe.routing import node_key, topic_hash
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact, vector_of
from support.overlays.known_graph import known_places
from support.overlays.topic_network import TopicNetwork
from testbed.converged.scribe import ScribeTrees, scribe_trees

TOPIC = "slope"
FORM_S = 25.0  # until all lists are complete
REFRESHED_S = 40.0  # until a crash is noticed, the graph repaired and the tree refreshed


def formed(vectors: list[int], seed: int = 1, **parameters: float) -> TopicNetwork:
    """A graph of nodes with these vectors, built by their messages; there is no subscription yet."""
    network = TopicNetwork("scribe", seed, parameters)
    for number, vector in enumerate(vectors):
        network.start(number, [0], vector)
        network.run(0.2)
    network.run(FORM_S)
    return network


def standing(vectors: list[int], seed: int = 1, **parameters: float) -> TopicNetwork:
    """The same graph, but the nodes start at their final places."""
    network = TopicNetwork("scribe", seed, parameters)
    contacts = [Contact(node_key(number), number, vector) for number, vector in enumerate(vectors)]
    places = known_places(contacts)
    for contact in contacts:
        node = network.start(contact.node, [0], contact.vector)
        assert node.graph.begin_at([places[contact.key]], network.now) == []
        network.act(contact.node, [])
    return network


def drawn(seed: int, nodes: int) -> list[int]:
    random = Random(seed)
    return [random.getrandbits(VECTOR_BITS) for _ in range(nodes)]


def converged(vectors: list[int], topic: str, subscribers: list[int]) -> ScribeTrees:
    return scribe_trees(
        np.array(vectors, dtype=np.uint64),
        np.array([topic_hash(topic)], dtype=np.uint64),
        np.array([subscribers]),
    )


def links(network: TopicNetwork, topic: str) -> set[tuple[int, int]]:
    """Child and parent, as both of them know it."""
    up, down = set(), set()
    for number, node in network.nodes.items():
        branch = node.tree.get(topic)
        if branch is not None:
            down |= {(child, number) for child in branch.children}
            if branch.parent is not None:
                up.add((number, branch.parent))
    assert up == down
    return up


def tree_links(trees: ScribeTrees) -> set[tuple[int, int]]:
    return set(zip(trees.child.tolist(), trees.parent.tolist(), strict=True))


def test_a_worked_example() -> None:
    # In the list of all, 0 and 1 have the wrong first bit: the nearest with the right one is 2, to the right; 6 has it
    # beside it, at 5. In the list of those that share it, 2, 3, 5, the next with the right second bit after 2 is 3, and
    # of 3 and 5 it is 5 that has the third: alone there, it is the root.
    bits = format(topic_hash(TOPIC), f"0{VECTOR_BITS}b")
    first, second, third = (str(1 - int(bit)) for bit in bits[:3])
    vectors = [
        first + "00",
        first + "01",
        bits[0] + second + "0",
        bits[:2] + third,
        first + "10",
        bits[:3],
        first + "11",
    ]
    network = standing([vector_of(each) for each in vectors])
    network.subscribe(0, TOPIC)
    network.subscribe(6, TOPIC)
    network.advertise(4, TOPIC)
    network.run(5)
    assert {(0, TOPIC), (6, TOPIC)} <= network.subscribed
    assert links(network, TOPIC) == {(0, 1), (1, 2), (2, 3), (3, 5), (6, 5)}
    identity = network.publish(4, TOPIC)
    network.run(2)
    sent = [(sender, receiver) for sender, receiver, _ in network.publications()]
    assert sorted(sent) == [(1, 0), (2, 1), (3, 2), (4, 5), (5, 3), (5, 6)]
    assert {number: network.hops[number, identity] for number in (0, 6)} == {0: 5, 6: 2}


@pytest.mark.parametrize(
    ("grow", "seed"), [(formed, 0), (formed, 1), *((standing, seed) for seed in range(2, 8))]
)
def test_trees_and_paths_are_those_of_converged_overlays(
    grow: Callable[[list[int], int], TopicNetwork], seed: int
) -> None:
    random = Random(seed)
    vectors = drawn(seed, random.randint(2, 30))
    network = grow(vectors, seed)
    for topic in ("slope", "valley", "bridge"):
        subscribers = random.sample(range(len(vectors)), random.randint(1, len(vectors)))
        publisher = random.randrange(len(vectors))
        network.advertise(publisher, topic)
        for number in subscribers:
            network.subscribe(number, topic)
        network.run(10)
        trees = converged(vectors, topic, subscribers)
        assert links(network, topic) == tree_links(trees)
        identity = network.publish(publisher, topic)
        network.run(5)
        first = int(publisher != trees.roots[0])  # hop to the root
        depths = dict(zip(subscribers, trees.depths[0], strict=True))
        hops = {number: network.hops[number, identity] for number in subscribers}
        assert hops == {number: first + depth for number, depth in depths.items()}


def test_branches_without_subscribers_are_pruned() -> None:
    vectors = drawn(3, 20)
    network = standing(vectors)
    for number in range(0, 20, 2):
        network.subscribe(number, TOPIC)
    network.run(5)
    for number in range(2, 20, 2):
        network.unsubscribe(number, TOPIC)
    network.run(5)
    trees = converged(vectors, TOPIC, [0])
    assert links(network, TOPIC) == tree_links(trees)
    network.unsubscribe(0, TOPIC)
    network.run(5)
    assert all(node.tree.get(TOPIC) is None for node in network.nodes.values())


def test_publications_go_to_the_root_also_without_subscribers() -> None:
    vectors = drawn(4, 12)
    root = int(converged(vectors, TOPIC, [0]).roots[0])
    network = standing(vectors)
    publisher = (root + 1) % 12
    network.advertise(publisher, TOPIC)
    network.run(5)
    for _ in range(3):
        network.publish(publisher, TOPIC)
    network.run(2)
    assert [entry[:2] for entry in network.publications()] == [(publisher, root)] * 3


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_root_and_forwarders_crash_and_the_rest_find_each_other_again(
    seed: int, reported: bool
) -> None:
    vectors = drawn(seed + 10, 20)
    subscribers, publisher = list(range(0, 20, 3)), 1
    network = standing(vectors, seed)
    network.advertise(publisher, TOPIC)
    for number in subscribers:
        network.subscribe(number, TOPIC)
    network.run(5)
    trees = converged(vectors, TOPIC, subscribers)
    for number in {int(trees.roots[0]), int(trees.parent[0])} - {publisher, 0}:
        network.crash(number)
        for other in list(network.nodes) if reported else []:
            network.act(other, network.nodes[other].on_peer_lost(number, network.now))
    network.run(REFRESHED_S)
    identity = network.publish(publisher, TOPIC)
    network.run(3)
    assert network.receivers(identity) == set(subscribers) & set(network.nodes)
    assert set(network.delivered.values()) == {1}


def test_a_better_root_comes_and_the_old_one_serves_until_all_know() -> None:
    random = Random(5)
    target = topic_hash(TOPIC)
    vectors = [random.getrandbits(VECTOR_BITS) for _ in range(12)]
    network = standing(vectors)
    network.advertise(1, TOPIC)
    for number in range(2, 12, 2):
        network.subscribe(number, TOPIC)
    network.run(5)
    network.start(12, [0], target)  # agrees with the hash in all bits
    published = []
    for _ in range(60):
        published.append(network.publish(1, TOPIC))
        network.run(0.5)
    wanted = set(range(2, 12, 2))
    assert all(network.receivers(identity) == wanted for identity in published)
    assert set(network.delivered.values()) == {1}
    assert {receiver for sender, receiver, _ in network.publications() if sender == 1} >= {12}
    trees = converged([*vectors, target], TOPIC, sorted(wanted))
    assert links(network, TOPIC) == tree_links(trees)


def test_a_new_root_learns_from_the_old_one_who_publishes() -> None:
    vectors = drawn(5, 12)
    network = standing(vectors, renew_s=100.0)
    root = int(converged(vectors, TOPIC, [0]).roots[0])
    publisher, asker = [number for number in range(12) if number != root][:2]
    network.advertise(publisher, TOPIC)
    network.run(5)
    network.start(12, [0], topic_hash(TOPIC))  # agrees with the hash in all bits
    network.run(20)
    network.reported.clear()
    network.act(asker, network.nodes[asker].ask(TOPIC, b"what I have", network.now))
    network.run(3)
    asked = [(node, action) for node, action in network.reported if isinstance(action, Asked)]
    assert {node for node, _ in asked} == {publisher, 12}
    assert {action for _, action in asked} == {Asked(asker, TOPIC, b"what I have")}


def test_publishers_are_remembered_until_they_are_dead_or_silent_for_long() -> None:
    publishers = Publishers(100.0)
    for node, now in ((1, 0.0), (2, 0.0), (3, 50.0)):
        publishers.add(TOPIC, node, now)
    publishers.add("valley", 2, 0.0)
    publishers.forget_node(2)
    assert (publishers.of(TOPIC), publishers.of("valley")) == ([1, 3], [])
    publishers.forget_old(100.0)
    assert publishers.of(TOPIC) == [1, 3]
    publishers.forget_old(101.0)
    assert publishers.of(TOPIC) == [3]
    assert publishers.hand_over(lambda topic: topic == TOPIC) == [(TOPIC, 3)]
    assert not publishers


def test_children_that_do_not_refresh_are_forgotten() -> None:
    vectors = drawn(6, 10)
    network = standing(vectors, renew_s=2.0)
    root = int(converged(vectors, TOPIC, [0]).roots[0])
    far = next(n for n in range(1, 10) if n != root)
    network.subscribe(far, TOPIC)
    network.run(5)
    assert links(network, TOPIC)
    network.crash(far)
    network.run(30)
    assert all(node.tree.get(TOPIC) is None for node in network.nodes.values())


def test_publications_wait_until_the_root_is_known() -> None:
    network = standing(drawn(8, 10))
    network.subscribe(2, TOPIC)
    network.run(5)
    network.start(10, [0])
    network.advertise(10, TOPIC)
    early = network.publish(10, TOPIC)
    assert (10, TOPIC) not in network.advertised
    assert network.publications() == []
    network.run(10)
    assert (10, TOPIC) in network.advertised
    assert network.receivers(early) == {2}


def test_a_new_node_does_not_take_itself_for_a_root_at_once() -> None:
    network = TopicNetwork("scribe", 1, {})
    network.start(1, [])
    network.advertise(1, TOPIC)
    network.run(2.9)
    assert network.advertised == set()
    network.run(2)
    assert network.advertised == {(1, TOPIC)}
