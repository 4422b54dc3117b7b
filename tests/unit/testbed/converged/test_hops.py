"""Hops and messages of all topics computed at once equal those of following each message alone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.overlays.literal_overlay import flood, lists, search, split
from testbed.converged.graph import converge
from testbed.converged.multicast import Distances, Strategy, distances, leftward_hops
from testbed.converged.population import Population, population


def known(participants: Population) -> Distances:
    """Everything about all topics."""
    links = converge(participants.owners, participants.vectors)
    return distances(participants, links, slice(0, participants.topics), set(Strategy))


topics_of_any_kind = st.builds(
    lambda publishers, subscribers, topics, seed: population(
        publishers, subscribers, topics * (publishers + subscribers), seed
    ),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(0, 10_000),
)


@given(topics_of_any_kind)
def test_a_flood_reaches_everyone_by_the_shortest_way(participants: Population) -> None:
    found = known(participants)
    for topic, vectors in enumerate(participants.peer_vectors.tolist()):
        levels = lists(range(participants.size), vectors)
        for start in range(participants.size):
            hops, sent = flood(levels, start)
            assert found.hops[Strategy.FLOOD][topic, start].tolist() == [
                hops[peer] for peer in range(participants.size)
            ]
            assert found.messages[Strategy.FLOOD][topic, start] == sent


@given(topics_of_any_kind)
def test_a_search_takes_the_way_of_the_levels(participants: Population) -> None:
    found = known(participants)
    for topic, vectors in enumerate(participants.peer_vectors.tolist()):
        levels = lists(range(participants.size), vectors)
        for start in range(participants.size):
            ways = [search(levels, start, goal) for goal in range(participants.size)]
            assert found.hops[Strategy.SEARCH][topic, start].tolist() == [
                len(way) - 1 for way in ways
            ]
            links = {pair for way in ways[participants.publishers :] for pair in pairwise(way)}
            assert found.messages[Strategy.SEARCH][topic, start] == len(links)


@given(topics_of_any_kind)
def test_a_split_multicast_reaches_everyone_once(participants: Population) -> None:
    found = known(participants)
    everyone = np.arange(participants.size)
    for topic, vectors in enumerate(participants.peer_vectors.tolist()):
        levels = lists(range(participants.size), vectors)
        for start in range(participants.size):
            ways = split(levels, start, 0, participants.size - 1)
            hops = [len(ways[peer]) - 1 for peer in range(participants.size)]
            assert found.hops[Strategy.SPLIT][topic, start, start:].tolist() == hops[start:]
            first, left = topic * participants.size, everyone[:start]
            assert (
                hops[:start]
                == leftward_hops(
                    found.neighbours,
                    found.hops[Strategy.SPLIT],
                    np.full(start, first + start),
                    first + left,
                    np.full(start, first),
                ).tolist()
            )


@given(topics_of_any_kind)
def test_publishers_send_one_message_per_link_of_the_split_multicast(
    participants: Population,
) -> None:
    found = known(participants)
    for topic, vectors in enumerate(participants.peer_vectors.tolist()):
        levels = lists(range(participants.size), vectors)
        for start in range(participants.publishers):
            ways = split(levels, start, start, participants.size - 1)
            to_subscribers = [
                ways[peer] for peer in range(participants.publishers, participants.size)
            ]
            links = {pair for way in to_subscribers for pair in pairwise(way)}
            assert found.messages[Strategy.SPLIT][topic, start] == len(links)


def test_topics_are_followed_inside_a_graph_of_all() -> None:
    participants = population(3, 17, 400, 5)
    together = known(participants)
    for topic in range(participants.topics):
        members = slice(topic * participants.size, (topic + 1) * participants.size)
        owners = np.arange(participants.size, dtype=np.int32)
        alone = Population(1, 3, 17, owners, participants.vectors[participants.owners[members]])
        for strategy in Strategy:
            assert (known(alone).hops[strategy][0] == together.hops[strategy][topic]).all()


def test_the_search_of_the_thesis_example() -> None:
    """Figure 4.1: from 99 by 75 to 21."""
    vectors = [bits << 62 | peer for peer, bits in enumerate([0b00, 0b10, 0b01, 0b00, 0b11, 0b11])]
    participants = Population(
        1, 1, 5, np.arange(6, dtype=np.int32), np.array(vectors, dtype=np.uint64)
    )
    assert known(participants).hops[Strategy.SEARCH][0, 5, 1] == 2
    assert search(lists(range(6), vectors), 5, 1) == [5, 4, 1]


@pytest.mark.parametrize("strategy", Strategy)
def test_a_thousand_peers_are_followed_like_ten(strategy: Strategy) -> None:
    participants = population(10, 990, 1_000, 3)
    levels = lists(range(60), participants.peer_vectors[0, :60].tolist())
    first = Population(
        1, 10, 50, np.arange(60, dtype=np.int32), participants.peer_vectors[0, :60].copy()
    )
    small = known(first).hops[strategy][0]
    large = known(participants).hops[strategy][0]
    if strategy is not Strategy.FLOOD:  # whose ways may lead beyond both ends
        assert (large[:60, :60] == small).all()
        assert (
            small[0, 59]
            == len(
                search(levels, 0, 59)
                if strategy is Strategy.SEARCH
                else split(levels, 0, 0, 59)[59]
            )
            - 1
        )
    else:
        assert (large[:60, :60] <= small).all()
        assert (large == large.T).all()
