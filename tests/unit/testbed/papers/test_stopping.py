"""Messages over time while subscribers come and go: SG-TBPS stops without subscribers, Scribe does not, and neither
loses a message.
"""

from typing import Any, cast

import numpy as np
import pytest

from nodes.overlay.topics.keys import topic_of
from nodes.overlay.topics.scribe.node import Scribe
from nodes.overlay.topics.scribe.routing import node_key, topic_hash
from testbed.converged import Population, population
from testbed.converged.scribe import ScribeTrees, scribe_trees
from testbed.papers.stopping import (
    ConvergedGraph,
    Stopping,
    TopicRun,
    all_nodes,
    all_topics_but,
    measure_stopping,
    topic_name,
)

PLAN = Stopping(publishers=4, nodes=200, seed=3, subscribers=12)
SOON_MS = 200  # the last subscriber leaves, and all publishers are notified
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


def test_sg_tbps_stops_without_subscribers_and_resumes_with_them(measured: Any) -> None:
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


@pytest.mark.parametrize("method", ["sg-tbps", "scribe"])
def test_nothing_is_lost_and_only_stopped_publishers_withhold(measured: Any, method: str) -> None:
    own = next(row for row in measured[1] if row["method"] == method)
    assert own["publications"] == len(PLAN.publications())
    assert (own["withheld"] > 0) == (method == "sg-tbps")
    assert own["expected"] > 20
    assert own["lost"] == 0


def test_the_same_seed_gives_the_same_rows(measured: Any) -> None:
    assert measure_stopping(**SMALL) == measured
    other = measure_stopping(**{**SMALL, "seed": 4})
    assert other != measured


def test_stop_and_go_need_few_control_messages(measured: Any) -> None:
    control = counts(measured[0], "sg-tbps", "topic control")
    assert 0 < sum(control.values()) < 60
    assert not any(control[t] for t in range(0, 1_000, 50))


def the_topic(plan: Stopping) -> tuple[Population, str, ScribeTrees]:
    """The population of a plan, its topic, and the tree that all subscribers' joins make of it, by sorting."""
    seed = plan.random("people").getrandbits(32)
    participants = population(plan.publishers, plan.subscribers, plan.nodes, seed)
    topic = participants.topics // 2
    members = participants.owners[participants.size * topic :][: participants.size]
    hashes = np.array([topic_hash(topic_name(topic))], dtype=np.uint64)
    joining = members[np.newaxis, plan.publishers :].astype(np.int64)
    return participants, topic_name(topic), scribe_trees(participants.vectors, hashes, joining)


@pytest.mark.parametrize("seed", range(6))
def test_scribe_has_the_tree_of_the_converged_overlay_and_sends_along_its_links(seed: int) -> None:
    plan = Stopping(publishers=3, nodes=300, seed=seed, subscribers=10)
    participants, topic, trees = the_topic(plan)
    run = TopicRun("scribe", plan)
    found = run.run()
    expected = set(zip(trees.child.tolist(), trees.parent.tolist(), strict=True))
    publishers = participants.owners[participants.size * (participants.topics // 2) :][
        : plan.publishers
    ]
    to_root = sum(publisher != trees.roots[0] for publisher in publishers.tolist())
    steady = range(300 // plan.bin_ms, 900 // plan.bin_ms)  # three publications of each publisher
    sent = sum(found.messages[place, "publication"] for place in steady)
    assert sent == 3 * (plan.publishers * len(expected) + to_root)
    left = [node for node in run.network.nodes.values() if cast(Scribe, node).tree.get(topic)]
    assert not left  # all subscribers have left, and the tree is gone


def test_scribe_sends_control_messages_when_subscribers_join_or_leave(measured: Any) -> None:
    control = counts(measured[0], "scribe", "topic control")
    leaving, coming = PLAN.rest_ms, PLAN.empty_ms[0][1]
    for begin in (leaving, coming):
        moving = [control[t] for t in control if begin <= t < begin + PLAN.moving_ms]
        assert sum(moving) >= PLAN.subscribers
    assert not any(counts(measured[0], "scribe", "control").values())  # no key joins or leaves


@pytest.mark.parametrize("method", ["sg-tbps", "scribe"])
def test_only_nodes_that_a_message_reached_exist(method: str) -> None:
    plan = Stopping(publishers=2, nodes=2_000, seed=3, subscribers=5)
    run = TopicRun(method, plan)
    run.run()
    assert 7 < len(run.network.nodes) < 1_000


def assert_neighbours_as_sorting_gives(graph: ConvergedGraph, participants: Population) -> None:
    places = {
        node: place
        for node in range(len(participants.vectors))
        if (place := graph.place(node)) is not None
    }
    assert set(graph.nodes) == set(places)
    keys = sorted(place.key for place in places.values())
    for node, place in places.items():
        at = keys.index(place.key)
        assert (place.left.key, place.right.key) == (keys[at - 1], keys[(at + 1) % len(keys)])
        for level, sides in enumerate(place.levels, start=1):
            for near in filter(None, sides):
                shared = int(participants.vectors[node]) ^ near.vector
                assert shared >> (64 - level) == 0
                assert near.node in places


def test_the_graph_holds_all_topics_but_one() -> None:
    participants = population(3, 7, 100, seed=1)
    graph = all_topics_but(4, participants)
    assert_neighbours_as_sorting_gives(graph, participants)
    members = participants.owners[40:50].tolist()
    assert set(range(100)) - set(graph.nodes) == set(members)
    keys = [place.key for node in graph.nodes if (place := graph.place(node)) is not None]
    assert topic_name(4) not in map(topic_of, keys)


def test_the_graph_holds_all_nodes_by_number_also_those_without_a_topic() -> None:
    participants = population(3, 7, 105, seed=1)
    graph = all_nodes(participants)
    assert_neighbours_as_sorting_gives(graph, participants)
    assert graph.nodes == list(range(105))
    place = graph.place(7)
    assert place is not None
    assert place.key == node_key(7)


def test_a_topic_that_takes_all_nodes_is_refused(measured: Any) -> None:
    with pytest.raises(ValueError, match="give at least 32"):
        TopicRun("sg-tbps", Stopping(publishers=4, nodes=20, seed=1, subscribers=12))


def test_subscribers_alternate_between_leaving_and_joining_until_all_have_left() -> None:
    there = np.ones(PLAN.subscribers, dtype=bool)
    for moment, subscriber, comes in PLAN.moves():
        assert there[subscriber] != comes
        there[subscriber] = comes
        assert moment < PLAN.end_ms
    assert not there.any()
