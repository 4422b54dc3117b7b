"""Links that were changed by hand are changed again, at the same times and in the same way."""

import pytest

from testbed.links.changes import BOTH, Action, Order
from testbed.links.scenario_orders import link_orders
from testbed.recording.actions import link_incidents
from testbed.topology import load_text

START_NS = 1_000
LAB = load_text(
    "name: lab\nnodes: {broker: {kind: broker, link: lan}, siren: {kind: subscriber, link: lan, topics: [a]}}\n"
    "scenario: {duration: 1s}",
    "lab.yaml",
)


def change(order: Order, t_ns: int) -> dict[str, object]:
    """As `testbed link` puts it on record."""
    shapes = {"shapes": order.shapes()} if order.action is Action.SET else {}
    about = {"action": order.action.value, "links": ["siren"], "directions": [*order.directions]}
    return {"t_ns": t_ns, **about, **shapes}


@pytest.mark.parametrize(
    "order",
    [
        Order(Action.CUT),
        Order(Action.CUT, ("up",)),
        Order(Action.RESTORE, ("down",)),
        Order(Action.RESET),
        Order(Action.SET, ("up",), None, {"rate_bps": 64_000.0, "loss": 0.01}),
    ],
)
def test_an_order_comes_back_as_it_was_given(order):
    (incident,) = link_incidents([change(order, START_NS + 5)], [], START_NS)
    assert incident.at_ns == 5
    assert link_orders(incident, LAB) == [(order, ("siren",))]


def test_both_directions_of_a_change_come_back_one_after_the_other():
    told = change(Order(Action.SET, BOTH, LAB.profile("lan"), {"delay_s": 0.2}), START_NS)
    orders = [
        order
        for incident in link_incidents([told], [], START_NS)
        for order, _ in link_orders(incident, LAB)
    ]
    assert {order.directions: order.shapes() for order in orders} == {
        (direction,): {direction: told["shapes"][direction]} for direction in BOTH
    }


def test_what_the_scenario_did_is_not_done_twice_and_what_was_before_it_holds_from_its_start():
    cut = {"t_ns": 1_020, "due_ns": 1_010, "action": "cut", "targets": ["siren"], "details": {}}
    crash = {**cut, "t_ns": 1_060, "due_ns": 1_040, "action": "crash"}
    changes = [change(Order(Action.CUT), t) for t in (500, 1_015, 1_050)]
    told = link_incidents(changes, [cut, crash], START_NS)
    assert [one.at_ns for one in told] == [0, 50]
