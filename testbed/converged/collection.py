"""Collecting periodic data from many publishers: load and hops of each method (Kawakami 2016, experiment)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.converged.collecting import Traffic, pulled, pushed
from testbed.converged.collecting_trees import (
    Lists,
    chain_tree,
    hops_to_the_end,
    pull_tree,
    push_tree,
    server_tree,
)

Row = dict[str, Any]
LONGEST_PERIOD = 10  # drawn from 1 on
TIMES = 2_520  # the least common multiple of all periods: what follows is the same again
VECTOR_BITS = 32


@dataclass(frozen=True, slots=True)
class Collectors:
    """Who takes part. Vectors are random, so each place in key order has its own, whoever stands there."""

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
