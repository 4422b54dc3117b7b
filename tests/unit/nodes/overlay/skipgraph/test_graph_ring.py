"""Level 0, rule by rule: the guarantee of the multicast depends on these rules."""

import pytest

from nodes.overlay.skipgraph.actions import Action, Delivered, Inserted, Removed, Send
from nodes.overlay.skipgraph.node import IDLE_PERIOD_S, SkipGraphNode
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact
from support.overlays.overlay_network import (
    OverlayNetwork,
    actual_links,
    expected_links,
    graph_node,
)


def ring(*keys: bytes) -> OverlayNetwork:
    """Node 0 has the first key, node 1 the second, and so on; the network is quiet. One more node has no key."""
    network = OverlayNetwork(seed=4)
    for number, key in enumerate([*keys, None]):
        node = graph_node(network, number, [0])
        if key is not None:
            network.act(number, node.insert(key, network.now))
            network.run(2)
    network.run(20)
    network.reported.clear()
    network.passed.clear()
    return network


def inserted(network: OverlayNetwork) -> list[bytes]:
    return [action.key for _, action in network.reported if isinstance(action, Inserted)]


def test_a_key_is_inserted_only_when_all_to_its_right_lead_back_to_it() -> None:
    network = ring(b"b", b"p")
    network.holds = lambda message: isinstance(message, m.Check) and message.at == b"p"
    for number, key in ((2, b"m"), (3, b"f")):
        node = graph_node(network, number, [0])
        network.act(number, node.insert(key, network.now))
        network.run(1)
    right = network.nodes[3].peer(b"f").right
    assert right.key == b"m", "the key is in the ring"
    assert inserted(network) == [], "but p would still go left past both of them"
    network.release()
    network.run(1)
    assert sorted(inserted(network)) == [b"f", b"m"]


def claim(network: OverlayNetwork, number_too_small: int) -> list[m.GraphMessage]:
    """What node 0 answers to a claim of the place to the right of its key."""
    node: SkipGraphNode = network.nodes[0]
    peer = node.peer(b"b")
    assert peer is not None
    new = Contact(b"f", 7, 0)
    number = peer.right_number - number_too_small
    message = m.Claim(b"b", new, 5 << 32, peer.right, number, ticket=9)
    return answers(node.on_message(7, message, network.now))


def answers(actions: list[Action]) -> list[m.GraphMessage]:
    """Answers to the node that made the claim."""
    messages = [action.message for action in actions if isinstance(action, Send)]
    return [message for message in messages if isinstance(message, m.Claimed | m.Gap)]


def test_a_claim_holds_only_for_the_link_it_was_made_for() -> None:
    (answer,) = claim(ring(b"b", b"p"), number_too_small=0)
    assert isinstance(answer, m.Claimed)
    (answer,) = claim(ring(b"b", b"p"), number_too_small=1)
    assert isinstance(answer, m.Gap), "the gap as it is now, to try again"


def test_a_claim_whose_answer_was_lost_is_answered_again() -> None:
    network = ring(b"b", b"p")
    first = claim(network, 0)
    peer = network.nodes[0].peer(b"b")
    again = m.Claim(b"b", Contact(b"f", 7, 0), 5 << 32, Contact(b"p", 1, 0), 1, ticket=9)
    assert answers(network.nodes[0].on_message(7, again, network.now)) == first
    assert peer.right.key == b"f"


@pytest.mark.parametrize("way", m.Way)
@pytest.mark.parametrize("keeps_another_key", [True, False])
def test_a_multicast_for_a_peer_that_has_left_finds_its_way(
    way: m.Way, keeps_another_key: bool
) -> None:
    network = ring(b"b", b"f", b"m", b"p", b"t")
    node: SkipGraphNode = network.nodes[2]
    if keeps_another_key:
        network.act(2, node.insert(b"z", network.now))
        network.run(5)
    network.act(2, node.remove(b"m", network.now))
    network.run(5)
    message = m.Multicast(b"m", b"f", 1, way, b"b", b"b", b"x", 77, b"words")
    part = (
        message
        if way is m.Way.FLOOD
        else m.Multicast(b"m", b"f", 1, way, b"b", b"m", b"x", 77, b"words")
    )
    network.reported.clear()
    network.act(2, node.on_message(1, part, network.now))
    network.run(3)
    got = {action.key for _, action in network.reported if isinstance(action, Delivered)}
    assert got == ({b"b", b"f", b"p", b"t"} if way is m.Way.FLOOD else {b"p", b"t"})


