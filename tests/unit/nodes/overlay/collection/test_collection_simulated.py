"""A collection in a simulated lab: real delivery, links on demand, 3G; every reading once, along the rule's path."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nodes.overlay.collection.rules import Way
from support.overlays.collection_oracle import expected_hops
from support.overlays.small_collection import LEARNT_S, PERIODS, READINGS, TOPIC, collection_file
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.play import PlayResult, play
from testbed.backends.simulated.trace import MESSAGES, link_row
from testbed.papers.waiting import measure_waiting
from testbed.places import RunPlace
from testbed.topology import load_text

SECOND = 1_000_000_000
ON_BOTH_SIDES = 2  # hops from the gauge to its broker, and from a broker to the office


def played(way: Way, folder: Path) -> tuple[SimulatedLab, PlayResult]:
    lab = SimulatedLab(
        load_text(collection_file("small", way), "small.yaml"), RunPlace(folder), 1_000_000
    )
    return lab, play(lab, lambda seconds: None)


def received(lab: SimulatedLab) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in lab.nodes["office"].log.lines]
    return [line for line in lines if line["event"] in ("receive", "duplicate")]


@pytest.mark.parametrize("way", Way)
def test_every_reading_comes_once_by_the_way_of_the_rule(way: Way, tmp_path: Path) -> None:
    lab, ran = played(way, tmp_path)
    records = received(lab)
    assert len(records) == READINGS + 1
    assert {line["event"] for line in records} == {"receive"}
    assert set(Counter(line["id"] for line in records).values()) == {1}
    if way is Way.PULL:
        return
    cores = {name: lab.nodes[name].core for name in lab.nodes if name.startswith("brokers")}
    numbers = {name: lab.nodes[name].config.number for name in (*cores, "center")}
    vectors = {
        numbers[name]: int(lab.nodes[name].core.describe()["graph"]["vector"], 16)
        for name in numbers
    }
    periods = {numbers[f"brokers-{site}"]: float(one) for site, one in enumerate(PERIODS)}
    oracle = expected_hops(TOPIC, periods, numbers["center"], vectors, way)
    gauges = {
        lab.nodes[f"gauges-{site}"].config.number: oracle[numbers[f"brokers-{site}"]]
        for site in range(len(PERIODS))
    }
    since = EPOCH_NS + ran.start + LEARNT_S * SECOND
    final = [line for line in records if line["published_ns"] >= since and line["priority"] == 1]
    assert len(final) > READINGS / 4
    for line in final:
        assert line["hops"] == ON_BOTH_SIDES + gauges[line["origin"]]


def test_readings_are_seen_joined_and_the_alert_alone(tmp_path: Path) -> None:
    lab, _ = played(Way.PUSH_DESCENDING, tmp_path)
    rows: dict[str, list[Any]] = {name: [] for name in MESSAGES.names}
    for capture in lab.captures:
        link_row(capture, {}, rows)
    publications = [
        (priority, joined)
        for kind, priority, joined in zip(
            rows["kind"], rows["priority"], rows["joined"], strict=True
        )
        if kind == "PUBLISH"
    ]
    assert max(joined for _, joined in publications) > 2
    assert {joined for priority, joined in publications if priority == 5} == {1}


def test_the_reported_waits_agree_with_the_deliveries_and_their_cost() -> None:
    small = {"longest_s": 3, "measured_s": 12}
    at_once, patient = (
        measure_waiting(seed=3, trial=0, wait_ms=wait_ms, **small) for wait_ms in (0, 1000)
    )
    for readings, total in (at_once, patient):
        counted = [one for one in readings if 0 <= one["published_s"] < total["measured_s"]]
        assert len(counted) == total["due"] == 12 + 6 + 4
        assert {one["gauge"] for one in counted} == {"gauges-0-0", "gauges-0-1", "gauges-1-0"}
        assert all(one["came_s"] > one["published_s"] for one in readings)
    assert patient[1]["messages"] < at_once[1]["messages"]
    assert patient[1]["packets"] < at_once[1]["packets"]
    assert min(total["line_bytes"] for _, total in (at_once, patient)) > 0
