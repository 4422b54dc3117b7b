"""By which tree data comes to the subscriber: the next one of each node on the way (Kawakami 2016).

Nodes are numbered in the order of their keys; the last one is the subscriber, who is its own next one. The rules by
which a single node decides are in `nodes.overlay.collection.rules`; here all decide at once.
"""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import converge, lists_of_levels
from testbed.converged.neighbours import neighbours_in_topics

Tree = NDArray[np.int64]


class Lists(StrEnum):
    """How the paper's lists are read, which it does not say."""

    LINE = "line"  # they end: all data goes toward larger keys
    RING = "ring"  # their ends are neighbours: the first of a list may send to its last
    HALVES = "halves"  # and the first half of the publishers goes to the subscriber across the end


def server_tree(nodes: int) -> Tree:
    """Everybody to the subscriber."""
    return np.full(nodes, nodes - 1, dtype=np.int64)


def chain_tree(nodes: int) -> Tree:
    """Everybody to the next one."""
    return np.minimum(np.arange(1, nodes + 1), nodes - 1)


def push_tree(vectors: NDArray[np.uint64], lists: Lists) -> Tree:
    """Everybody over the link that reaches furthest toward the subscriber; `vectors` in key order."""
    subscriber = len(vectors) - 1
    places = np.arange(len(vectors))
    lowest, highest = places.copy(), places.copy()  # of all whom each has a link to
    for order, first in lists_of_levels(places.astype(np.int32), vectors):
        last = np.append(first[1:], True)
        highest[order[~last]] = np.maximum(highest[order[~last]], order[~first])
        lowest[order[~first]] = np.minimum(lowest[order[~first]], order[~last])
        if lists is not Lists.LINE:
            highest[order[first]] = np.maximum(highest[order[first]], order[last])
            lowest[order[last]] = np.minimum(lowest[order[last]], order[first])
    goes_left = (lists is Lists.HALVES) & (places < subscriber // 2) & (highest != subscriber)
    tree: Tree = np.where(goes_left, lowest, highest)
    return tree


def pull_tree(vectors: NDArray[np.uint64]) -> Tree:
    """Answers go back to whom the subscriber's question came from, which splits its range as multicasts do.

    All ways of the question are followed at once: each to the last neighbour that is not behind its end or, if all
    are, to the leftmost one (`testbed.converged.split`).
    """
    nodes = len(vectors)
    _, right = converge(np.arange(nodes, dtype=np.int32), vectors)
    neighbours = neighbours_in_topics(right, nodes)
    links = neighbours.owners * nodes + neighbours.peers  # ascending
    tree = np.full(nodes, nodes - 1, dtype=np.int64)
    end = np.arange(nodes - 1)
    at = np.full(nodes - 1, nodes - 1)
    while end.size:
        last = np.searchsorted(links, at * nodes + end, "right") - 1
        begins = neighbours.first[at]
        onward = neighbours.peers[np.maximum(last, begins)]
        there = onward == end
        tree[end[there]] = at[there]
        end, at = end[~there], onward[~there]
    return tree


def hops_to_the_end(tree: Tree) -> NDArray[np.int64]:
    """Of each node, along the tree."""
    hops = np.zeros(len(tree), dtype=np.int64)
    at = np.arange(len(tree))
    while (moving := at != len(tree) - 1).any():
        hops += moving
        at = tree[at]
    return hops
