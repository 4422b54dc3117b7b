"""Load by node: what each sends, receives and forwards."""

import numpy as np
import pytest

from support.overlays.literal_overlay import lists, split
from testbed.converged import measure_load
from testbed.converged.load import publications_by_topic, scribe_load, sg_load
from testbed.converged.multicast import Strategy
from testbed.converged.population import population, random_vectors

TIMES = np.array([5, 2, 1])


def test_in_a_split_multicast_everyone_passes_on_to_its_children() -> None:
    participants = population(1, 20, 63, 4)
    load = sg_load(participants, TIMES, Strategy.SPLIT)
    for topic, vectors in enumerate(participants.peer_vectors.tolist()):
        ways = split(lists(range(21), vectors), 0, 0, 20)
        for peer in range(21):
            node = participants.owners[topic * 21 + peer]
            children = sum(len(way) > 1 and way[-2] == peer for way in ways.values())
            sends = load.forwarded[node] if peer else load.sent[node]
            assert sends == children * TIMES[topic]
            assert load.received[node] == (TIMES[topic] if peer else 0)
    assert load.sent.sum() + load.forwarded.sum() == load.received.sum() == 20 * TIMES.sum()


def test_by_scribe_anyone_may_have_to_forward() -> None:
    participants = population(1, 20, 63, 4)
    load = scribe_load(participants, TIMES, random_vectors(3, np.random.default_rng(1)))
    publishers = participants.owners[::21]
    assert load.sent[publishers].tolist() == TIMES.tolist()
    assert load.sent.sum() == TIMES.sum()
    assert load.received.sum() == 20 * TIMES.sum()
    assert load.forwarded.sum() >= 19 * TIMES.sum()  # the root may subscribe


def test_few_publish_often_and_most_seldom() -> None:
    published = publications_by_topic(100, 1_000, np.random.default_rng(2))
    assert published.sum() == 1_000
    assert published[0] == pytest.approx(2 * published[1], abs=2)
    assert published[0] > 10 * published[-1]


def test_only_in_a_topic_does_load_follow_interest() -> None:
    groups, totals = measure_load(1, topics=20, subscribers=200, publications=100)
    sg, scribe = totals
    assert (sg["method"], scribe["method"]) == ("sg-tbps", "scribe")
    assert sg["nodes"] == scribe["nodes"] == 20 * 201
    assert sg["correlation"] > 0.5
    assert abs(scribe["correlation"]) < 0.1
    assert sg["without_forwards"] > scribe["without_forwards"]
    for method in ("sg-tbps", "scribe"):
        of_method = [row for row in groups if row["method"] == method]
        assert [row["node_rank_group"] for row in of_method] == [0, 1, 2, 3, 4]
        forwarded = [row["forwarded"] for row in of_method]
        assert forwarded == sorted(forwarded, reverse=True)


def test_a_flood_makes_everyone_forward() -> None:
    _, (sg, _) = measure_load(1, topics=5, subscribers=50, publications=50, strategy="flood")
    assert sg["without_forwards"] == 5  # the publishers
