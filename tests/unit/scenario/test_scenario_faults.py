"""What the file says of actions, moment by moment: how long they last, how often they come, and whom they strike."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.changes import Link, as_filed, ordered
from testbed.links.scenario_orders import link_orders
from testbed.scenario import Incident, compile_incidents, compile_timeline
from testbed.scenario.model import ONLY
from testbed.topology.model import (
    ActionKind,
    Happening,
    Node,
    NodeKind,
    Profile,
    Publish,
    Scenario,
    Shape,
    Topology,
)

SECOND = 1_000_000_000
NAMES = tuple(f"s-{i}" for i in range(10))
SLOW = Profile("slow", Shape(8_000), Shape(8_000))
LAB = Topology(
    "lab",
    1,
    (Profile("lan"), SLOW),
    tuple(Node(name, i + 1, NodeKind.SENSOR, "lan") for i, name in enumerate(NAMES)),
)


def unfolded(*happenings: Happening, seed: int = 1, duration_s: float = 100.0) -> list[Incident]:
    ordered_by_time = tuple(sorted(happenings, key=lambda each: each.at_s))
    scenario = Scenario(duration_s, actions=ordered_by_time)
    return list(compile_incidents(replace(LAB, seed=seed, scenario=scenario)))


def told(incidents: list[Incident]) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(each.at_ns / SECOND, each.kind.value, each.nodes) for each in incidents]


def flap(down_s: float, up_s: float, for_s: float, share: float = 1.0) -> Happening:
    details = (("down_s", down_s), ("up_s", up_s))
    return Happening(10.0, ActionKind.FLAP, NAMES, share, for_s, details)


@pytest.mark.parametrize(
    ("kind", "undone"),
    [
        (ActionKind.CRASH, "start"),
        (ActionKind.STOP, "start"),
        (ActionKind.CUT, "restore"),
        (ActionKind.LINK, "restore"),
    ],
)
def test_what_lasts_a_while_is_undone_for_those_whom_it_struck(kind, undone):
    struck, mended = unfolded(Happening(10.0, kind, NAMES, 0.3, for_s=5.0))
    assert (struck.at_ns, mended.at_ns) == (10 * SECOND, 15 * SECOND)
    assert len(struck.nodes) == 3
    assert (mended.kind.value, mended.nodes) == (undone, struck.nodes)


def test_what_is_undone_by_itself_leaves_what_others_broke():
    one = Happening(10.0, ActionKind.CUT, NAMES[:1], for_s=5.0)
    other = Happening(12.0, ActionKind.CUT, NAMES[:2])
    assert told(unfolded(one, other)) == [
        (10.0, "cut", ("s-0",)),
        (12.0, "cut", ("s-1",)),
        (15.0, "restore", ("s-0",)),
    ]


def test_a_link_flaps_until_its_time_is_over_and_works_then():
    assert [(at, what) for at, what, _ in told(unfolded(flap(1.0, 2.0, 7.5)))] == [
        *((10.0, "cut"), (11.0, "restore"), (13.0, "cut"), (14.0, "restore")),
        *((16.0, "cut"), (17.0, "restore")),
    ]


def test_a_share_of_links_that_flap_are_the_same_each_time():
    incidents = unfolded(flap(1.0, 1.0, 20.0, share=0.4))
    assert len({each.nodes for each in incidents}) == 1
    assert len(incidents[0].nodes) == 4


def churn(leave_per_s: float, join_per_s: float) -> Happening:
    details = (("leave_per_s", leave_per_s), ("join_per_s", join_per_s), ("by", "stop"))
    return Happening(0.0, ActionKind.CHURN, NAMES, for_s=1000.0, details=details)


def test_churn_has_the_rates_that_were_asked_for_and_the_seed_says_when_and_who():
    incidents = unfolded(churn(0.2, 10.0), duration_s=1000.0)
    leaves = [each for each in incidents if each.kind is ActionKind.STOP]
    assert 150 < len(leaves) < 250  # 200 expected; five standard deviations are 71
    assert all(len(each.nodes) == 1 for each in incidents)
    assert len({each.nodes for each in leaves}) == len(NAMES)
    assert unfolded(churn(0.2, 10.0), duration_s=1000.0) == incidents
    assert unfolded(churn(0.2, 10.0), duration_s=1000.0, seed=2) != incidents


def test_who_all_have_left_and_never_join_leave_once():
    incidents = unfolded(churn(5.0, 0.0), duration_s=1000.0)
    assert sorted(each.nodes[0] for each in incidents) == sorted(NAMES)


@given(
    st.lists(
        st.one_of(
            st.builds(
                Happening,
                st.floats(0, 100),
                st.sampled_from(
                    [ActionKind.CRASH, ActionKind.CUT, ActionKind.START, ActionKind.RESTORE]
                ),
                st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple),
                st.floats(0.01, 1),
                st.none() | st.floats(0.001, 50),
            ),
            st.builds(flap, st.floats(0.5, 5), st.floats(0.5, 5), st.floats(1, 50)),
            st.builds(churn, st.floats(0.01, 1), st.floats(0, 1)),
        ),
        max_size=8,
    ),
    st.integers(0, 5),
)
def test_nobody_is_struck_while_down_or_mended_while_up_whatever_comes_together(happenings, seed):
    down: set[str] = set()
    cut: set[str] = set()
    last = 0
    for incident in unfolded(*happenings, seed=seed):
        assert last <= incident.at_ns <= 100 * SECOND
        last = incident.at_ns
        broken = cut if incident.kind.of_links else down
        if incident.kind in (ActionKind.START, ActionKind.RESTORE):
            assert broken.issuperset(incident.nodes)
            broken.difference_update(incident.nodes)
        else:
            assert broken.isdisjoint(incident.nodes)
            broken.update(incident.nodes)


def after(now: dict[str, Link], incident: Incident) -> dict[str, Link]:
    for order, names in link_orders(incident, LAB):
        chosen = {name: now[name] for name in names}
        now = {**now, **ordered(order, chosen, as_filed(LAB), "relay")}
    return now


def test_a_changed_link_that_was_cut_meanwhile_is_restored_one_by_one():
    details = {"profile": "slow", "values": (("loss", 0.5),), "directions": ("up",)}
    changed = after(as_filed(LAB), Incident(0, ActionKind.LINK, ("s-0",), details))["s-0"]
    assert (changed.up.shape.rate_bps, changed.up.shape.loss) == (8_000, 0.5)
    assert changed.down == as_filed(LAB)["s-0"].down
    cut = after({"s-0": changed}, Incident(1, ActionKind.CUT, ("s-0",)))
    uncut = after(cut, Incident(2, ActionKind.RESTORE, ("s-0",), {ONLY: "cut"}))
    assert uncut == {"s-0": changed}
    reshaped = after(cut, Incident(2, ActionKind.RESTORE, ("s-0",), {ONLY: "link"}))["s-0"]
    assert reshaped.up.cut
    assert reshaped.up.shape == as_filed(LAB)["s-0"].up.shape
    assert after(cut, Incident(2, ActionKind.RESTORE, ("s-0",))) == {"s-0": as_filed(LAB)["s-0"]}


def test_a_share_publishes_and_another_node_changes_little():
    few = Publish(0.0, NAMES, "t", 1, 1, share=0.5)
    more = replace(few, nodes=NAMES[:-1])
    publishers = [
        {a.node for a in compile_timeline(replace(LAB, scenario=Scenario(1.0, publish=(each,))))}
        for each in (few, more)
    ]
    assert len(publishers[0]) == 5
    assert len(publishers[0] ^ publishers[1]) <= 2
