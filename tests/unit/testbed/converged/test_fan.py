"""FAN-TBPS: each subscriber is in one part, each part has a helper, and the paths are PSG-TBPS' for few messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.overlays.literal_overlay import lists, neighbours, shared, split
from testbed.converged import measure_topics
from testbed.converged.fan import fan_helpers, fan_parts, fan_paths
from testbed.converged.graph import converge
from testbed.converged.multicast import Strategy, distances
from testbed.converged.population import population
from testbed.converged.psg import space_bits, start_count


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 5))
def test_parts_are_stretches_of_about_one_size(
    publishers: int, subscribers: int, priority: int
) -> None:
    size = publishers + subscribers
    part = fan_parts(size, subscribers, priority)
    members = np.bincount(part)
    assert (np.diff(part) >= 0).all()
    assert len(members) == min(subscribers, start_count(space_bits(size), priority))
    assert members.max() - members.min() <= 1


@given(
    st.integers(1, 6),
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 9999),
)
def test_helpers_serve_their_parts_as_the_rule_says(
    publishers: int, subscribers: int, topics: int, priority: int, seed: int
) -> None:
    size = publishers + subscribers
    participants = population(publishers, subscribers, topics * size, seed)
    links = converge(participants.owners, participants.vectors)
    known = distances(participants, links, slice(0, topics), {Strategy.SPLIT})
    part = fan_parts(size, subscribers, priority)
    helpers = fan_helpers(known.neighbours, publishers, part)
    rightward = known.hops[Strategy.SPLIT]
    paths = fan_paths(known.neighbours, rightward, publishers, helpers, part)
    for topic in range(topics):
        vectors = participants.peer_vectors[topic, publishers:].tolist()
        levels = lists(range(subscribers), vectors)
        for number, helper in enumerate(helpers[topic].tolist()):
            low, high = (int(edge) for edge in np.flatnonzero(part == number)[[0, -1]])
            members = range(low, high + 1)
            best = min(
                members,
                key=lambda one: (
                    -sum(adjacent(vectors, one, other) for other in members),
                    abs(2 * one - low - high),
                    one,
                ),
            )
            assert helper == best
            ways = split(levels, helper, low, high)
            assert sorted(ways) == list(members)
            assert [len(ways[member]) for member in members] == paths[
                topic, low : high + 1
            ].tolist()
        for one in range(subscribers):
            near = {other for other in range(subscribers) if adjacent(vectors, one, other)}
            assert near == neighbours(levels, one)


def adjacent(vectors: list[int], one: int, other: int) -> bool:
    """Neighbours, as far as the vectors of those between show."""
    between = range(min(one, other) + 1, max(one, other))
    bits = shared(vectors[one], vectors[other])
    return one != other and all(shared(vectors[one], vectors[peer]) < bits for peer in between)


@pytest.mark.parametrize("pattern", "abcdef")
def test_paths_of_psg_with_a_fraction_of_its_messages(pattern: str) -> None:
    rows = measure_topics(pattern, 1_000, 7, priorities=[5], methods=["psg-tbps", "fan-tbps"])
    (ours,) = (row for row in rows if row["method"] == "fan-tbps")
    theirs = [row for row in rows if row["method"] == "psg-tbps"]
    shortest = min(theirs, key=lambda row: row["path"])
    assert ours["path"] <= 1.05 * shortest["path"]
    fewest = min(row["forwards"] for row in theirs if row["path"] <= 1.05 * shortest["path"])
    assert ours["forwards"] <= 0.3 * fewest


@pytest.mark.parametrize("pattern", "abcdef")
def test_no_priority_costs_more_than_sg(pattern: str) -> None:
    rows = measure_topics(pattern, 1_000, 7, methods=["sg-tbps", "fan-tbps"])
    least = min(row["forwards"] for row in rows if row["method"] == "sg-tbps")
    ours = [row for row in rows if row["method"] == "fan-tbps"]
    assert [row["priority"] for row in ours] == [1, 2, 3, 4, 5]
    assert all(row["forwards"] <= least for row in ours)
    assert [row["path"] for row in ours] == sorted((row["path"] for row in ours), reverse=True)
