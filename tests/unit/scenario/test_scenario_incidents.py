"""What fails in a scenario: seeded, never twice, and mended only where it is broken."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario import (
    Action,
    Incident,
    compile_incidents,
    expected_despite,
    without_the_fallen,
)
from testbed.topology.model import (
    ActionKind,
    Happening,
    Method,
    Node,
    NodeKind,
    Profile,
    Scenario,
    Topology,
)

BREAKING_AND_MENDING = (
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
        Happening,
        st.floats(0, 100),
        st.sampled_from(BREAKING_AND_MENDING),
        st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple),
        st.floats(0.01, 1),
    )
).map(lambda faults: tuple(sorted(faults, key=lambda fault: fault.at_s)))


def lab(*faults: Happening, seed: int = 1) -> Topology:
    return Topology(
        "lab", seed, (Profile("lan"),), NODES, scenario=Scenario(100.0, actions=tuple(faults))
    )


def test_a_share_strikes_so_many_and_the_seed_says_whom() -> None:
    crash = Happening(5.0, ActionKind.CRASH, NAMES, 0.2)
    (incident,) = compile_incidents(lab(crash))
    assert (incident.at_ns, len(incident.nodes)) == (5_000_000_000, 2)
    assert compile_incidents(lab(crash)) == (incident,)
    others = {compile_incidents(lab(crash, seed=seed))[0].nodes for seed in range(20)}
    assert len(others) > 5


def test_a_small_share_still_strikes_somebody() -> None:
    (incident,) = compile_incidents(lab(Happening(0.0, ActionKind.STOP, NAMES, 0.001)))
    assert len(incident.nodes) == 1


def test_all_that_fell_are_started_again_and_nobody_else() -> None:
    crash, restart = (
        Happening(1.0, ActionKind.CRASH, NAMES, 0.3),
        Happening(2.0, ActionKind.START, NAMES),
    )
    struck, mended = compile_incidents(lab(crash, restart))
    assert struck.nodes == mended.nodes


@given(FAULTS, st.integers(0, 5))
def test_nobody_is_struck_while_down_or_mended_while_up(
    faults: tuple[Happening, ...], seed: int
) -> None:
    down: set[str] = set()
    cut: set[str] = set()
    for incident in compile_incidents(lab(*faults, seed=seed)):
        broken = cut if incident.kind.of_links else down
        assert incident.nodes
        if incident.kind in (ActionKind.START, ActionKind.RESTORE):
            assert broken.issuperset(incident.nodes)
            broken.difference_update(incident.nodes)
        else:
            assert broken.isdisjoint(incident.nodes)
            broken.update(incident.nodes)


def test_who_is_down_publishes_nothing() -> None:
    every = tuple(Action(at, "b-0", "t", 1, 1) for at in range(6))
    other = Action(3, "b-1", "t", 1, 1)
    incidents = (
        Incident(2, ActionKind.CRASH, ("b-0",)),
        Incident(3, ActionKind.CUT, ("b-1",)),
        Incident(4, ActionKind.START, ("b-0",)),
    )
    left = without_the_fallen((*every, other), incidents)
    assert left == (*(replace(each) for each in every if each.at_ns not in (2, 3)), other)


def test_what_a_subscriber_misses_while_it_is_down_is_expected_only_with_custody() -> None:
    siren = Node("siren", 20, NodeKind.SUBSCRIBER, "lan", topics=("t",))
    star = replace(lab(), nodes=(*NODES, siren))
    timeline = tuple(Action(5, "b-0", "t", level, 1) for level in (1, 2, 3, 5))
    incidents = (
        Incident(4, ActionKind.STOP, ("siren",)),
        Incident(6, ActionKind.START, ("siren",)),
    )
    mesh = replace(star, overlay=Method("sg-tbps"))
    assert expected_despite(mesh, timeline, ())["siren"] == 4
    assert expected_despite(mesh, timeline, incidents)["siren"] == 2
    assert expected_despite(star, timeline, incidents)["siren"] == 0
