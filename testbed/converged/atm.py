"""ATM-TBPS and PATM-TBPS beside SG- and PSG-TBPS (Kita 2025, experiment 2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import Links, converge
from testbed.converged.multicast import (
    Distances,
    Hops,
    Strategy,
    distances,
    hops_ms,
    one_hop_ms,
    stretches,
)
from testbed.converged.population import Population, shared_population, station_population
from testbed.converged.psg import Publications, Support, start_nodes
from testbed.converged.routing_tables import TableOf, held_by_keys, held_by_nodes

Row = dict[str, Any]
HIGH_PRIORITY = 4  # from here on (Kita 2025, 5.4)
_Held = NDArray[np.bool_]  # [topic, subscriber]


class Beyond(StrEnum):
    """How PATM-TBPS reaches the subscribers that the publisher's table does not hold."""

    TABLES = "tables"  # as ATM-TBPS: those it holds pass it on
    PSG = "psg"  # PSG-TBPS runs beside


@dataclass(frozen=True, slots=True)
class _Published:
    """One publication of each of a few topics."""

    method: str
    priority: int
    paths: Hops  # [topic, subscriber]
    forwards: NDArray[np.int64]  # [topic]
    delay_ms: NDArray[np.float64]  # [topic]


def measure_tables(
    subscribers: int,
    nodes: int,
    seed: int,
    trial: int = 0,
    table_size: int = 60,
    topics_per_node: float = 5.0,
    priorities: Sequence[int] = (1, 5),
    strategy: str = Strategy.SEARCH,
    beyond: str = Beyond.TABLES,
    table_of: str = TableOf.KEY,
) -> list[Row]:
    """One trial: `nodes` nodes, each in `topics_per_node` topics on average, each topic of one publisher.

    One row for each method and priority: `subscribers`, `nodes`, `trial`, `method` (atm-tbps, patm-tbps, psg-tbps,
    sg-tbps; atm-tbps and sg-tbps know no priority: 1), `priority`, `table_size`, `path`, `forwards` (messages of a
    publication, duplicates too), `one_hop` (share of the deliveries that took one hop), `delay_ms` (as the thesis
    estimates it). `strategy` is that of SG- and PSG-TBPS; support nodes are all participants, since a topic's only
    publisher would have no support node. `table_of` and `beyond` choose where the thesis leaves it open: whose table it
    is that has `table_size` entries, and how PATM-TBPS goes on where a table ends. The defaults fit what it reports:
    one hop up to about 50 subscribers, PATM-TBPS and ATM-TBPS about equal in path, and far fewer messages than
    PSG-TBPS.
    """
    random = np.random.SeedSequence([seed, trial, nodes, subscribers])
    of_people, of_hearing = (int(state) for state in random.generate_state(2, np.uint64))
    participants = shared_population(subscribers, nodes, topics_per_node, of_people)
    links = converge(participants.owners, participants.vectors)
    held = _held(participants, links, table_size, TableOf(table_of), of_hearing)
    parts: dict[tuple[str, int], list[_Published]] = {}
    for topics in stretches(participants):
        known = distances(participants, links, topics, {Strategy(strategy), Strategy.SPLIT})
        here = {urgent: tables[topics] for urgent, tables in held.items()}
        for part in _published(known, here, Strategy(strategy), priorities, Beyond(beyond)):
            parts.setdefault((part.method, part.priority), []).append(part)
    return [
        {
            "subscribers": subscribers,
            "nodes": nodes,
            "trial": trial,
            "method": method,
            "priority": priority,
            "table_size": table_size,
            "path": float(np.concatenate([part.paths for part in of]).mean()),
            "forwards": float(np.concatenate([part.forwards for part in of]).mean()),
            "one_hop": float((np.concatenate([part.paths for part in of]) == 1).mean()),
            "delay_ms": float(np.concatenate([part.delay_ms for part in of]).mean()),
        }
        for (method, priority), of in parts.items()
    ]


def _held(
    participants: Population, links: tuple[Links, Links], size: int, table_of: TableOf, seed: int
) -> dict[bool, _Held]:
    """What the tables hold, by ATM-TBPS (false) and by PATM-TBPS if the topics are of high priority (true)."""
    if table_of is TableOf.KEY:
        held = held_by_keys(participants, links, size, np.random.default_rng(seed))
        return {False: held, True: held}
    return {
        urgent: held_by_nodes(
            participants,
            links,
            size,
            np.random.default_rng(seed),
            np.full(participants.topics, urgent),
        )
        for urgent in (False, True)
    }


