"""After any sequence of inserts, leaves, crashes, delays and losses, once quiet, every level is what sorting gives."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from nodes.overlay.skipgraph.node import SkipGraphNode
from support.overlays.overlay_network import (
    RESTLESS_S,
    OverlayNetwork,
    actual_links,
    all_settled,
    expected_links,
    graph_node,
    report_death,
)

NODES = range(1, 9)
QUIET_S = 60.0
MOST_QUIET_PERIODS = 10  # rings that do not know each other merge by chance, which may take minutes
MOST_A_SECOND = 40  # messages of one key; a storm has thousands


class GraphOperations(RuleBasedStateMachine):
    """Eight nodes; every node may introduce every other."""

    idle_period_s = RESTLESS_S

    @initialize(
        seed=st.integers(0, 2**32),
        slowest=st.sampled_from([0.02, 0.5, 3.0]),
        loss=st.sampled_from([0.0, 0.1, 0.3]),
    )
    def begin(self, seed: int, slowest: float, loss: float) -> None:
        self.network = OverlayNetwork(seed, slowest=slowest, loss=loss)

    def node(self, number: int) -> SkipGraphNode:
        """The node of this number; a crashed one starts again."""
        if number not in self.network.nodes:
            graph_node(self.network, number, NODES, idle_period_s=self.idle_period_s)
        node: SkipGraphNode = self.network.nodes[number]
        return node

    @rule(number=st.sampled_from(NODES), place=st.integers(0, 30))
    def insert(self, number: int, place: int) -> None:
        node = self.node(number)
        self.network.act(number, node.insert(bytes([place, number]), self.network.now))

    @rule(number=st.sampled_from(NODES), which=st.integers(0, 9))
    def remove(self, number: int, which: int) -> None:
        node = self.node(number)
        if own := node.own_keys():
            self.network.act(number, node.remove(own[which % len(own)], self.network.now))

    @rule(number=st.sampled_from(NODES), noticed_by=st.sets(st.sampled_from(NODES)))
    def crash(self, number: int, noticed_by: set[int]) -> None:
        if number in self.network.nodes:
            self.network.crash(number)
            for other in noticed_by & set(self.network.nodes):
                node = self.network.nodes[other]
                self.network.act(other, node.on_peer_lost(number, self.network.now))

    @rule(seconds=st.floats(0.01, 6))
    def wait(self, seconds: float) -> None:
        self.network.run(seconds)

    @rule(seed=st.integers(0, 2**32))
    def bustle(self, seed: int) -> None:
        """Let many operations overlap, which single rules seldom do."""
        random = Random(seed)
        for _ in range(15):
            number = random.choice(NODES)
            match random.choice("iiirwwc"):
                case "i":
                    self.insert(number, random.randrange(30))
                case "r":
                    self.remove(number, random.randrange(9))
                case "c":
                    self.crash(number, set())
                case "w":
                    self.wait(random.uniform(0, 4))

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        self.network.loss, self.network.slowest = 0.0, 0.05
        nodes = list(self.network.nodes.values())
        for _ in range(MOST_QUIET_PERIODS):
            self.network.run(QUIET_S)
            if all_settled(nodes) and actual_links(nodes) == expected_links(nodes):
                break
        keys = sum(len(node.own_keys()) for node in nodes)
        before = len(self.network.passed)
        self.network.run(10)
        assert len(self.network.passed) - before <= 10 * MOST_A_SECOND * keys
        assert before <= self.network.now * MOST_A_SECOND * len(NODES) * 8
        assert actual_links(nodes) == expected_links(nodes)


TestGraphOperations = GraphOperations.TestCase
TestGraphOperations.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)


class IdleGraphOperations(GraphOperations):
    """Any sequence, with nodes that become idle; shells report dead nodes to the nodes that send to them."""

    idle_period_s = 20.0

    @initialize(seed=st.integers(0, 2**32), loss=st.sampled_from([0.0, 0.2]))
    def begin(self, seed: int, loss: float) -> None:  # type: ignore[override]
        self.network = OverlayNetwork(seed, slowest=0.3, loss=loss)
        self.network.in_vain = lambda sender, receiver, _: report_death(
            self.network, sender, receiver
        )

    @rule()
    def doze(self) -> None:
        self.network.run(120)


TestIdleGraphOperations = IdleGraphOperations.TestCase
TestIdleGraphOperations.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
