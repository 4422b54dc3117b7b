"""Scribe, the rival: a tree per topic, rooted at the node that the topic's hash leads to (Banno 2013, 2.2).

Routing is by membership vector on a Skip Graph in which each node has one key, its number: topics have no place in it.
A message for a bit string goes up level by level: a node that shares i bits with it passes the message along its list
of level i to the nearest member that shares one more. Where no member does, the other bit is taken for that one, by
all alike; so all ways end at the same node, the root. To the nearest, whichever side it is on, is the shortest that
Scribe can do; walking to one side only would be longer.

The next hop depends on nothing but node and topic, so ways that meet stay together: the ways of a topic's subscribers
to the root, reversed, are its multicast tree. A publisher has asked for the root once and sends to it directly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import BITS, NO_NODE, lists_of_levels

_Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScribeTrees:
    """The trees of all topics."""

    roots: _Nodes  # of each topic
    depths: _Nodes  # of each subscriber, `depths[topic, subscriber]`: hops from the root
    topic: _Nodes  # the trees' links: the topic,
    child: _Nodes  # the node that gets the message,
    parent: _Nodes  # and the one that it gets it from


def scribe_trees(
    vectors: NDArray[np.uint64], hashes: NDArray[np.uint64], joining: _Nodes
) -> ScribeTrees:
    """The trees of topics with these `hashes` that the nodes `joining[topic, subscriber]` have joined.

    `vectors` are those of all nodes, all different.
    """
    nodes = len(vectors)
    topic = np.repeat(np.arange(len(joining)), joining.shape[1])
    at = joining.flatten()
    depths = np.zeros(len(at), dtype=np.int64)
    links = [np.zeros(0, dtype=np.int64)]  # topic, child and parent as one number
    levels = lists_of_levels(np.arange(nodes, dtype=np.int32), vectors)
    for level, (order, first) in enumerate(levels):
        place = np.uint64(BITS - 1 - level)
        toward = _toward(order, first, vectors >> place & np.uint64(1))
        wanted = (hashes >> place & np.uint64(1)).astype(np.int64)[topic]
        moving = np.flatnonzero(toward[wanted, at] != NO_NODE)
        while moving.size:
            step = toward[wanted[moving], at[moving]]
            moves = step != at[moving]
            moving, step = moving[moves], step[moves]
            links.append((topic[moving] * nodes + at[moving]) * nodes + step)
            depths[moving] += 1
            at[moving] = step
    ends, parent = np.divmod(np.unique(np.concatenate(links)), nodes)
    tree, child = np.divmod(ends, nodes)
    roots = at.reshape(joining.shape)[:, 0]
    return ScribeTrees(roots, depths.reshape(joining.shape), tree, child, parent)


def _toward(order: NDArray[np.int32], first: NDArray[np.bool_], bits: NDArray[np.uint64]) -> _Nodes:
    """The next hop to the nearest node of the same list that has a bit, `toward[bit, node]`.

    The node itself if it has the bit, `NO_NODE` if none in its list has it or the node is in no list of this level.
    """
    count = len(order)
    begin = np.flatnonzero(first)
    members = np.diff(np.append(begin, count))
    begin, end = np.repeat(begin, members), np.repeat(begin + members, members)
    place = np.arange(count)
    toward = np.full((2, len(bits)), NO_NODE, dtype=np.int64)
    for bit in (0, 1):
        has = bits[order] == bit
        before = np.maximum.accumulate(np.where(has, place, NO_NODE))
        after = np.minimum.accumulate(np.where(has, place, count)[::-1])[::-1]
        leftward = np.where(before >= begin, place - before, count)
        rightward = np.where(after < end, after - place, count)
        hop = np.where(rightward <= leftward, np.minimum(rightward, 1), -1)
        known = np.minimum(leftward, rightward) < count
        toward[bit, order[known]] = order[(place + hop)[known]]
    return toward
