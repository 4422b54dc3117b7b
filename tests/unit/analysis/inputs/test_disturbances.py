"""Faults and link changes of the manifest as intervals of time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.disturbances import Disturbance, disturbances
from analysis.inputs.manifest import NEVER_NS


def action(t_ns: int, kind: str, *targets: str, **details: Any) -> dict[str, Any]:
    return {
        "t_ns": t_ns,
        "due_ns": t_ns,
        "action": kind,
        "targets": [*targets],
        "details": details,
    }


def change(t_ns: int, kind: str, *links: str, **more: Any) -> dict[str, Any]:
    entry = {"t_ns": t_ns, "action": kind, "links": [*links], "directions": ["up", "down"]}
    return {**entry, **more}


def spans(manifest: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (one.kind, one.targets, one.from_ns, one.until_ns if one.until_ns != NEVER_NS else None)
        for one in disturbances(manifest)
    ]


@pytest.mark.parametrize(
    ("begin", "end"),
    [("cut", "restore"), ("crash", "start"), ("stop", "start"), ("link", "restore")],
)
def test_a_disturbance_lasts_until_it_is_undone_for_its_node(begin, end):
    entries = [action(1, begin, "a", "b"), action(5, end, "b"), action(7, end, "a")]
    assert spans({"actions": entries}) == [(begin, ("a",), 1, 7), (begin, ("b",), 1, 5)]
    assert spans({"actions": entries[:2]}) == [(begin, ("a",), 1, None), (begin, ("b",), 1, 5)]


def test_a_restore_of_cuts_leaves_link_changes():
    entries = [action(1, "link", "a"), action(2, "cut", "a"), action(3, "restore", "a", only="cut")]
    assert spans({"actions": entries}) == [("link", ("a",), 1, None), ("cut", ("a",), 2, 3)]


def test_partitions_and_background_traffic_end_by_their_number():
    entries = [
        action(1, "partition", "a", "b", number=1, sides=[["a"], ["b"]]),
        action(2, "partition", "a", "c", number=2, sides=[["a"], ["c"]]),
        action(3, "heal", "a", "c", number=2),
        action(4, "load", "a", number=3, to="b"),
        action(5, "unload", "a", number=3),
    ]
    assert [(kind, begin, end) for kind, _, begin, end in spans({"actions": entries})] == [
        ("partition", 1, None),
        ("partition", 2, 3),
        ("load", 4, 5),
    ]


def test_an_action_of_a_plugin_is_over_at_once_and_marks_are_left_out():
    entries = [action(1, "flood", "a"), action(2, "mark", name="rain"), action(3, "start", "z")]
    assert spans({"actions": entries}) == [("flood", ("a",), 1, 1)]


def test_link_changes_by_hand_are_disturbances_and_those_of_actions_are_not_counted_twice():
    manifest = {
        "actions": [{**action(10, "cut", "a"), "due_ns": 8}],
        "link_changes": [
            change(3, "set", "a", shapes={}),
            change(5, "reset", "a"),
            change(9, "cut", "a"),
        ],
    }
    assert spans(manifest) == [("set", ("a",), 3, 5), ("cut", ("a",), 10, None)]


def one(kind: str, *targets: str, **details: Any) -> Disturbance:
    (found,) = disturbances({"actions": [action(1, kind, *targets, **details)]})
    return found


LINKS = (("a", "up"), ("r", "up"), ("b", "down"))


@pytest.mark.parametrize(
    ("disturbance", "blocks"),
    [
        (one("cut", "b"), True),
        (one("cut", "r"), True),
        (one("cut", "x"), False),
        (one("cut", "b", directions=["down"]), True),
        (one("cut", "b", directions=["up"]), False),
        (one("crash", "a"), True),
        (one("crash", "r"), False),
        (one("partition", "a", "b", sides=[["a", "x"], ["b"]]), True),
        (one("partition", "a", "x", sides=[["a", "b"], ["x"]]), False),
        (one("partition", "a", "x", sides=[["a"], ["x"]]), False),
        (one("link", "a"), False),
    ],
)
def test_a_hop_is_blocked_by_what_stops_its_nodes_or_links(disturbance, blocks):
    assert disturbance.blocks("a", "b", LINKS) is blocks


kinds = st.sampled_from(["cut", "restore", "crash", "start", "link", "exec"])


@given(st.lists(st.tuples(st.integers(0, 50), kinds), max_size=12))
def test_disturbances_begin_in_order_and_end_after_their_begin(entries):
    found = disturbances({"actions": [action(t_ns, kind, "a") for t_ns, kind in entries]})
    assert [each.from_ns for each in found] == sorted(each.from_ns for each in found)
    assert all(each.until_ns >= each.from_ns for each in found)
