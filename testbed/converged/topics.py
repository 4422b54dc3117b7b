"""Path lengths and messages of topics of one size (Banno 2013, experiment 1; Kita 2025, experiment 1)."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.converged.fan import fan_helpers, fan_parts, fan_paths
from testbed.converged.graph import converge
from testbed.converged.multicast import Distances, Strategy, distances, hops_ms, stretches
from testbed.converged.population import PATTERNS, Population, population, random_vectors
from testbed.converged.psg import Publications, Support, SupportFrom, start_nodes
from testbed.converged.scribe import scribe_trees

Row = dict[str, Any]
METHODS = ("sg-tbps", "psg-tbps", "scribe", "fan-tbps")
PRIORITIES = (1, 2, 3, 4, 5)
_PSG_STRATEGIES = (Strategy.FLOOD, Strategy.SEARCH)  # how the thesis' text can be read


@dataclass(frozen=True, slots=True)
class Variant:
    """A method with all its choices; the fields are columns of the rows."""

    method: str
    strategy: str = ""
    priority: int = 1
    support: str = ""
    support_from: str = ""


@dataclass(frozen=True, slots=True)
class Sums:
    """Of publications, summed up."""

    publications: int
    path: float  # of a publication: the mean over its subscribers
    forwards: float
    starts: float

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.publications + other.publications,
            self.path + other.path,
            self.forwards + other.forwards,
            self.starts + other.starts,
        )


def measure_topics(
    pattern: str,
    nodes: int,
    seed: int,
    trial: int = 0,
    methods: Sequence[str] = METHODS,
    priorities: Sequence[int] = PRIORITIES,
) -> list[Row]:
    """One trial: `nodes` nodes in topics of the pattern's size, one publication of each publisher by each method.

    One row for each variant of each method, with these columns. What chooses it: `pattern`, `publishers`,
    `subscribers`, `nodes`, `trial`, `method`, `strategy` (flood, search, split; '' for Scribe), `priority` (1 for
    methods that know none), `support` and `support_from` ('' but for PSG-TBPS). What was measured: `path` (mean over
    publishers of the mean over subscribers of the hops until the first arrival), `forwards` (messages of a
    publication, duplicates too), `starts` (nodes that the multicast starts from: with PSG-TBPS the publisher and the
    support nodes, with FAN-TBPS the helpers), `delay_ms` (estimated from the path as the thesis does), `publications`,
    `deliveries`. The same arguments give the same rows; all rows of one trial are about the same topics.
    """
    publishers, subscribers = PATTERNS[pattern]
    random = np.random.SeedSequence([seed, trial, nodes, sorted(PATTERNS).index(pattern)])
    of_people, of_hashes = random.generate_state(2, np.uint64)
    participants = population(publishers, subscribers, nodes, int(of_people))
    sums: dict[Variant, Sums] = {}
    for variant, measured in _measured(participants, methods, priorities, int(of_hashes)):
        sums[variant] = sums[variant] + measured if variant in sums else measured
    return [
        {
            "pattern": pattern,
            "publishers": publishers,
            "subscribers": subscribers,
            "nodes": nodes,
            "trial": trial,
            **asdict(variant),
            "path": total.path / total.publications,
            "forwards": total.forwards / total.publications,
            "starts": total.starts / total.publications,
            "delay_ms": hops_ms(total.path / total.publications),
            "publications": total.publications,
            "deliveries": total.publications * subscribers,
        }
        for variant, total in sums.items()
    ]


def _measured(
    participants: Population, methods: Sequence[str], priorities: Sequence[int], seed: int
) -> Iterator[tuple[Variant, Sums]]:
    """By each variant, a few topics at a time."""
    if "scribe" in methods:
        yield Variant("scribe"), _scribe(participants, seed)
    strategies: set[Strategy] = set()
    strategies |= set(Strategy) if "sg-tbps" in methods else set()
    strategies |= set(_PSG_STRATEGIES) if "psg-tbps" in methods else set()
    strategies |= {Strategy.SPLIT} if "fan-tbps" in methods else set()
    if not strategies:
        return
    links = converge(participants.owners, participants.vectors)
    for topics in stretches(participants):
        known = distances(participants, links, topics, strategies)
        if "sg-tbps" in methods:
            yield from _sg(known)
        if "psg-tbps" in methods:
            yield from _psg(known, priorities)
        if "fan-tbps" in methods:
            yield from _fan(known, priorities)


def _sg(known: Distances) -> Iterator[tuple[Variant, Sums]]:
    one = np.ones(1)
    for strategy in known.hops:
        paths = known.to_subscribers(strategy)[:, : known.publishers]
        sent = known.messages[strategy][:, : known.publishers]
        yield Variant("sg-tbps", strategy.value), _summed(paths, sent, one)


def _psg(known: Distances, priorities: Sequence[int]) -> Iterator[tuple[Variant, Sums]]:
    for priority in priorities:
        for origin in SupportFrom:
            among = known.size if origin is SupportFrom.PARTICIPANTS else known.publishers
            for support in Support:
                starts = start_nodes(known.vectors, known.publishers, priority, support, among)
                publications = Publications(starts, known.size)
                for strategy in _PSG_STRATEGIES:
                    paths = publications.paths(known.to_subscribers(strategy))
                    sent = publications.messages(known.messages[strategy])
                    choice = strategy.value, priority, support.value, origin.value
                    yield Variant("psg-tbps", *choice), _summed(paths, sent, publications.starts)


def _fan(known: Distances, priorities: Sequence[int]) -> Iterator[tuple[Variant, Sums]]:
    rightward = known.hops[Strategy.SPLIT]
    for priority in priorities:
        part = fan_parts(known.size, known.subscribers, priority)
        helpers = fan_helpers(known.neighbours, known.publishers, part)
        paths = fan_paths(known.neighbours, rightward, known.publishers, helpers, part)
        every = np.broadcast_to(paths[:, None], (len(paths), known.publishers, known.subscribers))
        variant = Variant("fan-tbps", Strategy.SPLIT.value, priority)
        yield variant, _summed(every, np.array([known.subscribers]), np.array([helpers.shape[1]]))


def _scribe(participants: Population, seed: int) -> Sums:
    hashes = random_vectors(participants.topics, np.random.default_rng(seed))
    members = participants.owners.astype(np.int64).reshape(participants.topics, participants.size)
    trees = scribe_trees(participants.vectors, hashes, members[:, participants.publishers :])
    to_root = (members[:, : participants.publishers] != trees.roots[:, None]).astype(np.int64)
    links = np.bincount(trees.topic, minlength=participants.topics)
    paths = to_root[:, :, None] + trees.depths[:, None]
    return _summed(paths, to_root + links[:, None], np.ones(1))


def _summed(paths: NDArray[Any], forwards: NDArray[Any], starts: NDArray[Any]) -> Sums:
    """Of `paths[topic, publisher, subscriber]`; the others broadcast to `[topic, publisher]`."""
    publications = paths.shape[:2]
    return Sums(
        publications[0] * publications[1],
        float(paths.mean(axis=-1).sum()),
        float(np.broadcast_to(forwards, publications).sum()),
        float(np.broadcast_to(starts, publications).sum()),
    )
