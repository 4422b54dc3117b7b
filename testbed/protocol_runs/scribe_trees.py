"""Scribe's messages in the same experiment, from its tree: a model, not a run of nodes.

The ways of all subscribers to the root are those of `testbed.converged.scribe`. Who subscribes belongs to the tree from
that moment on, with its whole way, and until it leaves: no time passes for joining, and no message is counted for it.
So Scribe is shown better than it can be. A publication goes to the root, whoever subscribes; then down the tree as it
is at that moment, one link after the other.
"""

from collections import Counter

import numpy as np

from testbed.converged import population
from testbed.converged.scribe import scribe_trees
from testbed.protocol_runs.counting import PUBLICATION, Record
from testbed.protocol_runs.plan import Stopping

Link = tuple[int, int]  # child, and how many links below the root


class ScribeModel:
    """One run."""

    def __init__(self, plan: Stopping) -> None:
        random = plan.random("people")
        people = population(plan.publishers, plan.subscribers, plan.nodes, random.getrandbits(32))
        members = people.owners[people.size * (people.topics // 2) :][: people.size]
        subscribers = members[plan.publishers :]
        hashes = np.array([random.getrandbits(64)], dtype=np.uint64)
        trees = scribe_trees(people.vectors, hashes, subscribers[np.newaxis].astype(np.int64))
        parents = dict(zip(trees.child.tolist(), trees.parent.tolist(), strict=True))
        self._plan = plan
        self._root = int(trees.roots[0])
        self._publishers: list[int] = members[: plan.publishers].tolist()
        self._ways = [_way(node, parents) for node in subscribers.tolist()]

    def run(self) -> Record:
        plan, record = self._plan, Record(self._plan, (PUBLICATION,))
        users = Counter(link for way in self._ways for link in way)
        happenings = [
            *((moment * 1000, 0, subscriber, comes) for moment, subscriber, comes in plan.moves()),
            *((moment, 1, publisher, True) for moment, publisher in plan.publications()),
        ]
        levels = _levels(users)
        for moment, is_publication, who, comes in sorted(happenings):
            if not is_publication:
                for link in self._ways[who]:
                    users[link] += 1 if comes else -1
                levels = _levels(users)
                continue
            at_ms = moment / 1000
            if self._publishers[who] != self._root:
                record.sent(PUBLICATION, at_ms)
                at_ms += plan.delay_ms
            record.made(len(record.publications), moment / 1000)
            for depth, links in levels.items():
                record.sent(PUBLICATION, at_ms + (depth - 1) * plan.delay_ms, links)
        return record


def _way(node: int, parents: dict[int, int]) -> list[Link]:
    """The links from the root to a subscriber."""
    nodes = [node]
    while nodes[-1] in parents:
        nodes.append(parents[nodes[-1]])
    return [(child, depth) for depth, child in enumerate(reversed(nodes[:-1]), start=1)]


def _levels(users: Counter[Link]) -> Counter[int]:
    """How many links of the tree are used, by their depth."""
    return Counter(depth for (_, depth), count in users.items() if count)
