"""PSG-TBPS: the thesis' example of support nodes, the same choice as in converged overlays, and its purpose."""

from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.psg import SUPPORT, slots, support_nodes
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact
from nodes.protocol.wire import Kind
from support.overlays.topic_network import TopicNetwork
from testbed.converged.psg import NO_START, Support, start_nodes


def test_the_support_nodes_of_the_thesis() -> None:
    # Kita 2025, 5.3.1: max_level 5, m = 11100, priority 5
    assert slots(5, 0b11100, 5) == [28, 0, 4, 8, 12, 16, 20, 24]
    every = [Contact(bytes([n]), n, n << (VECTOR_BITS - 5)) for n in range(32)]
    for support in SUPPORT:
        found = support_nodes(every[28], every, 32, 5, support)
        assert [contact.node for contact in found] == [0, 4, 8, 12, 16, 20, 24]


def test_priority_1_is_the_publisher_alone() -> None:
    assert slots(7, 100, 1) == [100]


def test_a_vector_without_a_node_goes_to_the_next_node_or_to_none() -> None:
    there = [Contact(bytes([n]), n, n << (VECTOR_BITS - 5)) for n in range(32) if n % 8 != 4]
    own = next(contact for contact in there if contact.node == 24)
    found = {
        support: [contact.node for contact in support_nodes(own, there, 32, 5, support)]
        for support in SUPPORT
    }
    assert found == {"next": [29, 0, 5, 8, 13, 16, 21], "exact": [0, 8, 16]}


@given(
    vectors=st.lists(st.integers(0, 2**VECTOR_BITS - 1), min_size=2, max_size=40, unique=True),
    priority=st.integers(1, 5),
    support=st.sampled_from(SUPPORT),
    data=st.data(),
)
def test_the_choice_is_that_of_converged_overlays(
    vectors: list[int], priority: int, support: str, data: st.DataObject
) -> None:
    publishers = data.draw(st.integers(1, len(vectors) - 1))
    among = data.draw(st.sampled_from([publishers, len(vectors)]))
    contacts = [Contact(bytes([n]), n, vector) for n, vector in enumerate(vectors)]
    starts = start_nodes(
        np.array([vectors], np.uint64), publishers, priority, Support(support), among
    )
    for publisher in range(publishers):
        theirs = [int(n) for n in starts[1:, 0, publisher] if n not in (NO_START, publisher)]
        found = support_nodes(
            contacts[publisher], contacts[:among], len(vectors), priority, support
        )
        assert sorted(contact.node for contact in found) == sorted(set(theirs))


def grown(parameters: dict[str, str]) -> TopicNetwork:
    """A quiet network of 24 publishers and 8 subscribers of one topic."""
    network = TopicNetwork("psg-tbps", 2, parameters)
    for number in range(32):
        network.start(number, [0])
        (network.advertise if number < 24 else network.subscribe)(number, "slope")
        network.run(0.5)
    network.run(40)
    return network


@pytest.mark.parametrize("way", ["flood", "split"])
@pytest.mark.parametrize("support_from", ["publishers", "participants"])
def test_urgent_publications_come_over_fewer_hops_and_cost_more(
    way: str, support_from: str
) -> None:
    network = grown({"multicast": way, "support_from": support_from})
    hops, sent = {}, {}
    for priority in (1, 5):
        network.passed.clear()
        published = [network.publish(number, "slope", priority) for number in range(0, 24, 3)]
        network.run(5)
        assert all(network.receivers(identity) == set(range(24, 32)) for identity in published)
        hops[priority] = mean(
            hops for (_, identity), hops in network.hops.items() if identity in published
        )
        sent[priority] = sum(message.kind is Kind.PUBLISH for _, _, message in network.passed)
    assert hops[5] < hops[1]
    assert sent[5] > sent[1]


def test_publishers_know_who_takes_part() -> None:
    network = grown({})
    every = set(range(32))
    for number in range(24):
        node = network.nodes[number]
        assert {contact.node for contact in node.rosters.of("slope").known(network.now)} == every
    network.unsubscribe(30, "slope")
    network.withdraw(5, "slope")
    network.run(5)
    known = network.nodes[6].rosters.of("slope").known(network.now)
    assert {contact.node for contact in known} == every - {5, 30}


def test_unknown_choices_are_refused() -> None:
    for name in ("support", "support_from"):
        with pytest.raises(ValueError, match=f"{name} 'friends'"):
            TopicNetwork("psg-tbps", 1, {name: "friends"}).start(1, [])
