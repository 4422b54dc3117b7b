"""Collecting periodic data from many publishers: load and hops of each method (Kawakami 2016, experiment)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import converge, lists_of_levels, neighbours_in_topics

# By which tree data comes to the subscriber: the next one of each node on the way (Kawakami 2016).
#
# Nodes are numbered in the order of their keys; the last one is the subscriber, which is its own next one. The rules by
# which a single node decides are in `nodes.overlay.collection.rules`; here all decide at once.


Tree = NDArray[np.int64]


class Lists(StrEnum):
    """How the paper's lists are read; it leaves that open."""

    LINE = "line"  # they end: all data goes toward larger keys
    RING = "ring"  # their ends are neighbours: the first of a list may send to its last
    HALVES = "halves"  # and the first half of the publishers goes to the subscriber across the end


def server_tree(nodes: int) -> Tree:
    """Every node sends to the subscriber."""
    return np.full(nodes, nodes - 1, dtype=np.int64)


def chain_tree(nodes: int) -> Tree:
    """Every node sends to the next one."""
    return np.minimum(np.arange(1, nodes + 1), nodes - 1)


def push_tree(vectors: NDArray[np.uint64], lists: Lists) -> Tree:
    """Every node uses the link that reaches furthest toward the subscriber; `vectors` in key order."""
    subscriber = len(vectors) - 1
    places = np.arange(len(vectors))
    lowest, highest = places.copy(), places.copy()  # of all nodes that each has a link to
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
    """Answers return the way of the subscriber's request, which splits its range as multicasts do.

    All ways of the question are followed at once: each to the last neighbour that is not behind its end or, if all
    are, to the leftmost one (`testbed.converged.multicast`).
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


# What each node sends and receives in each unit of time while data goes along a tree to the subscriber.


Counts = NDArray[np.int64]  # [node, time]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages of each node in each unit of time."""

    received: Counts
    sent: Counts

    def load(self, alpha: float = 1.0, beta: float = 1.0) -> NDArray[np.float64]:
        """L = alpha x received + beta x sent (Kawakami 2016), of each node in each unit of time."""
        return alpha * self.received + beta * self.sent


def pushed(tree: Tree, periods: NDArray[np.int64], times: int, aggregate: bool) -> Traffic:
    """Each publisher sends at the multiples of its period, and everything arrives within the same unit of time.

    `aggregate`: what a node has from others and of its own for the same time leaves as one message.
    """
    sent = np.zeros((len(tree), times), dtype=np.int64)
    sent[:-1] = np.arange(times) % periods[:, None] == 0
    received = np.zeros_like(sent)
    farthest_first = np.argsort(-hops_to_the_end(tree), kind="stable")[:-1]
    for node in farthest_first:
        sent[node] += received[node]
        if aggregate:
            np.minimum(sent[node], 1, out=sent[node])
        received[tree[node]] += sent[node]
    return Traffic(received, sent)


def pulled(tree: Tree, every: int, times: int) -> Traffic:
    """The subscriber asks every node at the multiples of `every`; answers are joined on their way back.

    A question goes to each publisher once, and an answer comes from it: two messages a node.
    """
    publishers = np.arange(len(tree)) < len(tree) - 1
    children = np.bincount(tree[:-1], minlength=len(tree))
    both_ways = children + publishers
    asked = (np.arange(times) % every == 0).astype(np.int64)
    messages = both_ways[:, None] * asked
    return Traffic(messages, messages)


Row = dict[str, Any]
LONGEST_PERIOD = 10  # drawn from 1 on
TIMES = 2_520  # the least common multiple of all periods: what follows is the same again
VECTOR_BITS = 32


@dataclass(frozen=True, slots=True)
class Collectors:
    """The participants. Vectors are random, so each place in key order has its own, whichever node has it."""

    periods: NDArray[np.int64]  # of publishers, ascending
    vectors: NDArray[np.uint64]  # of all places; the subscriber's is the last


class Method(NamedTuple):
    """How data gets to the subscriber."""

    tree: str  # server, chain, push, or pull
    descending: bool  # long periods first, short ones next to the subscriber
    aggregate: bool


METHODS: Mapping[str, Method] = {
    "server": Method("server", descending=True, aggregate=False),
    "chain": Method("chain", descending=True, aggregate=True),
    "push-ascending": Method("push", descending=False, aggregate=False),
    "push-descending": Method("push", descending=True, aggregate=False),
    "push-ascending-aggregated": Method("push", descending=False, aggregate=True),
    "push-descending-aggregated": Method("push", descending=True, aggregate=True),
    "pull": Method("pull", descending=True, aggregate=True),
}


def collectors(nodes: int, random: np.random.Generator) -> Collectors:
    """One subscriber, and publishers with random periods."""
    if nodes < 2:
        raise ValueError(f"{nodes} nodes: give at least 2, a publisher and the subscriber")
    periods = np.sort(random.integers(1, LONGEST_PERIOD + 1, size=nodes - 1))
    vectors = random.integers(0, 2**VECTOR_BITS, size=nodes, dtype=np.uint64)
    return Collectors(periods, vectors << np.uint64(64 - VECTOR_BITS))


def measure_collection(
    nodes: int,
    seed: int,
    trial: int = 0,
    lists: str = Lists.LINE,
    times: int = TIMES,
    alpha: float = 1.0,
    beta: float = 1.0,
    ask_every: int = 1,
) -> list[Row]:
    """One trial: `nodes` nodes, one of them the subscriber; a row for each method.

    `nodes`, `trial`, `lists`, `method`; `momentary` (the largest load of a node in a unit of time), `largest` (the
    largest load of a node in all units of time), `load` (SL: of all nodes, for one unit of time), `squares` (the sum of
    the squares of the nodes' loads for one unit of time; with `load` it gives the fairness), `most_sent` (by a node in
    a unit of time), `hops_max`, `hops` and `hops_plain` (from a publisher to the subscriber; the mean over all that is
    sent, and over publishers). `ask_every`: how often the subscriber asks when it pulls.
    """
    people = collectors(nodes, np.random.default_rng([seed, trial, nodes]))
    trees = {
        "server": server_tree(nodes),
        "chain": chain_tree(nodes),
        "push": push_tree(people.vectors, Lists(lists)),
        "pull": pull_tree(people.vectors),
    }
    rows = []
    for name, method in METHODS.items():
        tree = trees[method.tree]
        periods = people.periods[::-1] if method.descending else people.periods
        if method.tree == "pull":
            traffic = pulled(tree, ask_every, times)
        else:
            traffic = pushed(tree, periods, times, method.aggregate)
        head = {"nodes": nodes, "trial": trial, "lists": str(lists), "method": name}
        loads = _loads(traffic, alpha, beta)
        rows.append(head | loads | _hops(hops_to_the_end(tree)[:-1], periods))
    return rows


def _loads(traffic: Traffic, alpha: float, beta: float) -> Row:
    momentary = traffic.load(alpha, beta)
    total = momentary.sum(axis=1)
    rates = total / momentary.shape[1]
    return {
        "momentary": float(momentary.max()),
        "largest": float(total.max()),
        "load": float(rates.sum()),
        "squares": float((rates**2).sum()),
        "most_sent": int(traffic.sent[:-1].max()),
    }


def _hops(hops: NDArray[np.int64], periods: NDArray[np.int64]) -> Row:
    return {
        "hops_max": int(hops.max()),
        "hops": float(np.average(hops, weights=1 / periods)),
        "hops_plain": float(hops.mean()),
    }
