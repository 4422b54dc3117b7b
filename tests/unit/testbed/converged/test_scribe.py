"""Scribe: every subscriber's path to the root, hop by hop, and the tree that these paths form."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.overlays.literal_overlay import BITS, lists, shared
from testbed.converged.scribe import scribe_trees


@given(st.integers(1, 24), st.integers(1, 4), st.integers(0, 10_000))
def test_the_paths_of_all_subscribers_to_the_root_form_the_tree(
    nodes: int, topics: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    vectors = random.integers(0, 2**64, nodes, dtype=np.uint64)
    hashes = random.integers(0, 2**64, topics, dtype=np.uint64)
    subscribers = random.integers(1, nodes + 1)
    joining = np.array([random.permutation(nodes)[:subscribers] for _ in range(topics)])
    trees = scribe_trees(vectors, hashes, joining)
    for topic in range(topics):
        paths = [
            path_to_root(vectors.tolist(), int(hashes[topic]), int(start))
            for start in joining[topic]
        ]
        assert {path[-1] for path in paths} == {int(trees.roots[topic])}
        assert [len(path) - 1 for path in paths] == trees.depths[topic].tolist()
        links = {pair for path in paths for pair in pairwise(path)}
        mine = trees.topic == topic
        assert links == set(
            zip(trees.child[mine].tolist(), trees.parent[mine].tolist(), strict=True)
        )


def path_to_root(vectors: list[int], topic: int, start: int) -> list[int]:
    """Level by level, along the list to the nearest node that shares one bit more."""
    levels = lists(range(len(vectors)), vectors)
    path = [start]
    for level, links in enumerate(levels):
        bit = 1 << (BITS - 1 - level)
        members = [
            node
            for node in range(len(vectors))
            if shared(vectors[node], vectors[path[-1]]) >= level
        ]
        wanted = [node for node in members if (vectors[node] ^ topic) & bit == 0] or members
        here = members.index(path[-1])
        goal = min(wanted, key=lambda node: (abs(members.index(node) - here), -node))
        while path[-1] != goal:
            left, right = links[path[-1]]
            onward = right if goal > path[-1] else left
            assert onward is not None
            path.append(onward)
    return path


def test_a_node_alone_is_its_own_root() -> None:
    trees = scribe_trees(
        np.array([5], dtype=np.uint64), np.array([9], dtype=np.uint64), np.array([[0]])
    )
    assert trees.roots.tolist() == [0]
    assert trees.depths.tolist() == [[0]]
    assert len(trees.topic) == 0
