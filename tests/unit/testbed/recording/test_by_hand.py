"""Changes of links by hand are replayed at the same times and in the same way."""

import pytest

from testbed.links.changes import BOTH, Action, LinkOrder
from testbed.links.scenario_orders import link_orders
from testbed.recording.actions import link_actions
from testbed.topology import load_text

START_NS = 1_000
LAB = load_text(
    "name: lab\nnodes: {broker: {kind: broker, link: lan}, siren: {kind: subscriber, link: lan, topics: [a]}}\n"
    "scenario: {duration: 1s}",
    "lab.yaml",
)


def change(order: LinkOrder, t_ns: int) -> dict[str, object]:
    """The entry that `testbed link` records."""
    shapes = {"shapes": order.shapes()} if order.action is Action.SET else {}
    about = {"action": order.action.value, "links": ["siren"], "directions": [*order.directions]}
    return {"t_ns": t_ns, **about, **shapes}


@pytest.mark.parametrize(
    "order",
    [
        LinkOrder(Action.CUT),
        LinkOrder(Action.CUT, ("up",)),
        LinkOrder(Action.RESTORE, ("down",)),
        LinkOrder(Action.RESET),
        LinkOrder(Action.SET, ("up",), None, {"rate_bps": 64_000.0, "loss": 0.01}),
    ],
)
def test_an_order_comes_back_as_it_was_given(order):
    (action,) = link_actions([change(order, START_NS + 5)], [], START_NS)
    assert action.at_ns == 5
    assert link_orders(action, LAB) == [(order, ("siren",))]


def test_both_directions_of_a_change_come_back_one_after_the_other():
    changed = change(LinkOrder(Action.SET, BOTH, LAB.profile("lan"), {"delay_s": 0.2}), START_NS)
    orders = [
        order
        for action in link_actions([changed], [], START_NS)
        for order, _ in link_orders(action, LAB)
    ]
    assert {order.directions: order.shapes() for order in orders} == {
        (direction,): {direction: changed["shapes"][direction]} for direction in BOTH
    }


def test_changes_of_the_scenario_are_not_repeated_and_earlier_changes_hold_from_its_start():
    cut = {"t_ns": 1_020, "due_ns": 1_010, "action": "cut", "targets": ["siren"], "details": {}}
    crash = {**cut, "t_ns": 1_060, "due_ns": 1_040, "action": "crash"}
    changes = [change(LinkOrder(Action.CUT), t) for t in (500, 1_015, 1_050)]
    changed = link_actions(changes, [cut, crash], START_NS)
    assert [one.at_ns for one in changed] == [0, 50]
