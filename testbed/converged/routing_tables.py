"""The nodes that publishers learn of, and which subscribers their tables hold in the end.

A publisher learns of the Skip Graph neighbours of its keys, which are sticky, and of the subscribers of its topics, one
after the other in any order. Other nodes that it learns of change nothing: by the tables' order they go first.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import BITS, NO_NODE, Links
from testbed.converged.population import Population

# Adaptive routing tables: they enter every node they learn of and evict the least useful entry (Kita 2025, 5.4).
#
# FRT's idea: tables are ordered by a total order, and when a table has grown too large, that entry goes without which
# the best table is left. Of two tables the better one is decided by the first of these that differs:
#
# 0. PATM-TBPS only: more subscribers of topics of high priority that the node publishes (the thesis prints the opposite
#    sign, against its own text);
# 1. a higher top level, then fewer empty levels below it (an entry's level: how many bits it shares with the table's
#    node);
# 2. more subscribers of the node's own topics;
# 3. fewer levels that are tied for having the most entries;
# 4. the most filled level is a higher one (of several that are tied, the highest);
# 5. closer keys, on the right side and then on the left: entry by entry in order of distance; none is farther than any.
#
# The neighbours of each level are sticky: they are never evicted, since routing would break.


_FREE = -1


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that some nodes learn of, in this order: `[table, entry]`. Sticky entries come first."""

    there: NDArray[np.bool_]  # false: this table has fewer entries than the longest
    level: NDArray[np.int64]
    sticky: NDArray[np.bool_]
    subscribes: NDArray[np.bool_]  # to a topic of the table's node
    urgent: NDArray[np.bool_]  # of high priority, and published by it; all false for ATM-TBPS
    distance: NDArray[
        np.int64
    ]  # of its key: positive to the right, negative to the left, all different


def retained(candidates: Candidates, size: int) -> NDArray[np.bool_]:
    """The entries left in tables of `size` after all candidates: `[table, entry]`. All tables at once."""
    tables, entries = candidates.there.shape
    every = np.arange(tables)
    most_sticky = int((candidates.there & candidates.sticky).sum(axis=1).max())
    slots = np.full((tables, max(size, most_sticky) + 1), _FREE)
    free = np.zeros(tables, dtype=np.int64)  # a slot of each table
    counts = np.zeros(
        (tables, candidates.level.max() + 1), dtype=np.int64
    )  # of entries on each level
    for entry in range(entries):
        come = every[candidates.there[:, entry]]
        slots[come, free[come]] = entry
        counts[come, candidates.level[come, entry]] += 1
        used = (slots[come] != _FREE).sum(axis=1)
        free[come] = used
        full = come[(used > size) & ~candidates.sticky[come, entry]]
        if full.size:
            worst = _worst(candidates, full, slots[full], counts[full])
            counts[full, candidates.level[full, slots[full, worst]]] -= 1
            slots[full, worst] = _FREE
            free[full] = worst
    held = np.zeros((tables, entries), dtype=bool)
    table, slot = np.nonzero(slots != _FREE)
    held[table, slots[table, slot]] = True
    return held


def _worst(
    candidates: Candidates,
    tables: NDArray[np.int64],
    slots: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The slot of each of these tables without whose entry the table is best."""
    of = tables[:, None], slots
    remaining = (slots != _FREE) & ~candidates.sticky[of]
    top, empty, tied, fullest = (
        np.take_along_axis(value, candidates.level[of], axis=1) for value in _without(counts)
    )
    distance = candidates.distance[of]
    left_first = np.where(distance < 0, np.abs(distance).max() + 1 - distance, distance)
    better = (
        ~candidates.urgent[of],
        top,
        -empty,
        ~candidates.subscribes[of],
        -tied,
        fullest,
        left_first,
    )
    for value in better:
        left = np.where(remaining, value.astype(np.int64), np.iinfo(np.int64).min)
        remaining &= left == left.max(axis=1, keepdims=True)
    worst: NDArray[np.int64] = remaining.argmax(axis=1)
    return worst


def _without(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """With one entry less on a level, `[table, level]`: top level, empty levels, fullest levels, the highest."""
    levels = counts.shape[1]
    fewer = counts[:, None, :] - np.eye(levels, dtype=np.int64)
    used = fewer > 0
    top = _highest(used)
    empty = (~used & (np.arange(levels) <= top[..., None])).sum(axis=-1)
    most = fewer == fewer.max(axis=-1, keepdims=True)
    return top, empty, most.sum(axis=-1), _highest(most)


def _highest(of_levels: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The highest level that is true, on the last axis."""
    below_top = of_levels[..., ::-1].argmax(axis=-1)
    highest: NDArray[np.int64] = of_levels.shape[-1] - 1 - below_top
    return highest


_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]


class TableOf(StrEnum):
    """Whether a key or a node has a table of the given size: the thesis leaves it open."""

    KEY = "key"  # a table for each key: fits the report of one hop up to about 50 subscribers with a size of 60
    NODE = (
        "node"  # one for all keys of a node: with 5 keys more entries are sticky than fit into it
    )


