"""ATM-TBPS and PATM-TBPS where topics of several priorities share a table: ours, not an experiment of Kita 2025.

In the thesis all topics of a run have one priority, and if each key has its own table nothing has to be shared. Here a
node that publishes several topics, one of them urgent, has one table for all of them (`TableOf.NODE`): ATM-TBPS treats
them alike, PATM-TBPS gives its room to the subscribers of the urgent one first.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.converged.distances import Strategy, distances, stretches
from testbed.converged.flood import Hops
from testbed.converged.graph import converge
from testbed.converged.heard import held_by_nodes
from testbed.converged.population import Population, station_population
from testbed.converged.tables import atm_paths

Row = dict[str, Any]
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
    people = station_population(subscribers, nodes, stations, topics_each, of_people)
    links = converge(people.owners, people.vectors)
    urgent = _one_of_each(people, np.random.default_rng(of_priorities))
    held = {
        method: held_by_nodes(people, links, table_size, np.random.default_rng(of_hearing), first)
        for method, first in ((ATM, np.zeros_like(urgent)), (PATM, urgent))
    }
    parts: dict[str, list[Hops]] = {method: [] for method in held}
    for topics in stretches(people):
        hops = distances(people, links, topics, {Strategy.SPLIT}).to_subscribers(Strategy.SPLIT)
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


def _one_of_each(people: Population, random: np.random.Generator) -> NDArray[np.bool_]:
    """The urgent topics: one, any, of each publisher."""
    publishers = people.owners[:: people.size]
    order = random.permutation(people.topics)
    _, first = np.unique(publishers[order], return_index=True)
    urgent = np.zeros(people.topics, dtype=bool)
    urgent[order[first]] = True
    return urgent
