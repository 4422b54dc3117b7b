"""Readings and their cost from captures with known sightings."""

from pathlib import Path
from typing import Any

import pytest

from analysis.inputs.run_folder import Run, RunNode
from analysis.papers.kawakami2016.real_labs import Captured

SECOND = 1_000_000_000
START_NS = 50 * SECOND
KINDS = {
    "line": "router",
    "site": "broker",
    "center": "broker",
    "gauge": "sensor",
    "office": "subscriber",
}
SHEET = {
    "trial": 0,
    "sites": 1,
    "wait_ms": 500,
    "learnt_s": 10,
    "measured_s": 5,
    "office": "office",
}
RUN = Run(
    Path(),
    {"run": "made-up", "play": {"start_ns": START_NS}, "paper": SHEET},
    tuple(
        RunNode(name, number, kind, "lan", number, (), None)
        for number, (name, kind) in enumerate(KINDS.items())
    ),
)
OF_LAB = {"lab": "real", "trial": 0, "sites": 1, "wait_ms": 500}


def sighting(at_s: float, link: str, direction: str, dst: str, **more: Any) -> dict[str, Any]:
    """A sighting of a reading that is published this long after the start."""
    published_ns = START_NS + round(at_s * SECOND)
    return {
        "link": link,
        "direction": direction,
        "dst": dst,
        "id": f"{at_s}",
        "origin": "gauge",
        "published_ns": published_ns,
        "last_ns": published_ns + SECOND // 4,
        "complete": True,
        "joined": 1,
        "packets": 1,
        "payload_bytes": 4,
        "header_bytes": 40,
        "label_bytes": 0,
        "websocket_bytes": 6,
        **more,
    }


def journey(at_s: float, **more: Any) -> list[dict[str, Any]]:
    """Sightings from the gauge over its site's broker to the office. All links are captured, also that of the site."""
    steps = [("gauge", "site"), ("site", "center"), ("center", "office")]
    seen = [
        sighting(at_s, link, direction, receiver, **more)
        for sender, receiver in steps
        for link, direction in ((sender, "up"), (receiver, "down"))
    ]
    return [*seen, sighting(at_s, "line", "up", "center", **more)]


def test_readings_are_there_when_the_office_has_their_last_byte() -> None:
    again = sighting(11, "office", "down", "office", last_ns=START_NS + 99 * SECOND)
    torn = sighting(12, "office", "down", "office", complete=False)
    seen = Captured(RUN, [again, torn, *journey(9), *journey(11)])
    assert seen.readings() == [
        {**OF_LAB, "gauge": "gauge", "published_s": at_s, "came_s": at_s + 0.25}
        for at_s in (-1.0, 1.0)
    ]


def test_only_readings_of_the_measured_time_cost_something_and_each_hop_once() -> None:
    joined = journey(12, joined=2) + [{**row, "id": "other"} for row in journey(12, joined=2)]
    never_came = [sighting(13, "gauge", "up", "site")]
    seen = Captured(RUN, [*journey(9), *journey(11), *joined, *never_came, *journey(15)])
    assert seen.total(7_000) == {
        **OF_LAB,
        "measured_s": 5,
        "due": 4,
        "messages": 2.0,
        "packets": 2.0,
        "bytes": 3 * 50,
        "line_bytes": 7_000,
    }


def test_the_lateness_of_gauges_is_their_time_beyond_the_whole_second() -> None:
    seen = Captured(RUN, [*journey(9.001), *journey(11), *journey(12.03)])
    assert seen.lateness_s() == pytest.approx([0, 0.001, 0.03])
