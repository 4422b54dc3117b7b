"""ATM- and PATM-TBPS: one hop while the table holds all subscribers, several beyond."""

import numpy as np
import pytest

from support.overlays.literal_overlay import lists, neighbours
from testbed.converged import converge, measure_tables
from testbed.converged.atm import atm_paths
from testbed.converged.population import Population, shared_population
from testbed.converged.routing_tables import TableOf, held_by_keys, held_by_nodes


def rows(**arguments: object) -> dict[tuple[str, int], dict[str, float]]:
    """By method and priority."""
    found = measure_tables(nodes=300, seed=3, **arguments)  # type: ignore[arg-type]
    return {(row["method"], row["priority"]): row for row in found}


def test_few_subscribers_are_all_one_hop_away() -> None:
    found = rows(subscribers=10)
    for method, priority in [("atm-tbps", 1), ("patm-tbps", 1), ("patm-tbps", 5)]:
        row = found[method, priority]
        assert (row["path"], row["forwards"], row["one_hop"]) == (1, 10, 1)
        assert row["delay_ms"] == pytest.approx(11 + 0.1 * 10)


def test_many_subscribers_are_reached_by_way_of_others_once_each() -> None:
    found = rows(subscribers=100)
    assert 40 <= 100 * found["atm-tbps", 1]["one_hop"] < 60
    assert 1 < found["atm-tbps", 1]["path"] < found["sg-tbps", 1]["path"]
    assert found["atm-tbps", 1]["forwards"] == found["patm-tbps", 5]["forwards"] == 100


def test_priority_one_of_psg_is_sg() -> None:
    found = rows(subscribers=40)
    same = ("path", "forwards", "one_hop", "delay_ms")
    assert [found["psg-tbps", 1][key] for key in same] == [found["sg-tbps", 1][key] for key in same]
    assert found["psg-tbps", 5]["path"] < found["sg-tbps", 1]["path"]


def test_beyond_the_table_psg_can_serve_instead() -> None:
    by_psg = rows(subscribers=100, beyond="psg")
    assert by_psg["patm-tbps", 5]["path"] < by_psg["psg-tbps", 5]["path"]
    held = round(100 * rows(subscribers=100)["atm-tbps", 1]["one_hop"])
    assert by_psg["patm-tbps", 5]["forwards"] == pytest.approx(
        by_psg["psg-tbps", 5]["forwards"] + held, abs=1
    )


def test_a_table_for_all_keys_of_a_node_holds_fewer_subscribers() -> None:
    by_node = rows(subscribers=20, table_of="node")
    assert by_node["atm-tbps", 1]["one_hop"] < rows(subscribers=20)["atm-tbps", 1]["one_hop"]


@pytest.mark.parametrize("table_of", TableOf)
def test_neighbours_are_held_whatever_the_size(table_of: TableOf) -> None:
    participants = shared_population(12, 40, 2.0, 5)
    links = converge(participants.owners, participants.vectors)
    held = held_in(participants, links, table_of, 1)
    levels = lists(participants.owners.tolist(), participants.vectors.tolist())
    for topic in range(participants.topics):
        publisher = topic * participants.size
        near = neighbours(levels, publisher)
        for number in range(participants.subscribers):
            if publisher + 1 + number in near:
                assert held[topic, number]
    assert held_in(participants, links, table_of, 500).all()


def held_in(
    participants: Population,
    links: tuple[np.ndarray, np.ndarray],
    table_of: TableOf,
    size: int,
) -> np.ndarray:
    """What the tables hold."""
    random = np.random.default_rng(1)
    if table_of is TableOf.KEY:
        return held_by_keys(participants, links, size, random)
    return held_by_nodes(
        participants, links, size, random, np.ones(participants.topics, dtype=bool)
    )


def test_an_urgent_topic_takes_the_place_of_others() -> None:
    """By PATM-TBPS a node's table serves the topics it publishes, by ATM-TBPS those it subscribes to as well."""
    participants = shared_population(12, 40, 6.0, 5)
    links = converge(participants.owners, participants.vectors)
    by = {
        urgent: held_by_nodes(
            participants, links, 30, np.random.default_rng(1), np.full(participants.topics, urgent)
        ).sum()
        for urgent in (False, True)
    }
    assert by[True] > by[False]


def test_a_table_entry_serves_the_subscribers_up_to_the_next_entry() -> None:
    hops = np.abs(np.arange(6)[:, None] - np.arange(6)).astype(np.uint8)[None]
    held = np.array([[True, False, False, True, True, False]])
    assert atm_paths(hops, held).tolist() == [[1, 2, 3, 1, 1, 2]]
