"""What each node sends and receives in each unit of time while data goes along a tree to the subscriber."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.converged.collecting_trees import Tree, hops_to_the_end

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
    """The subscriber asks everybody at the multiples of `every`; answers are joined on their way back.

    A question goes to each publisher once, and an answer comes from it: two messages a node.
    """
    publishers = np.arange(len(tree)) < len(tree) - 1
    children = np.bincount(tree[:-1], minlength=len(tree))
    both_ways = children + publishers
    asked = (np.arange(times) % every == 0).astype(np.int64)
    messages = both_ways[:, None] * asked
    return Traffic(messages, messages)
