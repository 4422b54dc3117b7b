"""How fairly methods spread their load over the nodes (Banno 2013, experiment 2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import Neighbours, converge, neighbours_in_topics
from testbed.converged.multicast import Strategy
from testbed.converged.population import Population, population, random_vectors
from testbed.converged.scribe import scribe_trees

Row = dict[str, Any]
_Counts = NDArray[np.int64]
GROUP = 1_000  # nodes
SHORTEST_MS, LONGEST_MS = 10.0, 1_000.0  # between two publications of a publisher


@dataclass(frozen=True, slots=True)
class Load:
    """Messages of each node."""

    sent: _Counts  # of its own publications
    received: _Counts  # of its own topic
    forwarded: _Counts  # of others' publications


def measure_load(
    seed: int,
    trial: int = 0,
    topics: int = 100,
    subscribers: int = 1_000,
    publications: int = 1_000,
    strategy: str = Strategy.SPLIT,
) -> tuple[list[Row], list[Row]]:
    """One trial: `topics` topics, each of one publisher and `subscribers` subscribers of its own; groups and totals.

    Publishers publish at intervals that follow a power law, from 10 ms (few) to 1,000 ms (many), until there were
    `publications` in all. The first list has a row for each method and each group of 1,000 nodes, those that forwarded
    most first: `method` (sg-tbps, scribe), `trial`, `node_rank_group`, and, as means over the group, `sent` (messages
    of own publications), `received` (publications of its own topic), `forwarded` (messages of others' publications
    that it passed on). The second has a row for each method: `method`, `trial`, `correlation` (over nodes, between
    received and forwarded), `without_forwards` (nodes that forwarded nothing), `nodes`.

    `strategy` is that of SG-TBPS: `split`, as the paper's leaves that forward nothing exist in a tree only, or `flood`.
    """
    states = np.random.SeedSequence([seed, trial, topics, subscribers]).generate_state(3, np.uint64)
    participants = population(1, subscribers, topics * (subscribers + 1), int(states[0]))
    published = publications_by_topic(topics, publications, np.random.default_rng(states[1]))
    hashes = random_vectors(topics, np.random.default_rng(states[2]))
    loads = {
        "sg-tbps": sg_load(participants, published, Strategy(strategy)),
        "scribe": scribe_load(participants, published, hashes),
    }
    groups = [row for method, load in loads.items() for row in _groups(method, trial, load)]
    return groups, [_totals(method, trial, load) for method, load in loads.items()]


def publications_by_topic(
    topics: int, publications: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """How often each topic is published until there were `publications` in all.

    The n-th topic's interval is n to a power as long as the first one's: few publish often, and most seldom.
    """
    exponent = np.log(LONGEST_MS / SHORTEST_MS) / np.log(max(2, topics))
    intervals = SHORTEST_MS * np.arange(1, topics + 1) ** exponent
    moments = intervals[:, None] * (random.random(topics)[:, None] + np.arange(publications))
    soonest = np.argsort(moments, axis=None, kind="stable")[:publications]
    return np.bincount(soonest // publications, minlength=topics)


def sg_load(participants: Population, published: _Counts, strategy: Strategy) -> Load:
    """Only a topic's own nodes work for it. Each topic has one publisher, its first peer."""
    _, right = converge(participants.owners, participants.vectors)
    neighbours = neighbours_in_topics(right, participants.size)
    if strategy is Strategy.FLOOD:
        copies = np.diff(neighbours.first) - 1
        copies[:: participants.size] += 1
    else:
        copies = split_children(neighbours)
    times = np.repeat(published, participants.size)
    publishes = np.arange(len(times)) % participants.size == 0
    return Load(
        _by_node(participants, np.where(publishes, copies * times, 0)),
        _by_node(participants, np.where(publishes, 0, times)),
        _by_node(participants, np.where(publishes, 0, copies * times)),
    )


def split_children(neighbours: Neighbours) -> _Counts:
    """To how many each peer passes on a `split` multicast that the first peer of its topic has begun.

    All ways are followed at once: from the first peer, hop by hop to the farthest neighbour not beyond the end.
    """
    peers = len(neighbours.first) - 1
    sorted_links = neighbours.owners * peers + neighbours.peers
    end = np.flatnonzero(np.arange(peers) % neighbours.size)
    at = end - end % neighbours.size
    children = np.zeros(peers, dtype=np.int64)
    while end.size:
        farthest = neighbours.peers[np.searchsorted(sorted_links, at * peers + end, "right") - 1]
        there = farthest == end
        children += np.bincount(at[there], minlength=peers)
        end, at = end[~there], farthest[~there]
    return children


def scribe_load(participants: Population, published: _Counts, hashes: NDArray[np.uint64]) -> Load:
    """The nodes between root and subscribers forward a topic."""
    members = participants.owners.astype(np.int64).reshape(participants.topics, participants.size)
    trees = scribe_trees(participants.vectors, hashes, members[:, 1:])
    nodes = len(participants.vectors)
    copies = np.bincount(trees.parent, weights=published[trees.topic], minlength=nodes)
    sent, received = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    sent[members[:, 0]] = published
    received[members[:, 1:]] = published[:, None]
    return Load(sent, received, copies.astype(np.int64))


def _by_node(participants: Population, of_peers: _Counts) -> _Counts:
    return np.bincount(
        participants.owners, weights=of_peers, minlength=len(participants.vectors)
    ).astype(np.int64)


def _groups(method: str, trial: int, load: Load) -> list[Row]:
    busiest_first = np.argsort(-load.forwarded, kind="stable")
    return [
        {
            "method": method,
            "trial": trial,
            "node_rank_group": group,
            "sent": float(load.sent[nodes].mean()),
            "received": float(load.received[nodes].mean()),
            "forwarded": float(load.forwarded[nodes].mean()),
        }
        for group, first in enumerate(range(0, len(busiest_first), GROUP))
        for nodes in [busiest_first[first : first + GROUP]]
    ]


def _totals(method: str, trial: int, load: Load) -> Row:
    return {
        "method": method,
        "trial": trial,
        "correlation": float(np.corrcoef(load.received, load.forwarded)[0, 1]),
        "without_forwards": int((load.forwarded == 0).sum()),
        "nodes": len(load.forwarded),
    }