def held_by_keys(
    participants: Population, links: tuple[Links, Links], size: int, random: np.random.Generator
) -> _Bools:
    """The subscribers that the publisher's table for each topic holds, `[topic, subscriber]`.

    Such a table knows one topic only, so it is the same by ATM-TBPS and by PATM-TBPS.
    """
    own = np.arange(participants.topics)[:, None] * participants.size
    near = np.concatenate(links)[:, own[:, 0]].T.astype(np.int64)
    near.sort(axis=1)
    sticky = (near != NO_NODE) & (participants.owners[near] != participants.owners[own])
    sticky[:, 1:] &= near[:, 1:] != near[:, :-1]
    subscribers = own + 1 + np.arange(participants.subscribers)
    known = np.zeros(len(participants.owners), dtype=bool)
    known[near[sticky & (near // participants.size == own // participants.size)]] = True
    coming = random.permuted(subscribers, axis=1)
    peers = np.concatenate([near, coming], axis=1)
    there = np.concatenate([sticky, ~known[coming]], axis=1)
    vectors = participants.vectors[participants.owners]
    topical = (peers // participants.size == own // participants.size) & there
    candidates = Candidates(
        there=there,
        level=np.where(there, shared_bits(vectors[own], vectors[peers]), 0),
        sticky=np.broadcast_to(np.arange(peers.shape[1]) < near.shape[1], peers.shape),
        subscribes=topical,
        urgent=np.zeros(peers.shape, dtype=bool),
        distance=peers - own,
    )
    held = np.zeros(len(participants.owners), dtype=bool)
    held[peers[retained(candidates, size) & topical]] = True
    return np.take(held, subscribers)


def held_by_nodes(
    participants: Population,
    links: tuple[Links, Links],
    size: int,
    random: np.random.Generator,
    urgent: _Bools,
) -> _Bools:
    """The same with one table for each node, in which nodes are entered, by the key that the node learnt of first.

    A node knows the subscribers of all its topics, whether it publishes or subscribes. `urgent`: the topics of high
    priority, by PATM-TBPS; the subscribers of those of them that a node publishes come first. By ATM-TBPS none is.
    """
    size_of_topic = participants.size
    by_node = np.argsort(participants.owners, kind="stable")
    bounds = np.searchsorted(participants.owners[by_node], np.arange(len(participants.vectors) + 1))
    nodes, table_of = np.unique(
        participants.owners[::size_of_topic].astype(np.int64), return_inverse=True
    )
    near = np.concatenate(links)
    tables = []
    for node in nodes:
        keys = by_node[bounds[node] : bounds[node + 1]]
        sticky = np.unique(near[:, keys])
        sticky = sticky[(sticky != NO_NODE) & (participants.owners[sticky] != node)]
        publishes = keys % size_of_topic == 0
        own = keys[publishes] // size_of_topic
        mine = _subscribers(participants, own)
        others = _subscribers(participants, keys[~publishes] // size_of_topic)
        first_of_all = _subscribers(participants, own[urgent[own]])
        coming = random.permutation(np.concatenate([mine, others]))
        peers = np.concatenate([sticky, coming[participants.owners[coming] != node]])
        _, first = np.unique(participants.owners[peers], return_index=True)  # an entry is a node
        first.sort()
        tables.append(
            _Table(
                participants.owners[peers[first]],
                first < len(sticky),
                np.isin(participants.owners[peers[first]], participants.owners[coming]),
                np.isin(participants.owners[peers[first]], participants.owners[first_of_all]),
                peers[first] - keys[publishes][0],
            )
        )
    candidates, peers = _side_by_side(participants, nodes, tables)
    table, entry = np.nonzero(retained(candidates, size))
    entered = table * len(participants.vectors) + peers[table, entry]
    subscribers = participants.owners.reshape(participants.topics, size_of_topic)[:, 1:]
    return np.isin(table_of[:, None] * len(participants.vectors) + subscribers, entered)


class _Table(NamedTuple):
    """The nodes that one node learns of, in this order."""

    nodes: _Ints
    sticky: _Bools
    subscribes: _Bools  # to one of its topics
    urgent: _Bools  # subscribes to one of high priority that it publishes
    distance: _Ints


def _subscribers(participants: Population, topics: _Ints) -> _Ints:
    """The peers that subscribe to these topics."""
    return (topics[:, None] * participants.size + np.arange(1, participants.size)).ravel()


def _side_by_side(
    participants: Population, nodes: _Ints, tables: list[_Table]
) -> tuple[Candidates, _Ints]:
    """All tables as one, the shorter ones filled up; and the nodes that are entered."""
    shape = len(tables), max(len(table.nodes) for table in tables)
    there = np.arange(shape[1]) < np.array([[len(table.nodes)] for table in tables])
    peers = np.zeros(shape, dtype=np.int64)
    distance = np.zeros(shape, dtype=np.int64)
    sticky, subscribes, urgent = (np.zeros(shape, dtype=bool) for _ in range(3))
    for place, filled in enumerate((peers, sticky, subscribes, urgent, distance)):
        filled[there] = np.concatenate([table[place] for table in tables])
    level = np.where(
        there, shared_bits(participants.vectors[nodes][:, None], participants.vectors[peers]), 0
    )
    return Candidates(there, level, sticky, subscribes, urgent, distance), peers


def shared_bits(vectors: NDArray[np.uint64], others: NDArray[np.uint64]) -> _Ints:
    """How many leading bits they share."""
    differ = vectors ^ others
    # Without the bit behind the leading one, rounding to a float cannot carry into the next power of two.
    _, length = np.frexp((differ & ~(differ >> np.uint64(1))).astype(np.float64))
    return BITS - length.astype(np.int64)
