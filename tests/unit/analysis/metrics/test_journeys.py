"""The journey of one message through the overlay, and where it ends."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics.deliveries import Hop, Journey, Parts, brokers_at, nodes_in_reason


def hop(src, dst, at=None, begun=None, sent=1, number=1, copies=1):
    """A hop that arrives at this time. If it never arrives, its first bytes were seen at `begun`."""
    return Hop(src, dst, number, 0, sent, begun or at, at, copies if at else 0)


BROKERS = {"a", "b", "c"}


@pytest.mark.parametrize(
    ("hops", "reason"),
    [
        ([], "never sent"),
        ([hop("o", "a")], "lost between o and a"),
        ([hop("o", "a", begun=5)], "incomplete at a"),
        ([hop("o", "a", 5)], "not forwarded by a"),
        ([hop("o", "a", 5), hop("a", "x", 9)], "not forwarded by a"),
        ([hop("o", "a", 5), hop("a", "town")], "lost between a and town"),
        ([hop("o", "a", 5), hop("a", "town", begun=7)], "incomplete at town"),
        ([hop("o", "a", 5), hop("a", "b", number=2)], "lost between a and b"),
        ([hop("o", "a", 5), hop("a", "b", 8), hop("b", "x", 9)], "not forwarded by b"),
        ([hop("o", "x", 5)], "not forwarded by o"),
    ],
)
def test_a_lost_message_was_lost_where_it_was_last_seen(hops, reason):
    found = Journey("o", hops, BROKERS).outcome("town")
    assert (found.status, found.reason, found.path) == ("lost", reason, None)


@pytest.mark.parametrize(
    ("reason", "nodes"),
    [
        ("never sent", ()),
        ("lost between o and a", ("o", "a")),
        ("incomplete at a", ("a",)),
        ("not forwarded by a", ("a",)),
        ("queue full at a", ("a",)),
        ("town was down", ("town",)),
    ],
)
def test_the_nodes_of_each_reason_can_be_read_from_it(reason, nodes):
    assert nodes_in_reason(reason) == nodes


@pytest.mark.parametrize(
    ("hops", "drops", "reason"),
    [
        ([], [("o", "a")], "queue full at o"),
        ([hop("o", "a", 5)], [("a", "town")], "queue full at a"),
        ([hop("o", "a", 5)], [("a", "other")], "not forwarded by a"),
        ([hop("o", "a", 5), hop("a", "b", 8)], [("b", "town")], "queue full at b"),
        ([hop("o", "a", 5), hop("a", "b", 8)], [("a", "c")], "queue full at a"),
        ([hop("o", "a", 5), hop("a", "b", 8)], [("a", "b")], "not forwarded by b"),
        ([hop("o", "a", 5), hop("a", "town")], [("a", "town")], "lost between a and town"),
    ],
)
def test_a_message_that_found_a_full_queue_was_lost_there(hops, drops, reason):
    assert Journey("o", hops, BROKERS, drops).outcome("town").reason == reason


@pytest.mark.parametrize(
    ("own_brokers", "reason"),
    [
        ([], "not forwarded by b"),  # the last broker that had it
        (["a"], "not forwarded by a"),
        (["c", "a"], "not forwarded by a"),
        (["c"], "incomplete at c"),
        (["elsewhere"], "incomplete at c"),
    ],
)
def test_the_receivers_own_broker_is_named_if_several_brokers_had_the_lost_message(
    own_brokers, reason
):
    hops = [hop("o", "a", 5), hop("a", "b", 8), hop("a", "c", begun=6)]
    if not own_brokers:
        hops = hops[:2]
    assert Journey("o", hops, BROKERS).outcome("town", own_brokers).reason == reason


def test_a_receiver_may_have_been_with_several_brokers_since_a_message_was_published():
    connected = [(1, "a"), (5, "b"), (9, "c"), (12, "b")]
    assert brokers_at(connected, 6) == ["b", "c"]
    assert brokers_at(connected, 9) == ["b", "c"]
    assert brokers_at(connected, 20) == ["b"]
    assert brokers_at(connected, 0) == ["b", "c", "a"]
    assert brokers_at([], 6) == []


def test_the_path_is_the_one_of_the_first_whole_copy():
    hops = [
        hop("o", "a", 5),
        hop("a", "b", 50),
        hop("a", "c", 10),
        hop("c", "b", 20),
        hop("b", "town", 60),
        hop("c", "town", 70),
    ]
    found = Journey("o", hops, BROKERS).outcome("town")
    assert found.path == ["o", "a", "c", "b", "town"]
    assert (found.received_ns, found.duplicates) == (60, 1)


def test_the_path_is_the_longer_one_if_a_broker_forwarded_the_copy_that_came_by_it():
    hops = [
        hop("o", "a", 5),
        hop("a", "b", 10, number=2),
        hop("b", "a", 20, number=3),
        hop("a", "c", 20, number=2),
        hop("a", "town", 30, number=4),
    ]
    found = Journey("o", hops, BROKERS).outcome("town")
    assert (found.path, found.hops) == (["o", "a", "b", "a", "town"], 4)


def test_a_gap_in_the_captures_leaves_the_rest_of_the_path():
    found = Journey("o", [hop("a", "town", 9, number=3)], BROKERS).outcome("town")
    assert (found.status, found.path, found.hops) == ("delivered", ["a", "town"], 3)


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_a_message_that_wanders_is_followed_wherever_it_went(seed, steps):
    """The only copy goes from broker to broker, to some of them repeatedly, and then to the town."""
    chance = random.Random(seed)
    way = ["o", "a"]
    while len(way) <= steps:
        way.append(chance.choice(sorted(BROKERS - {way[-1]})))
    way.append("town")
    parts = (0.25, 0.5, 0.125, 0.0)
    hops = [
        hop(src, dst, at=10 * number, number=number)._replace(
            **dict(zip(Parts._fields, parts, strict=True))
        )
        for number, (src, dst) in enumerate(pairwise(way), start=1)
    ]
    chance.shuffle(hops)
    found = Journey("o", hops, BROKERS).outcome("town")
    assert (found.path, found.hops) == (way, len(hops))
    assert found.parts == tuple(part * len(hops) for part in parts)


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_in_any_overlay_each_path_leads_from_the_origin_along_hops_in_time(seed, brokers):
    chance = random.Random(seed)
    arrived, hops = {"o": 0}, []
    for number in range(brokers):
        source = chance.choice(sorted(arrived))
        arrived[f"b{number}"] = arrived[source] + chance.randrange(1, 100)
        hops.append(hop(source, f"b{number}", arrived[f"b{number}"]))
    for _ in range(brokers):  # later copies on other paths
        one, other = chance.choice(sorted(arrived)), chance.choice(sorted(set(arrived) - {"o"}))
        late = max(arrived[one], arrived[other]) + 1000
        hops.append(hop(one, other, late))
    chance.shuffle(hops)
    known = {(h.src, h.dst) for h in hops}
    for receiver in sorted(set(arrived) - {"o"}):
        found = Journey("o", hops, ()).outcome(receiver)
        assert found.received_ns == arrived[receiver]
        assert found.path[0] == "o"
        assert found.path[-1] == receiver
        times = [arrived[name] for name in found.path]
        assert times == sorted(times)
        assert all(pair in known for pair in pairwise(found.path))
