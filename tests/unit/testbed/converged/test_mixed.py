"""Topics of several priorities in one table: what urgent ones gain by PATM-TBPS, routine ones of the same node lose."""

import numpy as np
import pytest

from testbed.converged import converge, measure_mixed
from testbed.converged.population import Population, station_population
from testbed.converged.routing_tables import held_by_nodes

SUBSCRIBERS = 20


@pytest.fixture
def participants() -> Population:
    return station_population(SUBSCRIBERS, 400, stations=12, topics_each=4, seed=3)


def test_stations_publish_as_many_topics_as_asked_and_subscribe_to_none_of_them(
    participants: Population,
) -> None:
    members = participants.owners.reshape(participants.topics, participants.size)
    publishers, counts = np.unique(members[:, 0], return_counts=True)
    assert (len(publishers), set(counts.tolist())) == (12, {4})
    for publisher, *subscribers in members.tolist():
        assert publisher not in subscribers
        assert subscribers == sorted(set(subscribers))


@pytest.mark.parametrize("urgent_topic", [0, 1, 2, 3])
def test_a_node_gives_table_entries_to_its_urgent_topic_only(
    participants: Population, urgent_topic: int
) -> None:
    links = converge(participants.owners, participants.vectors)
    station = participants.owners[0]
    own = np.flatnonzero(participants.owners[:: participants.size] == station)
    urgent = np.zeros(participants.topics, dtype=bool)
    urgent[own[urgent_topic]] = True
    plain, patm = (
        held_by_nodes(participants, links, 60, np.random.default_rng(1), mask)
        for mask in (np.zeros_like(urgent), urgent)
    )
    others = np.setdiff1d(np.arange(participants.topics), own)
    np.testing.assert_array_equal(plain[others], patm[others])  # tables of other nodes
    assert patm[own[urgent_topic]].sum() >= plain[own[urgent_topic]].sum()
    assert patm[own].sum() <= plain[own].sum() + SUBSCRIBERS


@pytest.mark.parametrize("seed", range(3))
def test_urgent_topics_come_nearer_and_routine_ones_farther(seed: int) -> None:
    rows = measure_mixed(SUBSCRIBERS, 1_000, seed, stations=40)
    found = {(row["method"], row["priority"]): row for row in rows}
    assert len(rows) == len(found) == 4
    assert found["patm-tbps", 5]["path"] < found["atm-tbps", 5]["path"]
    assert found["patm-tbps", 5]["one_hop"] > found["atm-tbps", 5]["one_hop"]
    assert found["patm-tbps", 1]["path"] > found["atm-tbps", 1]["path"]


def test_with_a_table_for_all_subscribers_priorities_change_nothing() -> None:
    for row in measure_mixed(SUBSCRIBERS, 1_000, seed=1, stations=40, table_size=500):
        assert (row["path"], row["one_hop"]) == (1, 1)


def test_the_same_seed_gives_the_same_rows() -> None:
    once, again, other = (measure_mixed(10, 300, seed, stations=10) for seed in (1, 1, 2))
    assert once == again
    assert once != other
