"""Subscriptions by area in virtual time: with every method each subscriber gets the publications of its area."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nodes.overlay import METHODS
from support.overlays.valley_areas import Valley
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND
from testbed.backends.simulated.play import play
from testbed.places import RunPlace
from testbed.topology import load_text

FAULTS = """
    - at: 6s
      crash: {nodes: [middle]}
    - at: 9s
      cut: {nodes: [siren-north]}
    - at: 14s
      restore: {nodes: [siren-north]}
    - at: 16s
      start: {nodes: [middle]}
"""


def one_broker(text: str) -> str:
    return "\n".join(
        line for line in text.split("\n") if not line.startswith(("  north:", "  south:"))
    )


def file_for(method: str, faults: str = "") -> str:
    text = Valley().text.replace("sg-tbps", method).rstrip("\n") + faults
    return one_broker(text) if method == "star" else text


def simulate(text: str) -> list[dict[str, Any]]:
    """The log entries of all nodes."""
    lab = SimulatedLab(load_text(text, "valley"), RunPlace(Path("areas")), SECOND // 1000)
    play(lab, lambda seconds: None)
    return [json.loads(line) for node in lab.nodes.values() for line in node.log.lines]


@pytest.mark.parametrize("method", METHODS)
def test_every_subscriber_gets_the_publications_of_its_area_and_no_others(method: str) -> None:
    valley, log = Valley(), simulate(file_for(method))
    published = [line for line in log if line["event"] == "publish"]
    due = Counter(
        (name, line["id"])
        for line in published
        for name in valley.receivers(line["node"], line["priority"])
    )
    got = Counter((line["node"], line["id"]) for line in log if line["event"] == "receive")
    assert got == due
    assert {name for name, _ in due} == set(valley.wanted), (
        "every subscriber wants some publications"
    )
    assert len(due) < len(published) * len(valley.wanted) / 2, "and few of them want all"
    assert not [line for line in log if line["event"] in ("refuse", "drop", "duplicate")]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "star"])
def test_urgent_publications_in_an_area_survive_faults(method: str) -> None:
    valley, log = Valley(), simulate(file_for(method, FAULTS))
    due = {
        (name, line["id"])
        for line in log
        if line["event"] == "publish" and line["priority"] >= 3
        for name in valley.receivers(line["node"], line["priority"])
    }
    got = Counter((line["node"], line["id"]) for line in log if line["event"] == "receive")
    assert not due - set(got)
    assert set(got.values()) == {1}
    wanted = {
        (name, line["id"])
        for line in log
        if line["event"] == "publish"
        for name in valley.receivers(line["node"], line["priority"])
    }
    assert set(got) <= wanted
