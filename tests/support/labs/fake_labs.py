"""A lab on the fake backend: a broker, a sensor and a siren; their state outlives a command."""

from pathlib import Path

from testbed.backends.fake import FakeBackend, FakeNodes
from testbed.backends.registry import Choice
from testbed.lab.up import bring_up
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit, ignore
from testbed.records import LabRecord
from testbed.topology.model import Node, NodeKind, Profile, PublishEvent, Scenario, Topology

SIREN = Node("siren", 3, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.3")
LANDSLIDE = PublishEvent(0.0, ("sensor",), "alerts", 5, 100, period_s=0.05, count=3)
LAB = Topology(
    "valley",
    7,
    (Profile("lan"),),
    (
        Node("broker", 1, NodeKind.BROKER, "lan", address="10.77.0.1"),
        Node("sensor", 2, NodeKind.SENSOR, "lan", address="10.77.0.2"),
        SIREN,
    ),
    scenario=Scenario(0.2, 1.0, (LANDSLIDE,)),
)


def another_siren(name: str) -> Node:
    """A fourth node, with the subscriptions of the first siren."""
    return Node(name, 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")


class FakePlace:
    """Keep one FakeBackend per lab between commands, as the kernel keeps a real lab."""

    def __init__(self) -> None:
        self.backends: dict[str, FakeBackend] = {}
        self.failing: frozenset[str] = frozenset()
        self.unreachable: frozenset[str] = frozenset()

    @property
    def backend(self) -> FakeBackend:
        """The backend of lab valley."""
        return self.backends["valley"]

    def __call__(
        self, name: str, lab: LabPlace, run: RunPlace, topology: Topology, emit: Emit
    ) -> FakeBackend:
        if lab.name not in self.backends:
            nodes = FakeNodes(lab, topology, self.unreachable)
            self.backends[lab.name] = FakeBackend(topology, self.failing, nodes)
        self.backends[lab.name].topology = topology
        return self.backends[lab.name]


def up(topology: Topology, file: Path, place: FakePlace, emit: Emit = ignore) -> LabRecord:
    return bring_up(topology, file, None, emit, place, lambda asked: Choice("fake", "a test"))
