"""Faults of a scenario: seeded, never twice for a node, and repaired only where something is broken."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario import (
    Publication,
    TimedAction,
    compile_actions,
    expected_with_downtimes,
    without_downtimes,
)
from testbed.topology.model import (
    ActionEvent,
    ActionKind,
    Method,
    Node,
    NodeKind,
    Profile,
    Scenario,
    Topology,
)

FAULTS_AND_REPAIRS = (
    ActionKind.CRASH,
    ActionKind.STOP,
    ActionKind.START,
    ActionKind.CUT,
    ActionKind.RESTORE,
)
NAMES = tuple(f"b-{i}" for i in range(10))
NODES = tuple(Node(name, i + 1, NodeKind.BROKER, "lan") for i, name in enumerate(NAMES))
FAULTS = st.lists(
    st.builds(
        ActionEvent,
        st.floats(0, 100),
        st.sampled_from(FAULTS_AND_REPAIRS),
        st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple),
        st.floats(0.01, 1),
    )
).map(lambda faults: tuple(sorted(faults, key=lambda fault: fault.at_s)))


def lab(*faults: ActionEvent, seed: int = 1) -> Topology:
    return Topology(
        "lab", seed, (Profile("lan"),), NODES, scenario=Scenario(100.0, actions=tuple(faults))
    )


def test_a_share_affects_its_fraction_of_nodes_chosen_by_the_seed() -> None:
    crash = ActionEvent(5.0, ActionKind.CRASH, NAMES, 0.2)
    (action,) = compile_actions(lab(crash))
    assert (action.at_ns, len(action.nodes)) == (5_000_000_000, 2)
    assert compile_actions(lab(crash)) == (action,)
    others = {compile_actions(lab(crash, seed=seed))[0].nodes for seed in range(20)}
    assert len(others) > 5


def test_a_small_share_affects_at_least_one_node() -> None:
    (action,) = compile_actions(lab(ActionEvent(0.0, ActionKind.STOP, NAMES, 0.001)))
    assert len(action.nodes) == 1


def test_exactly_the_crashed_nodes_are_started_again() -> None:
    crash, restart = (
        ActionEvent(1.0, ActionKind.CRASH, NAMES, 0.3),
        ActionEvent(2.0, ActionKind.START, NAMES),
    )
    affected, repaired = compile_actions(lab(crash, restart))
    assert affected.nodes == repaired.nodes


@given(FAULTS, st.integers(0, 5))
def test_no_node_is_broken_while_down_or_repaired_while_up(
    faults: tuple[ActionEvent, ...], seed: int
) -> None:
    down: set[str] = set()
    cut: set[str] = set()
    for action in compile_actions(lab(*faults, seed=seed)):
        broken = cut if action.kind.of_links else down
        assert action.nodes
        if action.kind in (ActionKind.START, ActionKind.RESTORE):
            assert broken.issuperset(action.nodes)
            broken.difference_update(action.nodes)
        else:
            assert broken.isdisjoint(action.nodes)
            broken.update(action.nodes)


def test_nodes_that_are_down_publish_nothing() -> None:
    every = tuple(Publication(at, "b-0", "t", 1, 1) for at in range(6))
    other = Publication(3, "b-1", "t", 1, 1)
    actions = (
        TimedAction(2, ActionKind.CRASH, ("b-0",)),
        TimedAction(3, ActionKind.CUT, ("b-1",)),
        TimedAction(4, ActionKind.START, ("b-0",)),
    )
    left = without_downtimes((*every, other), actions)
    assert left == (*(replace(each) for each in every if each.at_ns not in (2, 3)), other)


def test_messages_missed_by_a_stopped_subscriber_are_expected_only_with_custody() -> None:
    siren = Node("siren", 20, NodeKind.SUBSCRIBER, "lan", topics=("t",))
    star = replace(lab(), nodes=(*NODES, siren))
    timeline = tuple(Publication(5, "b-0", "t", level, 1) for level in (1, 2, 3, 5))
    actions = (
        TimedAction(4, ActionKind.STOP, ("siren",)),
        TimedAction(6, ActionKind.START, ("siren",)),
    )
    overlay = replace(star, overlay=Method("sg-tbps"))
    assert expected_with_downtimes(overlay, timeline, ())["siren"] == 4
    assert expected_with_downtimes(overlay, timeline, actions)["siren"] == 2
    assert expected_with_downtimes(star, timeline, actions)["siren"] == 0
