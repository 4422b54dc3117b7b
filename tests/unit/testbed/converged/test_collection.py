"""Collection over trees: compared with a literal simulation, the paper's example, and invariants."""

from math import lcm
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodes.overlay.collection import rules
from support.overlays import literal_overlay
from testbed.converged.collection import (
    LONGEST_PERIOD,
    METHODS,
    TIMES,
    Lists,
    Traffic,
    chain_tree,
    hops_to_the_end,
    measure_collection,
    pull_tree,
    pulled,
    push_tree,
    pushed,
    server_tree,
)

Rows = dict[str, dict[str, Any]]
Vectors = NDArray[np.uint64]
vectors_of_all = st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=16, unique=True).map(
    lambda vectors: np.array(vectors, dtype=np.uint64)
)


def key(place: int) -> bytes:
    return place.to_bytes(2)


def links(vectors: list[int], ring: bool) -> dict[int, set[int]]:
    """Neighbours of each place in all lists; in rings also those across the end."""
    levels = literal_overlay.lists(range(len(vectors)), vectors)
    known = {place: literal_overlay.neighbours(levels, place) for place in range(len(vectors))}
    if ring:
        for level in range(len(levels)):
            for place, own in enumerate(vectors):
                alike = [
                    other
                    for other, vector in enumerate(vectors)
                    if literal_overlay.shared(own, vector) >= level
                ]
                if place == alike[0] != alike[-1]:
                    known[place].add(alike[-1])
                    known[alike[-1]].add(place)
    return known


def next_stops(rule: rules.Rule, known: dict[int, set[int]]) -> list[int]:
    """The next hop of each place, decided node by node with the rule of the nodes themselves."""
    goal = len(known) - 1
    stops = []
    for place in range(goal):
        stop = rule.next_stop(key(place), key(goal), map(key, known[place]))
        assert stop is not None
        stops.append(int.from_bytes(stop))
    return [*stops, goal]


