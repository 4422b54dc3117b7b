"""Path lengths and messages of topics of one size (Banno 2013, experiment 1; Kita 2025, experiment 1)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.converged.delay import hops_ms
from testbed.converged.flood import Hops, flood_hops, flood_messages
from testbed.converged.graph import Links, converge
from testbed.converged.neighbours import neighbours_in_topics
from testbed.converged.population import PATTERNS, Population, population
from testbed.converged.psg import psg_messages, psg_paths
from testbed.converged.search import search_hops
from testbed.converged.supports import NO_START, Support, SupportFrom, start_nodes
from testbed.converged.trees import tree_messages

Row = dict[str, Any]
_PAIRS_AT_ONCE = 4_000_000  # of peers of one topic: some tens of MB


class Strategy(StrEnum):
    """How a multicast goes through a topic."""

    FLOOD = "flood"
    SEARCH = "search"


@dataclass(slots=True)
class _Sums:
    """Over publications."""

    path: float = 0.0  # of a publication: the mean over its subscribers
    forwards: float = 0.0
    starts: float = 0.0
    publications: int = 0

    def add(
        self, paths: Hops, forwards: NDArray[np.int64], starts: NDArray[np.int64] | None = None
    ) -> None:
        """`paths[topic, publisher, subscriber]`; the others of each publication."""
        self.path += float(paths.mean(axis=-1).sum())
        self.forwards += float(forwards.sum())
        self.starts += float(forwards.size if starts is None else starts.sum())
        self.publications += forwards.size


@dataclass(frozen=True, slots=True)
class _Variant:
    """A method with all its choices; its fields are columns."""

    method: str
    strategy: str = ""
    priority: int = 1
    support: str = ""
    support_from: str = ""


@dataclass(slots=True)
class _Tally:
    """What was measured so far, of each variant."""

    of: dict[_Variant, _Sums] = field(default_factory=dict)

    def __getitem__(self, variant: _Variant) -> _Sums:
        return self.of.setdefault(variant, _Sums())


def measure_topics(
    pattern: str,
    nodes: int,
    seed: int,
    trial: int = 0,
    methods: Sequence[str] = ("sg-tbps", "psg-tbps"),
    priorities: Sequence[int] = (1, 2, 3, 4, 5),
    strategies: Sequence[str] = tuple(Strategy),
    supports: Sequence[str] = tuple(Support),
    supports_from: Sequence[str] = tuple(SupportFrom),
) -> list[Row]:
    """One trial: `nodes` nodes in topics of the pattern's size, one publication of each publisher by each method.

    One row for each variant of each method, with these columns. What chooses it: `pattern`, `publishers`,
    `subscribers`, `nodes`, `trial`, `method`, `strategy` ('' for Scribe), `priority` (1 for methods that know none),
    `support` and `support_from` ('' but for PSG-TBPS). What was measured: `path` (mean over publishers of the mean over
    subscribers of the hops until the first arrival), `forwards` (messages of a publication, duplicates too), `starts`
    (nodes that the multicast starts from, the publisher included), `delay_ms` (estimated from the path as the thesis
    does), `publications`, `deliveries`. The same arguments give the same rows; the rows of one trial share its topics.
    """
    publishers, subscribers = PATTERNS[pattern]
    people = population(publishers, subscribers, nodes, _seed(seed, trial, nodes, pattern))
    links = converge(people.owners, people.vectors)
    tally = _Tally()
    for topics in _chunks(people):
        hops, messages = _distances(people, links, topics, strategies)
        vectors = people.peer_vectors[topics]
        if "sg-tbps" in methods:
            for strategy in strategies:
                tally[_Variant("sg-tbps", strategy)].add(
                    hops[strategy][:, :publishers, publishers:], messages[strategy][:, :publishers]
                )
        if "psg-tbps" in methods:
            for priority in priorities:
                for support in map(Support, supports):
                    for origin in map(SupportFrom, supports_from):
                        among = people.size if origin is SupportFrom.PARTICIPANTS else publishers
                        starts = start_nodes(vectors, publishers, priority, support, among)
                        for strategy in strategies:
                            tally[_Variant("psg-tbps", strategy, priority, support, origin)].add(
                                psg_paths(hops[strategy][:, :, publishers:], starts),
                                psg_messages(messages[strategy], starts),
                                (starts != NO_START).sum(axis=-1),
                            )
    return list(_rows(tally, pattern, nodes, trial))


def _distances(
    people: Population, links: tuple[Links, Links], topics: slice, strategies: Iterable[str]
) -> tuple[dict[str, Hops], dict[str, NDArray[np.int64]]]:
    """Of each strategy: hops between all peers of each topic, and messages of a multicast from each."""
    hops: dict[str, Hops] = {}
    messages: dict[str, NDArray[np.int64]] = {}
    columns = slice(topics.start * people.size, topics.stop * people.size)
    for strategy in strategies:
        if strategy == Strategy.FLOOD:
            left, right = (link[:, columns] - columns.start for link in links)
            neighbours = neighbours_in_topics(left, right, people.size)
            hops[strategy] = flood_hops(neighbours)
            sent = flood_messages(neighbours)[:, None]
            messages[strategy] = np.broadcast_to(sent, hops[strategy].shape[:2])
        else:
            hops[strategy] = search_hops(people.peer_vectors[topics])
            messages[strategy] = tree_messages(hops[strategy], people.publishers)
    return hops, messages


def _chunks(people: Population) -> Iterator[slice]:
    """Topics that fit into memory together."""
    at_once = max(1, _PAIRS_AT_ONCE // people.size**2)
    for first in range(0, people.topics, at_once):
        yield slice(first, min(first + at_once, people.topics))


def _seed(seed: int, trial: int, nodes: int, pattern: str) -> int:
    """Of one cell: cells share nothing."""
    sequence = np.random.SeedSequence([seed, trial, nodes, sorted(PATTERNS).index(pattern)])
    return int(sequence.generate_state(1, np.uint64)[0])


def _rows(tally: _Tally, pattern: str, nodes: int, trial: int) -> Iterator[Row]:
    publishers, subscribers = PATTERNS[pattern]
    for variant, sums in tally.of.items():
        path = sums.path / sums.publications
        yield {
            "pattern": pattern,
            "publishers": publishers,
            "subscribers": subscribers,
            "nodes": nodes,
            "trial": trial,
            "method": variant.method,
            "strategy": variant.strategy,
            "priority": variant.priority,
            "support": variant.support,
            "support_from": variant.support_from,
            "path": path,
            "forwards": sums.forwards / sums.publications,
            "starts": sums.starts / sums.publications,
            "delay_ms": hops_ms(path),
            "publications": sums.publications,
            "deliveries": sums.publications * subscribers,
        }
