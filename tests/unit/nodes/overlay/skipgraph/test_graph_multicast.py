"""Multicast to a range: every key that is inserted and stays gets it, whatever changes meanwhile; cost when quiet."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from nodes.overlay.skipgraph.actions import Delivered, Inserted
from nodes.overlay.skipgraph.multicast import parts
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact
from support.overlays.overlay_network import OverlayNetwork, graph_node

NODES = range(1, 9)
ANCHOR = bytes([20, 1])  # of node 1, the introducer; stays, so that there is one ring
places = st.integers(0, 41).map(lambda place: bytes([place]))


class Changes(RuleBasedStateMachine):
    """Inserts, leaves and multicasts at any moment; messages take up to a second, none is lost."""

    @initialize(seed=st.integers(0, 2**32), slowest=st.sampled_from([0.02, 0.3, 1.0]))
    def begin(self, seed: int, slowest: float) -> None:
        self.network = OverlayNetwork(seed, slowest=slowest, listen=self.record)
        self.inserted: set[bytes] = set()
        self.got: Counter[tuple[int, bytes]] = Counter()
        self.expected: dict[int, set[bytes]] = {}
        for number in NODES:
            graph_node(self.network, number, [1])
        self.network.act(1, self.network.nodes[1].insert(ANCHOR, 0.0))

    def record(self, number: int, action: object) -> None:
        if isinstance(action, Inserted):
            self.inserted.add(action.key)
        elif isinstance(action, Delivered):
            self.got[action.multicast.identity, action.key] += 1

    @rule(number=st.sampled_from(NODES), place=st.integers(0, 40))
    def insert(self, number: int, place: int) -> None:
        node = self.network.nodes[number]
        key = bytes([place, number])
        if key not in node.own_keys():
            self.network.act(number, node.insert(key, self.network.now))

    @rule(number=st.sampled_from(NODES), which=st.integers(0, 9))
    def remove(self, number: int, which: int) -> None:
        node = self.network.nodes[number]
        own = [key for key in node.own_keys() if key != ANCHOR]
        if own:
            key = own[which % len(own)]
            self.inserted.discard(key)
            for keys in self.expected.values():
                keys.discard(key)
            self.network.act(number, node.remove(key, self.network.now))

    @rule(
        number=st.sampled_from(NODES),
        way=st.sampled_from(m.Way),
        ends=st.tuples(places, places).map(sorted),
    )
    def multicast(self, number: int, way: m.Way, ends: list[bytes]) -> None:
        low, high = ends
        identity = len(self.expected)
        self.expected[identity] = {key for key in self.inserted if low <= key < high}
        node = self.network.nodes[number]
        actions = node.multicast(low, high, identity, b"words", self.network.now, way)
        self.network.act(number, actions)

    @rule(seconds=st.floats(0.01, 1.5))
    def wait(self, seconds: float) -> None:
        self.network.run(seconds)

    @rule(seed=st.integers(0, 2**32))
    def bustle(self, seed: int) -> None:
        """Let many operations overlap, which single rules seldom do."""
        random = Random(seed)
        for _ in range(25):
            number = random.choice(NODES)
            match random.choice("iiirrmmmww"):
                case "i":
                    self.insert(number, random.randrange(40))
                case "r":
                    self.remove(number, random.randrange(9))
                case "m":
                    ends = sorted(bytes([random.randrange(42)]) for _ in range(2))
                    self.multicast(number, random.choice(list(m.Way)), ends)
                case "w":
                    self.wait(random.uniform(0, 1.5))

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        self.network.run(60)
        for identity, keys in self.expected.items():
            assert keys <= {key for number, key in self.got if number == identity}


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)


def settled_network(seed: int, count: int = 24) -> OverlayNetwork:
    """One key a node, 0 to count - 1, in a quiet network."""
    network = OverlayNetwork(seed)
    for number in range(count):
        node = graph_node(network, number, [0])
        network.act(number, node.insert(bytes([number]), network.now))
        network.run(0.3)
    network.run(60)
    return network


@pytest.mark.parametrize("way", m.Way)
@pytest.mark.parametrize("start", [0, 3, 11, 17, 23])
def test_in_a_settled_network_every_key_in_the_range_gets_the_multicast_once(
    way: m.Way, start: int
) -> None:
    network = settled_network(seed=start)
    network.reported.clear()
    network.passed.clear()
    node = network.nodes[start]
    network.act(start, node.multicast(b"\5", b"\x12", 7, b"words", network.now, way))
    network.run(1)
    got = Counter(action.key for _, action in network.reported if isinstance(action, Delivered))
    assert got == {bytes([number]): 1 for number in range(5, 18)}
    casts = [to for _, to, sent in network.passed if isinstance(sent, m.Multicast)]
    assert set(casts) <= set(range(5, 18)), "somebody outside the range had to pass it on"
    if way is m.Way.SPLIT:
        outside = start not in range(5, 18)
        assert len(casts) == len(got) - (0 if outside else 1)


@given(st.data(), places, places, places)
@settings(max_examples=200)
def test_parts_cover_the_range_without_overlap(
    data: st.DataObject, key: bytes, one: bytes, other: bytes
) -> None:
    low, high = sorted((one, other))
    neighbours = [
        Contact(place, number, 0)
        for number, place in enumerate(data.draw(st.lists(places, unique=True)))
        if place != key
    ]
    served = [0] * 42
    for contact, begin, end in parts(key, low, high, neighbours):
        assert low <= begin < end <= high
        assert contact.key <= begin or contact.key < key
        for place in range(begin[0], end[0]):
            served[place] += 1
    assert max(served) <= 1
    near = {c.key for c in neighbours if low <= c.key < high}
    assert all(served[place[0]] for place in near)
    if served[low[0]] == 0 and low < high:
        assert not [c for c in neighbours if c.key <= low and c.key > key] or low == key
