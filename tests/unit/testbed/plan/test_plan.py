"""The plan: the steps from the actual to the desired state, nothing more."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.fake import FakeBackend
from testbed.lab.apply import apply
from testbed.lab.journal import Journal
from testbed.plan import Actual, Fingerprints, Step, StepKind, plan_up
from testbed.progress import ignore
from testbed.topology.model import Method, Node, NodeKind, Profile, Topology

NAMES = [f"sensors-{i}" for i in range(1, 7)]


def lab(names: list[str], seed: int = 1) -> Topology:
    broker = Node("broker", 1, NodeKind.BROKER, "lan", address="10.77.0.1")
    sensors = [
        Node(name, NAMES.index(name) + 2, NodeKind.SENSOR, "lan", address=f"10.77.0.{i}")
        for i, name in enumerate(names, 2)
    ]
    return Topology("lab", seed, (Profile("lan"),), (broker, *sensors))


def valleys() -> Topology:
    """Two routers with a sensor each."""
    routers = [
        Node(name, number, NodeKind.ROUTER, "uplink", address=f"10.77.0.{number}")
        for number, name in ((8, "west"), (9, "east"))
    ]
    plain = lab(NAMES[:2])
    broker, *sensors = plain.nodes
    behind = [
        replace(node, router=router.name) for node, router in zip(sensors, routers, strict=True)
    ]
    return replace(
        plain, profiles=(Profile("lan"), Profile("uplink")), nodes=(broker, *routers, *behind)
    )


def whole(topology: Topology) -> Actual:
    """A lab in the desired state."""
    names = frozenset(node.name for node in topology.nodes)
    marks = {node.name: Fingerprints(topology).of(node) for node in topology.nodes}
    started = names - {node.name for node in topology.of_kind(NodeKind.ROUTER)}
    return Actual(True, names, names, names, names, started, marks)


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
    assert plan_up(changed, whole(topology)) == (
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


def moved(topology: Topology, name: str, **changes: Any) -> Topology:
    nodes = (replace(n, **changes) if n.name == name else n for n in topology.nodes)
    return replace(topology, nodes=tuple(nodes))


def made_anew(before: Topology, after: Topology) -> set[str]:
    steps = plan_up(after, whole(before))
    return {step.target for step in steps if step.kind is StepKind.REMOVE}


def test_a_change_of_a_routers_link_recreates_the_router_and_the_nodes_behind_it():
    before = valleys()
    slower = replace(before, profiles=(Profile("lan"), Profile("uplink", mtu=576)))
    assert made_anew(before, moved(before, "west", profile="lan")) == {"west", "sensors-1"}
    assert made_anew(before, slower) == {"west", "east", "sensors-1", "sensors-2"}


def test_a_node_that_moves_to_another_router_moves_alone():
    before = valleys()
    assert made_anew(before, moved(before, "sensors-1", router="east")) == {"sensors-1"}


def test_a_change_of_an_outer_routers_link_recreates_everything_behind_it():
    before = moved(valleys(), "west", router="east")
    slower = moved(before, "east", profile="lan")
    assert made_anew(before, slower) == {"west", "east", "sensors-1", "sensors-2"}
    assert made_anew(before, valleys()) == {"west", "sensors-1"}


def test_another_delivery_on_a_link_recreates_its_broker_and_all_clients_of_the_broker():
    before = valleys()
    narrow = Method("fifo", (("limit_bytes", 5),))
    ours = {"broker", "sensors-1", "sensors-2"}
    assert made_anew(before, moved(before, "sensors-1", delivery=narrow)) == ours
    assert made_anew(before, replace(before, delivery=narrow)) == ours
    explicit_default = moved(before, "sensors-1", delivery=before.delivery)
    assert "broker" not in made_anew(before, explicit_default)


def test_a_router_without_members_goes_alone():
    before = moved(valleys(), "sensors-1", router="east")
    after = replace(before, nodes=tuple(n for n in before.nodes if n.name != "west"))
    assert made_anew(before, after) == {"west"}


def test_a_change_of_the_brokers_link_recreates_its_clients_but_no_other_router():
    before = moved(moved(valleys(), "broker", router="west"), "sensors-1", router="east")
    slower = replace(before, profiles=(Profile("lan", mtu=576), Profile("uplink")))
    clients = {"broker", "sensors-1", "sensors-2"}
    assert made_anew(before, slower) == clients
    assert made_anew(before, moved(before, "west", profile="lan")) == clients | {"west"}


def test_a_dead_node_that_has_left_the_file_is_taken_away():
    before = lab(NAMES[:2])
    actual = whole(before)
    without = actual.created - {"sensors-2"}
    died = replace(actual, created=without, started=without)
    assert plan_up(lab(NAMES[:1]), died) == (
        Step(StepKind.REMOVE, "sensors-2", "no longer in the topology"),
    )


def test_only_the_half_that_is_missing_is_done_after_a_crash():
    topology = lab(NAMES[:2])
    names = frozenset(node.name for node in topology.nodes)
    marks = {node.name: Fingerprints(topology).of(node) for node in topology.nodes}
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


def broker_network(brokers: int = 2) -> Topology:
    """Brokers b-0, b-1, ...; the first two are the brokers of s-0 and s-1."""
    nodes = [
        *(Node(f"b-{i}", i + 10, NodeKind.BROKER, "lan", address=f"b{i}") for i in range(brokers)),
        *(Node(f"s-{i}", i + 1, NodeKind.SENSOR, "lan", brokers=(f"b-{i}",)) for i in range(2)),
    ]
    return Topology("brokers", 1, (Profile("lan"),), tuple(nodes), overlay=Method("sg-tbps"))


def test_another_broker_recreates_all_brokers_but_no_client_that_keeps_its_brokers():
    before = broker_network()
    assert made_anew(before, broker_network(3)) == {"b-0", "b-1"}
    assert made_anew(before, moved(broker_network(3), "s-1", brokers=("b-2",))) == {
        "b-0",
        "b-1",
        "s-1",
    }


def test_a_new_address_of_a_broker_recreates_its_clients_and_all_brokers():
    before = broker_network()
    assert made_anew(before, moved(before, "b-1", address="x")) == {"b-0", "b-1", "s-1"}


def test_in_an_overlay_a_change_of_a_brokers_link_recreates_no_clients():
    before = replace(broker_network(), profiles=(Profile("lan"), Profile("uplink")))
    assert made_anew(before, moved(before, "b-1", profile="uplink")) == {"b-1"}
