"""Actions of a file, moment by moment: how long they last, how often they occur, and which nodes they affect."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.changes import LinkState, apply_order, configured_links
from testbed.links.scenario_orders import link_orders
from testbed.scenario import (
    TimedAction,
    compile_actions,
    compile_timeline,
    unreachable_at_the_end,
)
from testbed.scenario.model import ONLY
from testbed.topology.model import (
    ActionEvent,
    ActionKind,
    Node,
    NodeKind,
    Profile,
    PublishEvent,
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


def timed_actions(
    *events: ActionEvent, seed: int = 1, duration_s: float = 100.0
) -> list[TimedAction]:
    ordered_by_time = tuple(sorted(events, key=lambda each: each.at_s))
    scenario = Scenario(duration_s, actions=ordered_by_time)
    return list(compile_actions(replace(LAB, seed=seed, scenario=scenario)))


def summary(actions: list[TimedAction]) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(each.at_ns / SECOND, each.kind.value, each.nodes) for each in actions]


def flap(down_s: float, up_s: float, for_s: float, share: float = 1.0) -> ActionEvent:
    details = (("down_s", down_s), ("up_s", up_s))
    return ActionEvent(10.0, ActionKind.FLAP, NAMES, share, for_s, details)


@pytest.mark.parametrize(
    ("kind", "undone"),
    [
        (ActionKind.CRASH, "start"),
        (ActionKind.STOP, "start"),
        (ActionKind.CUT, "restore"),
        (ActionKind.LINK, "restore"),
    ],
)
def test_a_temporary_action_is_undone_for_the_nodes_that_it_affected(kind, undone):
    action_event, repair = timed_actions(ActionEvent(10.0, kind, NAMES, 0.3, for_s=5.0))
    assert (action_event.at_ns, repair.at_ns) == (10 * SECOND, 15 * SECOND)
    assert len(action_event.nodes) == 3
    assert (repair.kind.value, repair.nodes) == (undone, action_event.nodes)


def test_the_end_of_a_temporary_cut_leaves_other_cuts():
    one = ActionEvent(10.0, ActionKind.CUT, NAMES[:1], for_s=5.0)
    other = ActionEvent(12.0, ActionKind.CUT, NAMES[:2])
    assert summary(timed_actions(one, other)) == [
        (10.0, "cut", ("s-0",)),
        (12.0, "cut", ("s-1",)),
        (15.0, "restore", ("s-0",)),
    ]


def test_a_link_flaps_until_its_time_is_over_and_works_then():
    assert [(at, what) for at, what, _ in summary(timed_actions(flap(1.0, 2.0, 7.5)))] == [
        *((10.0, "cut"), (11.0, "restore"), (13.0, "cut"), (14.0, "restore")),
        *((16.0, "cut"), (17.0, "restore")),
    ]


def test_a_share_of_links_that_flap_are_the_same_each_time():
    actions = timed_actions(flap(1.0, 1.0, 20.0, share=0.4))
    assert len({each.nodes for each in actions}) == 1
    assert len(actions[0].nodes) == 4


def churn(leave_per_s: float, join_per_s: float) -> ActionEvent:
    details = (("leave_per_s", leave_per_s), ("join_per_s", join_per_s), ("by", "stop"))
    return ActionEvent(0.0, ActionKind.CHURN, NAMES, for_s=1000.0, details=details)


def test_churn_has_the_requested_rates_and_the_seed_decides_times_and_nodes():
    actions = timed_actions(churn(0.2, 10.0), duration_s=1000.0)
    leaves = [each for each in actions if each.kind is ActionKind.STOP]
    assert 150 < len(leaves) < 250  # 200 expected; five standard deviations are 71
    assert all(len(each.nodes) == 1 for each in actions)
    assert len({each.nodes for each in leaves}) == len(NAMES)
    assert timed_actions(churn(0.2, 10.0), duration_s=1000.0) == actions
    assert timed_actions(churn(0.2, 10.0), duration_s=1000.0, seed=2) != actions


def test_nodes_that_never_rejoin_leave_once():
    actions = timed_actions(churn(5.0, 0.0), duration_s=1000.0)
    assert sorted(each.nodes[0] for each in actions) == sorted(NAMES)


@given(
    st.lists(
        st.one_of(
            st.builds(
                ActionEvent,
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
def test_no_node_is_broken_while_down_or_repaired_while_up_for_any_mix_of_actions(events, seed):
    down: set[str] = set()
    cut: set[str] = set()
    last = 0
    for action in timed_actions(*events, seed=seed):
        assert last <= action.at_ns <= 100 * SECOND
        last = action.at_ns
        broken = cut if action.kind.of_links else down
        if action.kind in (ActionKind.START, ActionKind.RESTORE):
            assert broken.issuperset(action.nodes)
            broken.difference_update(action.nodes)
        else:
            assert broken.isdisjoint(action.nodes)
            broken.update(action.nodes)


def after(now: dict[str, LinkState], action: TimedAction) -> dict[str, LinkState]:
    for order, names in link_orders(action, LAB):
        chosen = {name: now[name] for name in names}
        now = {**now, **apply_order(order, chosen, configured_links(LAB), "relay")}
    return now


def test_a_changed_link_that_was_cut_meanwhile_is_restored_one_by_one():
    details = {"profile": "slow", "values": (("loss", 0.5),), "directions": ("up",)}
    changed = after(configured_links(LAB), TimedAction(0, ActionKind.LINK, ("s-0",), details))[
        "s-0"
    ]
    assert (changed.up.shape.rate_bps, changed.up.shape.loss) == (8_000, 0.5)
    assert changed.down == configured_links(LAB)["s-0"].down
    cut = after({"s-0": changed}, TimedAction(1, ActionKind.CUT, ("s-0",)))
    uncut = after(cut, TimedAction(2, ActionKind.RESTORE, ("s-0",), {ONLY: "cut"}))
    assert uncut == {"s-0": changed}
    reshaped = after(cut, TimedAction(2, ActionKind.RESTORE, ("s-0",), {ONLY: "link"}))["s-0"]
    assert reshaped.up.cut
    assert reshaped.up.shape == configured_links(LAB)["s-0"].up.shape
    assert after(cut, TimedAction(2, ActionKind.RESTORE, ("s-0",))) == {
        "s-0": configured_links(LAB)["s-0"]
    }


def test_a_share_publishes_and_another_node_changes_little():
    few = PublishEvent(0.0, NAMES, "t", 1, 1, share=0.5)
    more = replace(few, nodes=NAMES[:-1])
    publishers = [
        {a.node for a in compile_timeline(replace(LAB, scenario=Scenario(1.0, publish=(each,))))}
        for each in (few, more)
    ]
    assert len(publishers[0]) == 5
    assert len(publishers[0] ^ publishers[1]) <= 2


def test_nodes_that_stay_down_or_cut_off_are_unreachable_at_the_end() -> None:
    actions = timed_actions(
        ActionEvent(1.0, ActionKind.CUT, ("s-0", "s-1")),
        ActionEvent(2.0, ActionKind.CRASH, ("s-2", "s-3")),
        ActionEvent(3.0, ActionKind.RESTORE, ("s-0",)),
        ActionEvent(4.0, ActionKind.START, ("s-2",)),
        ActionEvent(5.0, ActionKind.CUT, ("s-4",), for_s=1.0),
    )
    assert unreachable_at_the_end(actions) == {"s-1", "s-3"}
