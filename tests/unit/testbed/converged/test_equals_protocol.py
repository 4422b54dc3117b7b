"""A converged Skip Graph equals the one that the protocol builds once no peer joins or leaves any more."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.overlays.overlay_network import OverlayNetwork, actual_links, graph_node
from testbed.converged import converge
from testbed.converged.graph import NO_NODE

ENOUGH_S = 60.0  # every level of every key is maintained many times


@given(st.lists(st.integers(1, 3), min_size=1, max_size=10), st.integers(0, 10_000))
@settings(max_examples=25)
def test_converge_builds_what_messages_build(keys_of_node: list[int], seed: int) -> None:
    """Nodes with some keys each, in any order, insert them one after the other."""
    random = Random(seed)
    network = OverlayNetwork(seed)
    for number, count in enumerate(keys_of_node):
        node = graph_node(network, number, range(number))
        for key in range(count):
            name = random.randbytes(2) + bytes([number, key])
            network.act(number, node.insert(name, network.now))
            network.run(1.0)
    network.run(ENOUGH_S)
    built = actual_links(network.nodes.values())

    owner = {key: number for number, node in network.nodes.items() for key in node.own_keys()}
    keys = sorted(owner)
    vectors = [node.peer(node.own_keys()[0]).me.vector for node in network.nodes.values()]
    left, right = converge(
        np.array([owner[key] for key in keys], dtype=np.int32), np.array(vectors, dtype=np.uint64)
    )
    for peer, key in enumerate(keys):
        height = len(built[key])
        for level in range(max(height, len(left))):
            expected = built[key][level] if level < height else (None, None)
            found = (
                (left[level, peer], right[level, peer]) if level < len(left) else (NO_NODE, NO_NODE)
            )
            assert tuple(None if near == NO_NODE else keys[near] for near in found) == _of_others(
                expected, owner, owner[key], level < len(left)
            )


def _of_others(
    links: tuple[bytes | None, bytes | None], owner: dict[bytes, int], own: int, counted: bool
) -> tuple[bytes | None, bytes | None]:
    """Where a level has no link between nodes at all, `converge` does not count it; the protocol links own keys."""
    if counted:
        return links
    assert all(near is None or owner[near] == own for near in links)
    return None, None