@given(vectors_of_all, st.sampled_from(Lists))
def test_trees_equal_the_decisions_of_the_single_nodes(
    vectors: Vectors,
    lists: Lists,
) -> None:
    nodes = len(vectors)
    known = links(vectors.tolist(), ring=lists is not Lists.LINE)
    push = {
        Lists.LINE: rules.Rule(rules.Method.PUSH),
        Lists.RING: rules.Rule(rules.Method.PUSH, rules.Lists.RING),
        Lists.HALVES: rules.Rule(rules.Method.PUSH, rules.Lists.RING, key((nodes - 1) // 2)),
    }[lists]
    assert push_tree(vectors, lists).tolist() == next_stops(push, known)
    on_a_line = links(vectors.tolist(), ring=False)
    chain = rules.Rule(rules.Method.CHAIN)
    assert chain_tree(nodes).tolist() == next_stops(chain, on_a_line)
    server = rules.Rule(rules.Method.SERVER)
    assert server_tree(nodes).tolist() == next_stops(server, on_a_line)


@given(vectors_of_all)
def test_answers_return_along_the_path_of_the_question(
    vectors: Vectors,
) -> None:
    last = len(vectors) - 1
    levels = literal_overlay.lists(range(len(vectors)), vectors.tolist())
    ways = literal_overlay.split(levels, last, 0, last)
    tree = pull_tree(vectors)
    assert tree[:-1].tolist() == [ways[place][-2] for place in range(last)]
    assert hops_to_the_end(tree)[:-1].tolist() == [len(ways[place]) - 1 for place in range(last)]


def step_by_step(
    tree: list[int], periods: list[int], times: int, aggregate: bool
) -> tuple[list[list[int]], list[list[int]]]:
    """Received and sent, [node][time]: each message is a set of readings that is handed from node to node."""
    nodes = len(tree)
    received = [[0] * times for _ in tree]
    sent = [[0] * times for _ in tree]
    for time in range(times):
        held: list[list[set[int]]] = [[] for _ in tree]
        for node, period in enumerate(periods):
            if time % period == 0:
                held[node].append({node})
        arrived: set[int] = set()
        # No node sends before it has received all its messages of this unit of time.
        below = [tree.count(node) - (tree[node] == node) for node in range(nodes)]
        ready = [node for node in range(nodes - 1) if below[node] == 0]
        while ready:
            node = ready.pop()
            if aggregate and held[node]:
                held[node] = [set().union(*held[node])]
            for message in held[node]:
                sent[node][time] += 1
                received[tree[node]][time] += 1
                if tree[node] == nodes - 1:
                    arrived |= message
                else:
                    held[tree[node]].append(message)
            below[tree[node]] -= 1
            if below[tree[node]] == 0 and tree[node] != nodes - 1:
                ready.append(tree[node])
        assert arrived == {node for node, period in enumerate(periods) if time % period == 0}
    return received, sent


@given(vectors_of_all, st.sampled_from(Lists), st.booleans(), st.data())
def test_traffic_equals_that_of_a_literal_simulation(
    vectors: Vectors,
    lists: Lists,
    aggregate: bool,
    data: st.DataObject,
) -> None:
    nodes = len(vectors)
    periods = data.draw(st.lists(st.integers(1, 5), min_size=nodes - 1, max_size=nodes - 1))
    for tree in (server_tree(nodes), chain_tree(nodes), push_tree(vectors, lists)):
        found = pushed(tree, np.array(periods), 12, aggregate)
        received, sent = step_by_step(tree.tolist(), periods, 12, aggregate)
        assert found.received.tolist() == received
        assert found.sent.tolist() == sent


@given(vectors_of_all, st.integers(1, 4))
def test_a_pull_costs_two_messages_a_node(vectors: Vectors, every: int) -> None:
    traffic = pulled(pull_tree(vectors), every, 12)
    asked = len(range(0, 12, every))
    assert traffic.sent.sum() == traffic.received.sum() == 2 * (len(vectors) - 1) * asked


def test_the_example_of_the_paper_four_publishers_all_direct() -> None:
    traffic = pushed(server_tree(5), np.array([1, 2, 2, 3]), 6, aggregate=False)
    rates = traffic.load().mean(axis=1)
    assert rates.tolist() == pytest.approx([1, 1 / 2, 1 / 2, 1 / 3, 7 / 3])
    assert rates.sum() == pytest.approx(4.667, abs=0.0005)


def test_received_and_sent_may_weigh_differently() -> None:
    traffic = Traffic(received=np.array([[2]]), sent=np.array([[3]]))
    assert traffic.load(alpha=1.0, beta=0.5).tolist() == [[3.5]]


def test_the_schedule_repeats_after_all_simulated_times() -> None:
    assert lcm(*range(1, LONGEST_PERIOD + 1)) == TIMES


@pytest.fixture(scope="module", params=list(Lists))
def rows(request: pytest.FixtureRequest) -> Rows:
    found = measure_collection(60, seed=1, lists=request.param)
    assert [row["method"] for row in found] == list(METHODS)
    return {row["method"]: row for row in found}


def test_in_a_chain_no_node_receives_or_sends_more_than_one(
    rows: Rows,
) -> None:
    assert rows["chain"]["momentary"] == 2
    assert rows["chain"]["hops_max"] == 59


def test_a_server_gets_everything_at_once(rows: Rows) -> None:
    assert rows["server"]["momentary"] == 59
    assert rows["server"]["hops"] == rows["server"]["hops_max"] == 1


def test_aggregating_nodes_send_at_most_one_message(rows: Rows) -> None:
    for method, row in rows.items():
        if method.endswith("aggregated") or method == "chain":
            assert row["most_sent"] == 1
    assert rows["push-ascending"]["most_sent"] > 1


def test_aggregation_reduces_load_and_changes_no_path(rows: Rows) -> None:
    for order in ("push-ascending", "push-descending"):
        assert rows[f"{order}-aggregated"]["load"] < rows[order]["load"]
        assert rows[f"{order}-aggregated"]["hops"] == rows[order]["hops"]
        assert rows["server"]["load"] < rows[f"{order}-aggregated"]["load"]


def test_the_same_seed_gives_the_same_rows() -> None:
    assert measure_collection(20, seed=3) == measure_collection(20, seed=3)
    assert measure_collection(20, seed=3) != measure_collection(20, seed=4)


def test_one_node_alone_collects_nothing() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        measure_collection(1, seed=1)
