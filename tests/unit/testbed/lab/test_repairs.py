"""The sentence of an `up` on dead parts of a lab."""

import re

from testbed.lab.up import repairs
from testbed.plan import Step, StepKind

MANIFEST = {"status": "up", "topology": {"nodes": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}


def repairs_in(*steps: tuple[StepKind, str], status: str = "up") -> str:
    """The text in brackets; empty if nothing was repaired."""
    planned = [Step(kind, target, "") for kind, target in steps]
    sentence = repairs(planned, {**MANIFEST, "status": status})
    found = re.search(r"\((.*)\)$", sentence)
    return found[1] if found else sentence


def test_a_node_that_was_made_anew_is_not_reported_twice():
    assert repairs_in((StepKind.CREATE, "a"), (StepKind.START, "a")) == "made anew: a"


def test_a_program_that_had_ended_is_reported_beside_nodes_made_anew():
    assert repairs_in((StepKind.START, "c")) == "started anew: c"
    steps = (StepKind.CREATE, "a"), (StepKind.START, "a"), (StepKind.START, "c")
    assert repairs_in(*steps) == "made anew: a; started anew: c"


def test_new_links_are_reported_instead_of_their_captures():
    assert repairs_in((StepKind.WIRE, "a"), (StepKind.CAPTURE, "a")) == "new links: a"
    assert repairs_in((StepKind.CAPTURE, "a")) == "captured anew: a"


def test_new_and_edited_nodes_are_no_repair():
    assert repairs_in((StepKind.CREATE, "new"), (StepKind.START, "new")) == ""
    assert repairs_in((StepKind.REMOVE, "a"), (StepKind.CREATE, "a"), (StepKind.START, "a")) == ""
    assert repairs_in((StepKind.START, "a"), status="starting") == ""
