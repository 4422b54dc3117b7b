"""The rules for the next hop of data on its way to the subscriber, and what must hold for any Skip Graph."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.collection.rules import Lists, Method, Order, Rule, publisher_key, subscriber_key
from nodes.overlay.topics.keys import Role, node_of, stands_in, topic_of
from nodes.protocol.wire import WireError

TOPIC = "slope/water"
SUBSCRIBER = 0
BITS = 8

Links = dict[bytes, set[bytes]]


def skip_graph(keys: list[bytes], vectors: dict[bytes, str], ring: bool) -> Links:
    """The neighbours of each key, straight from the definition: adjacent among the keys that share i bits."""
    links: Links = {key: set() for key in keys}
    for level in range(len(next(iter(vectors.values()))) + 1):
        for start in {vector[:level] for vector in vectors.values()}:
            of_list = sorted(key for key in keys if vectors[key].startswith(start))
            pairs = list(pairwise(of_list))
            if ring and len(of_list) > 1:
                pairs.append((of_list[-1], of_list[0]))
            for left, right in pairs:
                links[left].add(right)
                links[right].add(left)
    return links


class Collection(NamedTuple):
    """Publishers' keys from first to last, the subscriber's key, all membership vectors, and all links."""

    publishers: list[bytes]
    goal: bytes
    vectors: dict[bytes, str]
    lists: Lists
    links: Links


@st.composite
def collections(draw: st.DrawFn, among: Iterable[Lists] = Lists) -> Collection:
    """Collections of up to 25 publishers."""
    periods = draw(st.lists(st.integers(1, 10), min_size=1, max_size=25))
    order = draw(st.sampled_from(Order))
    lists = draw(st.sampled_from(list(among)))
    random = Random(draw(st.integers(0, 999)))
    publishers = sorted(
        publisher_key(TOPIC, period, number, order) for number, period in enumerate(periods, 1)
    )
    goal = subscriber_key(TOPIC, SUBSCRIBER)
    vectors = {key: format(random.getrandbits(BITS), f"0{BITS}b") for key in [*publishers, goal]}
    links = skip_graph([*publishers, goal], vectors, lists is Lists.RING)
    return Collection(publishers, goal, vectors, lists, links)


def path(rule: Rule, start: bytes, goal: bytes, links: Links) -> list[bytes]:
    """All stops of the path; it must end, and at the subscriber."""
    stops = [start]
    while stops[-1] != goal:
        stop = rule.next_stop(stops[-1], goal, links[stops[-1]])
        assert stop is not None
        assert stop not in stops
        stops.append(stop)
    return stops


def test_push_takes_the_link_that_reaches_furthest() -> None:
    rule = Rule(Method.PUSH)
    assert rule.next_stop(b"c", b"s", [b"a", b"d", b"k", b"f"]) == b"k"
    assert rule.next_stop(b"c", b"s", [b"d", b"s", b"f"]) == b"s"


def test_push_never_goes_beyond_the_subscriber_nor_back() -> None:
    rule = Rule(Method.PUSH)
    assert rule.next_stop(b"c", b"s", [b"a", b"d", b"x"]) == b"d"
    assert rule.next_stop(b"c", b"s", [b"a", b"b", b"x"]) is None


def test_push_comes_to_a_subscriber_at_the_beginning_as_well() -> None:
    rule = Rule(Method.PUSH)
    assert rule.next_stop(b"k", b"c", [b"a", b"d", b"f", b"x"]) == b"d"


def test_chain_takes_the_nearest_one_and_server_none_but_the_subscriber() -> None:
    links = [b"a", b"d", b"k", b"s"]
    assert Rule(Method.CHAIN).next_stop(b"c", b"s", links) == b"d"
    assert Rule(Method.CHAIN).next_stop(b"k", b"s", [b"d", b"s"]) == b"s"
    assert Rule(Method.SERVER).next_stop(b"c", b"s", links) == b"s"


def test_the_subscriber_passes_nothing_on() -> None:
    for method in Method:
        assert Rule(method).next_stop(b"s", b"s", [b"a", b"d"]) is None


def test_a_ring_may_be_left_across_its_end() -> None:
    right = Rule(Method.PUSH, Lists.RING)
    both = Rule(Method.PUSH, Lists.RING, turn=b"f")
    assert right.next_stop(b"c", b"s", [b"a", b"d", b"k"]) == b"k"
    assert right.next_stop(b"a", b"s", [b"s", b"k"]) == b"s"
    assert both.next_stop(b"c", b"s", [b"a", b"b", b"d", b"k"]) == b"a"
    assert both.next_stop(b"f", b"s", [b"a", b"b", b"d", b"k"]) == b"k"


@given(collections(), st.data())
def test_data_reaches_the_subscriber_from_everywhere_without_a_circle(
    collection: Collection, data: st.DataObject
) -> None:
    turn = data.draw(st.none() | st.sampled_from(collection.publishers))
    for method in Method:
        rule = Rule(method, collection.lists, turn)
        for start in collection.publishers:
            stops = path(rule, start, collection.goal, collection.links)
            between = stops[1:-1]
            assert between in (sorted(between), sorted(between, reverse=True))


@given(collections([Lists.LINE]))
def test_on_a_line_push_takes_the_highest_level_that_leads_to_the_right(
    collection: Collection,
) -> None:
    vectors = collection.vectors
    for start in collection.publishers:
        right = [key for key in sorted(vectors) if key > start]
        level = max(shared(vectors[start], vectors[key]) for key in right)
        next_there = next(key for key in right if shared(vectors[start], vectors[key]) == level)
        found = Rule(Method.PUSH).next_stop(start, collection.goal, collection.links[start])
        assert found == next_there


def shared(vector: str, other: str) -> int:
    """How many leading bits both share."""
    return next(
        (at for at, bits in enumerate(zip(vector, other, strict=True)) if bits[0] != bits[1]), BITS
    )


@given(collections([Lists.LINE]))
def test_chain_passes_every_nearer_publisher_on_a_line(collection: Collection) -> None:
    publishers, goal = collection.publishers, collection.goal
    for at, start in enumerate(publishers):
        stops = path(Rule(Method.CHAIN), start, goal, collection.links)
        assert stops == [*publishers[at:], goal]


@given(
    st.lists(st.tuples(st.integers(1, 0xFFFFFFFF), st.integers(0, 999)), unique=True),
    st.sampled_from(Order),
)
def test_publishers_stand_by_period_and_the_subscriber_at_the_end(
    nodes: list[tuple[int, int]], order: Order
) -> None:
    sign = 1 if order is Order.ASCENDING else -1
    by_key = sorted(nodes, key=lambda node: publisher_key(TOPIC, *node, order))
    assert by_key == sorted(nodes, key=lambda node: (sign * node[0], node[1]))
    for period, number in nodes:
        key = publisher_key(TOPIC, period, number, order)
        assert key < subscriber_key(TOPIC, SUBSCRIBER)
        assert stands_in(key, TOPIC, Role.PUBLISHER)
        assert (topic_of(key), node_of(key)) == (TOPIC, number)


@pytest.mark.parametrize("period", [0, -1, 2**32])
def test_a_period_that_fits_no_key_is_refused(period: int) -> None:
    with pytest.raises(WireError, match="fits no key"):
        publisher_key(TOPIC, period, 1, Order.ASCENDING)