def test_neighbours_that_leave_at_once_all_get_out() -> None:
    network = ring(b"b", b"f", b"m", b"p", b"t")
    for number, key in ((1, b"f"), (2, b"m"), (3, b"p")):
        network.act(number, network.nodes[number].remove(key, network.now))
    network.run(2)
    assert {a.key for _, a in network.reported if isinstance(a, Removed)} == {b"f", b"m", b"p"}
    network.run(20)
    nodes = list(network.nodes.values())
    assert actual_links(nodes) == expected_links(nodes)


def test_the_last_two_can_leave_at_once() -> None:
    network = ring(b"b", b"p")
    for number, key in ((0, b"b"), (1, b"p")):
        network.act(number, network.nodes[number].remove(key, network.now))
    network.run(70)
    assert {a.key for _, a in network.reported if isinstance(a, Removed)} == {b"b", b"p"}
    assert all(node.next_deadline() is None for node in network.nodes.values())


def test_a_key_that_is_wanted_again_while_it_leaves_comes_back() -> None:
    network = ring(b"b", b"p")
    node = network.nodes[1]
    network.act(1, node.remove(b"p", network.now))
    network.act(1, node.insert(b"p", network.now))
    network.run(10)
    assert [a for _, a in network.reported if isinstance(a, Inserted | Removed)] == [
        Removed(b"p"),
        Inserted(b"p"),
    ]


def test_two_rings_that_were_not_introduced_to_each_other_merge() -> None:
    network = OverlayNetwork(seed=9)
    for number in range(6):
        node = graph_node(network, number, [number ^ 1])  # three pairs
        network.act(number, node.insert(bytes([(number * 37) % 200]), network.now))
    network.run(30)
    for number in range(6):
        network.nodes[number]._table.introducers = tuple(range(6))
    network.run(120)
    nodes = list(network.nodes.values())
    assert actual_links(nodes) == expected_links(nodes)


@pytest.mark.parametrize("seed", range(4))
def test_two_idle_rings_close_like_a_zip_when_one_node_of_each_meets_the_other(seed: int) -> None:
    network = OverlayNetwork(seed)
    for number in range(40):  # even and odd ones; their keys alternate, or come in runs
        node = graph_node(network, number, [number % 2], idle_period_s=IDLE_PERIOD_S)
        key = (number * 5 if seed % 2 else network.random.randrange(200)) + number % 2
        network.act(number, node.insert(bytes([key, number]), network.now))
        network.run(1)
    network.run(200)
    for number, other in ((0, 1), (1, 0)):
        network.act(number, network.nodes[number].on_peer_found(other, network.now))
    network.run(20)
    nodes = list(network.nodes.values())
    found, right = actual_links(nodes), expected_links(nodes)
    assert {key: links[0] for key, links in found.items()} == {
        key: links[0] for key, links in right.items()
    }
    network.run(2 * IDLE_PERIOD_S)  # a level above may have to wait for the check of an idle node
    assert actual_links(nodes) == expected_links(nodes)


def test_a_peer_that_is_gone_is_not_asked_again_and_again() -> None:
    network = ring(b"b", b"f", b"m", b"p")
    node: SkipGraphNode = network.nodes[0]
    peer = node.peer(b"b")
    assert peer is not None
    gone, number = peer.right, peer.right_number

    def checks(message: m.GraphMessage) -> list[bytes]:
        sent = [a.message for a in node.on_message(2, message, network.now) if isinstance(a, Send)]
        return [check.at for check in sent if isinstance(check, m.Check)]

    assert checks(m.Gone(b"b", gone.key, number)) == [b"m"], "the next one, once"
    declined = m.Declined(b"b", peer.right, peer.right_number, gone)
    assert checks(declined) == [], "its left neighbour is the one that is gone: wait"
    network.run(20)
    nodes = list(network.nodes.values())
    assert actual_links(nodes) == expected_links(nodes)
