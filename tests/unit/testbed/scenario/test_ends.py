"""Actions with a duration end only for themselves, and at the latest when the scenario ends."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.changes import LinkState, apply_order, configured_links
from testbed.links.scenario_orders import link_orders
from testbed.scenario import TimedAction, compile_actions
from testbed.scenario.schedule import Schedule
from testbed.scenario.triggers import Reception
from testbed.topology.model import (
    ActionEvent,
    ActionKind,
    Node,
    NodeKind,
    Profile,
    Scenario,
    Topology,
    Trigger,
    TriggerKind,
)

SECOND = 1_000_000_000
END_S = 20
LAB = Topology(
    "lab", 1, (Profile("lan"),), (Node("siren", 1, NodeKind.SUBSCRIBER, "lan", topics=("t",)),)
)
FLAP = (("down_s", 2.0), ("up_s", 1.0))


def lab(*events: ActionEvent, speed: float = 1.0) -> Topology:
    actions = tuple(sorted(events, key=lambda each: each.at_s))
    return replace(LAB, scenario=Scenario(float(END_S), actions=actions, speed=speed))


def action_event(kind: ActionKind, at_s: float, for_s: float | None = None) -> ActionEvent:
    return ActionEvent(at_s, kind, ("siren",), for_s=for_s)


def change(at_s: float, for_s: float | None, **values: float) -> ActionEvent:
    details = (("profile", None), ("values", (*values.items(),)), ("directions", ("up", "down")))
    return ActionEvent(at_s, ActionKind.LINK, ("siren",), for_s=for_s, details=details)


def kinds_and_times(
    actions: tuple[TimedAction, ...] | list[TimedAction],
) -> list[tuple[float, str]]:
    return [(each.at_ns / SECOND, each.kind.value) for each in actions]


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (action_event(ActionKind.CUT, 15, 5), "restore"),
        (action_event(ActionKind.CRASH, 15, 5), "start"),
        (action_event(ActionKind.STOP, 15, 5), "start"),
        (change(15, 5, loss=0.5), "restore"),
    ],
)
def test_actions_that_last_to_the_end_are_undone_there(event, end):
    assert kinds_and_times(compile_actions(lab(event))) == [(15, event.kind.value), (20, end)]
    faster = kinds_and_times(compile_actions(lab(event, speed=2.0)))
    assert faster == [(7.5, event.kind.value), (10, end)]


def test_a_link_that_flaps_to_the_end_works_afterwards():
    flap = ActionEvent(13.0, ActionKind.FLAP, ("siren",), for_s=7.0, details=FLAP)
    found = kinds_and_times(compile_actions(lab(flap)))
    assert found[-2:] == [(19, "cut"), (20, "restore")]


def test_actions_without_a_duration_stay():
    for kind in (ActionKind.CUT, ActionKind.CRASH):
        assert kinds_and_times(compile_actions(lab(action_event(kind, 15)))) == [(15, kind.value)]


def test_triggered_actions_end_with_the_scenario_at_the_latest():
    received = Trigger(TriggerKind.RECEIVED)
    plan = Schedule(lab(replace(action_event(ActionKind.CUT, 0, 5), when=received)))
    plan.on_receptions([Reception(18 * SECOND, "siren", 1, "t", 0)], 18 * SECOND)
    assert kinds_and_times(plan.due(END_S * SECOND)) == [(18, "mark"), (18, "cut")]
    assert plan.next_ns is None
    assert kinds_and_times(plan.close(END_S * SECOND)) == [(20, "restore")]
    assert plan.close(END_S * SECOND) == []


def test_the_end_of_one_cut_leaves_the_next():
    first, repair, lasting = (
        action_event(ActionKind.CUT, 1, 9),
        action_event(ActionKind.RESTORE, 6),
        action_event(ActionKind.CUT, 7),
    )
    found = kinds_and_times(compile_actions(lab(first, repair, lasting)))
    assert found == [(1, "cut"), (6, "restore"), (7, "cut")]


def test_the_end_of_one_crash_leaves_the_next():
    first, repair, lasting = (
        action_event(ActionKind.CRASH, 1, 9),
        action_event(ActionKind.START, 6),
        action_event(ActionKind.STOP, 7, 6),
    )
    found = kinds_and_times(compile_actions(lab(first, repair, lasting)))
    assert found == [(1, "crash"), (6, "start"), (7, "stop"), (13, "start")]


def links_after(topology: Topology, until_s: float) -> LinkState:
    configured = configured_links(topology)
    now = configured
    for action in compile_actions(topology):
        if action.at_ns <= until_s * SECOND:
            for order, names in link_orders(action, topology):
                chosen = {name: now[name] for name in names}
                now = {**now, **apply_order(order, chosen, configured, "relay")}
    return now["siren"]


def test_a_change_that_ends_leaves_other_changes():
    both = lab(change(1, 6, loss=0.5), change(3, 8, rate_bps=8_000))
    shapes = {at: links_after(both, at).up.shape for at in (2, 5, 8, 12)}
    assert [(one.loss, one.rate_bps) for one in shapes.values()] == [
        *((0.5, None), (0.5, 8_000), (0.0, 8_000), (0.0, None)),
    ]


@given(
    st.lists(
        st.tuples(
            st.integers(0, END_S - 1),
            st.none() | st.integers(1, END_S),
            st.dictionaries(
                st.sampled_from(["loss", "rate_bps"]), st.sampled_from([0.25, 0.5]), min_size=1
            ),
        ),
        max_size=6,
    ),
    st.none() | st.integers(0, END_S - 1),
    st.integers(0, END_S),
)
def test_a_link_is_as_the_file_says_but_for_all_changes_that_last(changes, repaired_s, now_s):
    """Compared with all changes that have begun and not ended, applied in their order."""
    events = [change(at, for_s, **values) for at, for_s, values in changes]
    repairs = [] if repaired_s is None else [action_event(ActionKind.RESTORE, repaired_s + 0.5)]
    expected = asdict(configured_links(LAB)["siren"].up.shape)
    for at, for_s, values in sorted(changes, key=lambda one: one[0]):
        over_s = END_S + 1 if for_s is None else min(END_S, at + for_s)
        gone = repaired_s is not None and at <= repaired_s < now_s
        if at <= now_s < over_s and not gone:
            expected |= values
    assert asdict(links_after(lab(*events, *repairs), now_s).up.shape) == expected


def test_the_same_lasting_change_again_and_again_is_kept_once():
    again = [change(at, None, loss=0.5) for at in range(10)]
    found = kinds_and_times(compile_actions(lab(*again, change(0.5, 12, rate_bps=8_000))))
    assert found[-2:] == [(12.5, "restore"), (12.5, "link")]


def test_a_replay_ends_actions_that_ended_just_after_the_scenario():
    late = 20_004_000_000
    known = [
        TimedAction(15 * SECOND, ActionKind.LOAD, ("siren",), {"number": 1}),
        TimedAction(late, ActionKind.UNLOAD, ("siren",), {"number": 1}),
        TimedAction(late, ActionKind.RESTORE, ("siren",)),
    ]
    plan = Schedule(lab(), known)
    assert kinds_and_times(plan.due(END_S * SECOND)) == [(15, "load")]
    assert kinds_and_times(plan.close(END_S * SECOND)) == [(20, "unload"), (20, "restore")]
    assert kinds_and_times(plan.performed) == [(15, "load"), (20, "unload"), (20, "restore")]


def test_an_interrupted_scenario_ends_only_actions_that_have_begun():
    known = [
        TimedAction(1 * SECOND, ActionKind.LOAD, ("siren",), {"number": 1}),
        TimedAction(9 * SECOND, ActionKind.CRASH, ("siren",)),
        TimedAction(10 * SECOND, ActionKind.START, ("siren",)),
        TimedAction(11 * SECOND, ActionKind.PARTITION, ("siren",), {"number": 2}),
        TimedAction(12 * SECOND, ActionKind.UNLOAD, ("siren",), {"number": 1}),
        TimedAction(13 * SECOND, ActionKind.HEAL, ("siren",), {"number": 2}),
    ]
    plan = Schedule(lab(), known)
    plan.due(5 * SECOND)
    assert kinds_and_times(plan.close(5 * SECOND)) == [(5, "unload")]
