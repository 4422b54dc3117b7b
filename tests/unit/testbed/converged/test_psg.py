"""PSG-TBPS: which nodes start a search, how soon the first one arrives, and how many messages they send."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.overlays.literal_overlay import support_nodes
from testbed.converged.graph import BITS
from testbed.converged.psg import (
    NO_START,
    Publications,
    Support,
    slots,
    space_bits,
    start_count,
    start_nodes,
)


def test_the_support_nodes_of_the_thesis_example() -> None:
    """5.3.1: five levels, the publisher's vector is 11100, priority 5."""
    assert start_count(5, 5) == 8
    assert slots(5, np.array(0b11100), 5).tolist() == [28, 0, 4, 8, 12, 16, 20, 24]
    everyone = np.arange(32, dtype=np.uint64) << np.uint64(BITS - 5)
    publisher_first = np.concatenate([everyone[28:], everyone[:28]])
    starts = start_nodes(publisher_first[None], 1, 5, Support.EXACT, 32)[:, 0, 0]
    vectors = publisher_first[starts] >> np.uint64(BITS - 5)
    assert vectors.tolist() == [28, 0, 4, 8, 12, 16, 20, 24]


@pytest.mark.parametrize(("priority", "count"), [(1, 1), (2, 64), (3, 128), (4, 192), (5, 256)])
def test_starts_by_priority_among_a_thousand(priority: int, count: int) -> None:
    assert space_bits(1_000) == 10
    assert start_count(10, priority) == count


@given(
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 5),
    st.sampled_from(Support),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_slots_are_served_by_the_next_upward(
    topics: int,
    publishers: int,
    subscribers: int,
    priority: int,
    support: Support,
    publishers_only: bool,
    seed: int,
) -> None:
    size = publishers + subscribers
    vectors = np.random.default_rng(seed).integers(0, 2**64, (topics, size), dtype=np.uint64)
    among = publishers if publishers_only else size
    starts = start_nodes(vectors, publishers, priority, support, among)
    bits = space_bits(size)
    for topic in range(topics):
        prefixes = [vector >> BITS - bits for vector in vectors[topic, :among].tolist()]
        for publisher in range(publishers):
            found = [peer for peer in starts[:, topic, publisher].tolist() if peer != NO_START]
            assert found == support_nodes(
                prefixes, bits, publisher, priority, support is Support.NEXT
            )


@given(st.integers(1, 4), st.integers(2, 12), st.integers(1, 6), st.data())
def test_the_first_arrival_counts_and_all_messages_do(
    topics: int, size: int, subscribers: int, data: st.DataObject
) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    hops = random.integers(0, 30, (topics, size, subscribers), dtype=np.uint8)
    starts = random.integers(NO_START, size, (5, topics, 2))
    starts[0] = random.integers(0, size, (topics, 2))
    messages = random.integers(0, 1_000, (topics, size))
    publications = Publications(starts, size)
    paths, sent = publications.paths(hops), publications.messages(messages)
    for topic in range(topics):
        for publisher in range(2):
            own, *others = starts[:, topic, publisher].tolist()
            others = [other for other in others if other != NO_START]
            assert publications.starts[topic, publisher] == 1 + len(others)
            for subscriber in range(subscribers):
                ways = [int(hops[topic, own, subscriber])]
                ways += [1 + int(hops[topic, other, subscriber]) for other in others]
                assert paths[topic, publisher, subscriber] == min(ways)
            assert sent[topic, publisher] == sum(
                int(messages[topic, start]) for start in [own, *others]
            ) + len(others)
