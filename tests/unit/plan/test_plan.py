"""The plan: from what exists to what is asked for, nothing more."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.fake import FakeBackend
from testbed.events import ignore
from testbed.journal import Journal
from testbed.lab.apply import apply
from testbed.plan import Actual, Step, StepKind, fingerprint, plan_up
from testbed.topology.model import Node, NodeKind, Profile, Topology

NAMES = [f"sensors-{i}" for i in range(1, 7)]


def lab(names: list[str], seed: int = 1) -> Topology:
    broker = Node("broker", 1, NodeKind.BROKER, "lan", address="10.77.0.1")
    sensors = [
        Node(name, NAMES.index(name) + 2, NodeKind.SENSOR, "lan", address=f"10.77.0.{i}")
        for i, name in enumerate(names, 2)
    ]
    return Topology("lab", seed, (Profile("lan"),), (broker, *sensors))


def bring(backend: FakeBackend, topology: Topology, journal: Journal) -> None:
    backend.topology = topology
    apply(plan_up(topology, backend.inspect()), backend, topology, journal, ignore)


def test_a_new_lab_is_prepared_then_created_wired_shaped_captured_started():
    kinds = list(dict.fromkeys(step.kind for step in plan_up(lab(NAMES[:2]), Actual())))
    assert kinds == [
        StepKind.PREPARE,
        StepKind.CREATE,
        StepKind.WIRE,
        StepKind.SHAPE,
        StepKind.CAPTURE,
        StepKind.START,
    ]


def test_a_lab_that_is_as_asked_needs_nothing(tmp_path):
    topology = lab(NAMES[:3])
    backend = FakeBackend(topology)
    bring(backend, topology, Journal(tmp_path / "journal"))
    assert plan_up(topology, backend.inspect()) == ()


def test_a_changed_node_is_removed_and_made_anew():
    topology = lab(NAMES[:2])
    changed = replace(
        topology,
        nodes=(*topology.nodes[:-1], replace(topology.nodes[-1], profile="lan", at=(1.0, 2.0))),
    )
    everything = frozenset(node.name for node in topology.nodes)
    actual = Actual(
        True,
        everything,
        everything,
        everything,
        everything,
        everything,
        {node.name: fingerprint(topology, node) for node in topology.nodes},
    )
    assert plan_up(changed, actual) == (
        Step(StepKind.REMOVE, "sensors-2", "changed"),
        *(
            Step(kind, "sensors-2", "made anew")
            for kind in (
                StepKind.CREATE,
                StepKind.WIRE,
                StepKind.SHAPE,
                StepKind.CAPTURE,
                StepKind.START,
            )
        ),
    )


def test_only_the_half_that_is_missing_is_done_after_a_crash():
    topology = lab(NAMES[:2])
    names = frozenset(node.name for node in topology.nodes)
    marks = {node.name: fingerprint(topology, node) for node in topology.nodes}
    actual = Actual(True, names, names, frozenset({"broker"}), fingerprints=marks)
    kinds = [(step.kind, step.target) for step in plan_up(topology, actual)]
    assert (StepKind.SHAPE, "broker") not in kinds
    assert (StepKind.SHAPE, "sensors-1") in kinds
    assert all(kind not in (StepKind.CREATE, StepKind.WIRE) for kind, _ in kinds)


@given(
    st.lists(st.tuples(st.sets(st.sampled_from(NAMES)), st.integers(1, 2)), min_size=1, max_size=6)
)
def test_any_sequence_of_files_ends_in_exactly_the_last_one(tmp_path_factory, files):
    journal = Journal(tmp_path_factory.mktemp("plan") / "journal")
    backend = FakeBackend(lab([]))
    for names, seed in files:
        topology = lab(sorted(names), seed)
        bring(backend, topology, journal)
        actual = backend.inspect()
        expected = {node.name for node in topology.nodes}
        assert actual.created == actual.wired == actual.started == expected
        assert plan_up(topology, actual) == ()
