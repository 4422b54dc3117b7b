"""Search in a Skip Graph: the papers' example, and the right target from everywhere."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.overlay.skipgraph.actions import Carried, Result
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import vector_of
from support.overlays.overlay_network import (
    OverlayNetwork,
    actual_links,
    expected_links,
    graph_node,
)

# Kita 2025, figure 4.1: key and membership vector of each node
FIGURE = {9: "00", 21: "10", 33: "01", 48: "00", 75: "11", 99: "11"}


def grown(keys: dict[int, list[bytes]], seed: int = 1) -> OverlayNetwork:
    """A quiet network of nodes with these keys."""
    network = OverlayNetwork(seed)
    for number, own in keys.items():
        node = graph_node(network, number, list(keys)[:1])
        for key in own:
            network.act(number, node.insert(key, network.now))
            network.run(1)
    network.run(30)
    assert actual_links(network.nodes.values()) == expected_links(network.nodes.values())
    return network


def test_the_search_of_the_figure_goes_from_99_over_75_to_21() -> None:
    network = OverlayNetwork(seed=1)
    for number, bits in FIGURE.items():
        node = graph_node(network, number, [9], vector_of(bits))
        network.act(number, node.insert(bytes([number]), network.now))
        network.run(1)
    network.run(30)
    network.passed.clear()
    ticket, actions = network.nodes[99].search(bytes([21]), network.now)
    network.act(99, actions)
    network.run(1)
    path = [99] + [to for _, to, message in network.passed if isinstance(message, m.Seek)]
    assert path == [99, 75, 21]
    (result,) = [action for _, action in network.reported if isinstance(action, Result)]
    assert (result.ticket, result.contact.key, result.hops) == (ticket, bytes([21]), 2)


@given(st.integers(0, 999), st.data())
@settings(max_examples=15, deadline=None)
def test_a_search_ends_at_the_key_or_at_the_one_before_it(seed: int, data: st.DataObject) -> None:
    random = Random(seed)
    keys = {
        number: [bytes([random.randrange(200), number]) for _ in range(random.choice([1, 1, 2]))]
        for number in range(1, 9)
    }
    network = grown(keys, seed)
    every = sorted(key for own in keys.values() for key in own)
    for _ in range(5):
        start = data.draw(st.sampled_from(list(keys)))
        sought = data.draw(st.sampled_from(every) | st.binary(min_size=1, max_size=2))
        before = max((key for key in every if key < sought), default=every[-1])
        node = network.nodes[start]
        network.reported.clear()
        network.act(start, node.search(sought, network.now)[1])
        network.act(start, node.carry(sought, b"words", network.now))
        network.run(1)
        actions = [action for _, action in network.reported]
        (result,) = [action for action in actions if isinstance(action, Result)]
        assert result.contact.key == (sought if sought in every else before)
        assert Carried(before, start, b"words") in actions


def test_hops_between_keys_of_one_node_cost_nothing() -> None:
    network = grown({1: [b"a", b"m", b"z"], 2: [b"c"], 3: [b"n"]})
    network.passed.clear()
    network.act(1, network.nodes[1].search(b"m", network.now)[1])
    assert not network.passed
    (result,) = [action for _, action in network.reported if isinstance(action, Result)]
    assert (result.contact.key, result.hops) == (b"m", 0)
