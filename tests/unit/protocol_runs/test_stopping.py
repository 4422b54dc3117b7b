"""Messages over time while subscribers come and go: SG-TBPS stops when nobody is there, and loses nothing."""

from typing import Any

import numpy as np
import pytest

from nodes.overlay.tbps.keys import topic_of
from testbed.converged import population
from testbed.protocol_runs import Stopping, measure_stopping
from testbed.protocol_runs.standing import StandingGraph, topic_name
from testbed.protocol_runs.topic_run import TopicRun

PLAN = Stopping(publishers=4, nodes=200, seed=3, subscribers=12)
SOON_MS = 200  # the last one's leave, and the word to all publishers
SMALL = {"publishers": 4, "nodes": 200, "seed": 3, "subscribers": 12}


@pytest.fixture(scope="module")
def measured() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return measure_stopping(**SMALL)


def counts(rows: list[dict[str, Any]], method: str, kind: str) -> dict[int, int]:
    return {
        row["t_ms"]: row["messages"]
        for row in rows
        if row["method"] == method and row["kind"] == kind
    }


def test_sg_tbps_falls_to_nothing_and_goes_on(measured: Any) -> None:
    sent = counts(measured[0], "sg-tbps", "publication")
    for begin, end in PLAN.empty_ms:
        quiet = [n for t, n in sent.items() if begin + SOON_MS <= t and t + PLAN.bin_ms <= end]
        assert len(quiet) > 10
        assert not any(quiet)
    first, again = sum(sent[t] for t in range(0, 1_000, 50)), PLAN.empty_ms[0][1] + PLAN.moving_ms
    steady = sum(sent[t] for t in sorted(sent) if again + 300 <= t < again + 900)
    assert first > 0
    assert steady >= 3 * PLAN.publishers * PLAN.subscribers  # three publications each


def test_scribe_sends_to_the_root_always(measured: Any) -> None:
    sent = counts(measured[0], "scribe", "publication")
    for begin, end in PLAN.empty_ms:
        publications = [t for t, _ in PLAN.publications() if begin + SOON_MS <= t / 1000 < end]
        root_only = sum(n for t, n in sent.items() if begin + SOON_MS <= t < end)
        assert root_only == pytest.approx(len(publications), abs=PLAN.publishers)
        assert root_only > 0


def test_nothing_is_lost_and_stopped_publishers_withhold(measured: Any) -> None:
    own = next(row for row in measured[1] if row["method"] == "sg-tbps")
    assert own["publications"] == len(PLAN.publications())
    assert own["withheld"] > 0
    assert own["owed"] > 20
    assert own["lost"] == 0


def test_the_same_seed_gives_the_same_rows(measured: Any) -> None:
    assert measure_stopping(**SMALL) == measured
    other = measure_stopping(**{**SMALL, "seed": 4})
    assert other != measured


def test_stop_and_go_are_few_words(measured: Any) -> None:
    words = counts(measured[0], "sg-tbps", "word")
    assert 0 < sum(words.values()) < 60
    assert not any(words[t] for t in range(0, 1_000, 50))


def test_only_nodes_that_a_message_reached_exist() -> None:
    plan = Stopping(publishers=2, nodes=2_000, seed=3, subscribers=5)
    run = TopicRun("sg-tbps", plan, {})
    run.run()
    assert 7 < len(run.network.nodes) < 1_000


def test_nodes_that_stand_have_the_neighbours_of_the_converged_graph() -> None:
    people = population(3, 7, 100, seed=1)
    graph = StandingGraph(people, absent=4)
    places = {node: graph.place(node) for node in range(100)}
    assert {node for node, place in places.items() if place is None} == set(graph.members)
    keys = sorted(place.key for place in places.values() if place is not None)
    assert topic_name(4) not in map(topic_of, keys)
    for node, place in places.items():
        if place is None:
            continue
        at = keys.index(place.key)
        assert (place.left.key, place.right.key) == (keys[at - 1], keys[(at + 1) % len(keys)])
        for level, sides in enumerate(place.levels, start=1):
            for near in filter(None, sides):
                shared = int(people.vectors[node]) ^ near.vector
                assert shared >> (64 - level) == 0
                assert places[near.node] is not None


def test_one_topic_must_not_be_all(measured: Any) -> None:
    with pytest.raises(ValueError, match="give at least 32"):
        TopicRun("sg-tbps", Stopping(publishers=4, nodes=20, seed=1, subscribers=12), {})


def test_all_come_leave_come_back_and_leave() -> None:
    there = np.ones(PLAN.subscribers, dtype=bool)
    for moment, subscriber, comes in PLAN.moves():
        assert there[subscriber] != comes
        there[subscriber] = comes
        assert moment < PLAN.end_ms
    assert not there.any()