def _published(
    known: Distances,
    held: dict[bool, _Held],
    strategy: Strategy,
    priorities: Sequence[int],
    beyond: Beyond,
) -> Iterator[_Published]:
    """One publication of each topic by each method."""
    alone = known.to_subscribers(strategy)[:, 0]
    yield _Published("sg-tbps", 1, alone, known.messages[strategy][:, 0], _multihop_ms(alone))
    yield _by_table("atm-tbps", 1, known, held[False])
    for priority in priorities:
        starts = start_nodes(known.vectors, 1, priority, Support.NEXT, known.size)
        publications = Publications(starts, known.size)
        paths = publications.paths(known.to_subscribers(strategy))[:, 0]
        sent = publications.messages(known.messages[strategy])[:, 0]
        yield _Published("psg-tbps", priority, paths, sent, _multihop_ms(paths))
        table = held[priority >= HIGH_PRIORITY]
        if beyond is Beyond.TABLES:
            yield _by_table("patm-tbps", priority, known, table)
        else:
            paths = np.where(table, np.uint8(1), paths)
            sent = table.sum(axis=1) + np.where(table.all(axis=1), 0, sent)
            yield _Published("patm-tbps", priority, paths, sent, _table_ms(paths, table))


def _by_table(method: str, priority: int, known: Distances, held: _Held) -> _Published:
    """Every subscriber gets one message: from the publisher, or by way of those that it holds."""
    paths = atm_paths(known.to_subscribers(Strategy.SPLIT)[:, 1:], held)
    sent = np.full(len(held), known.subscribers)
    return _Published(method, priority, paths, sent, _table_ms(paths, held))


def atm_paths(hops: Hops, held: _Held) -> Hops:
    """Hops to each subscriber, `paths[topic, subscriber]`, by a table that holds some of them.

    The publisher sends to those it holds, each of which takes the stretch up to the next and splits it among its
    neighbours in the Skip Graph: `hops[topic, from, to]`. The first subscriber is the publisher's neighbour, so it is
    always held.
    """
    number = np.arange(held.shape[1])
    through = np.maximum.accumulate(np.where(held, number, 0), axis=1)
    paths: Hops = hops[np.arange(len(held))[:, None], through, number] + np.uint8(1)
    return paths


def _multihop_ms(paths: Hops) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = paths.mean(axis=1)
    return hops_ms(mean)


def _table_ms(paths: Hops, held: _Held) -> NDArray[np.float64]:
    """The first hop to as many as the table holds, the others as usual."""
    receivers: NDArray[np.float64] = held.sum(axis=1, dtype=np.float64)
    onward: NDArray[np.float64] = paths.mean(axis=1) - 1
    return one_hop_ms(receivers) + hops_ms(onward)


# ATM-TBPS and PATM-TBPS where topics of several priorities share a table: ours, not an experiment of Kita 2025.
#
# In the thesis all topics of a run have one priority, and if each key has its own table nothing has to be shared. Here
# a node that publishes several topics, one of them urgent, has one table for all of them (`TableOf.NODE`): ATM-TBPS
# treats them alike, PATM-TBPS gives its entries to the subscribers of the urgent one first.


ATM, PATM = "atm-tbps", "patm-tbps"
URGENT, ROUTINE = 5, 1


def measure_mixed(
    subscribers: int,
    nodes: int,
    seed: int,
    trial: int = 0,
    table_size: int = 60,
    stations: int = 100,
    topics_each: int = 4,
) -> list[Row]:
    """One trial: `stations` nodes publish `topics_each` topics each, the first of them (by chance) of priority 5.

    One row for each method and priority: `subscribers`, `nodes`, `trial`, `method` (atm-tbps, patm-tbps), `priority`
    (of the topics: 5 or 1), `table_size`, `topics_each`, `path`, `one_hop` (share of the deliveries). Both methods
    send one message to each subscriber.
    """
    random = np.random.SeedSequence([seed, trial, nodes, subscribers, topics_each])
    of_people, of_priorities, of_hearing = (
        int(state) for state in random.generate_state(3, np.uint64)
    )
    participants = station_population(subscribers, nodes, stations, topics_each, of_people)
    links = converge(participants.owners, participants.vectors)
    urgent = _one_of_each(participants, np.random.default_rng(of_priorities))
    held = {
        method: held_by_nodes(
            participants, links, table_size, np.random.default_rng(of_hearing), first
        )
        for method, first in ((ATM, np.zeros_like(urgent)), (PATM, urgent))
    }
    parts: dict[str, list[Hops]] = {method: [] for method in held}
    for topics in stretches(participants):
        hops = distances(participants, links, topics, {Strategy.SPLIT}).to_subscribers(
            Strategy.SPLIT
        )
        for method, of in held.items():
            parts[method].append(atm_paths(hops[:, 1:], of[topics]))
    return [
        {
            "subscribers": subscribers,
            "nodes": nodes,
            "trial": trial,
            "method": method,
            "priority": priority,
            "table_size": table_size,
            "topics_each": topics_each,
            "path": float(paths[chosen].mean()),
            "one_hop": float((paths[chosen] == 1).mean()),
        }
        for method, paths in ((method, np.concatenate(of)) for method, of in parts.items())
        for priority, chosen in ((URGENT, urgent), (ROUTINE, ~urgent))
    ]


def _one_of_each(participants: Population, random: np.random.Generator) -> NDArray[np.bool_]:
    """The urgent topics: one, any, of each publisher."""
    publishers = participants.owners[:: participants.size]
    order = random.permutation(participants.topics)
    _, first = np.unique(publishers[order], return_index=True)
    urgent = np.zeros(participants.topics, dtype=bool)
    urgent[order[first]] = True
    return urgent
