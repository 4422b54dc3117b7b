"""A sensor behind two routers in a real lab: the parts of a message's delay, and a cut of the outer router's link."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.runs.log_agreement import must_agree
from support.runs.metric_tables import rows

pytestmark = [pytest.mark.netns, pytest.mark.spark]

Command = Callable[..., Any]

FILE = """
name: chain
links:
  emulator: relay
  profiles:
    path: {both: {rate: 20kB/s, delay: 30ms}}
    road: {both: {rate: 10kB/s, delay: 100ms}}
nodes:
  broker: {kind: broker, link: lan}
  gauge: {kind: sensor, router: village}
  village: {kind: router, router: valley, link: path}
  valley: {kind: router, link: road}
  office: {kind: subscriber, topics: [readings], link: lan}
scenario:
  duration: 6s
  settle: 60s
  events:
    - {at: 0s, publish: {from: gauge, topic: readings, priority: 5, size: 400B}}
    - {at: 2s, for: 4s, cut: {nodes: valley}}
    - {at: 3s, publish: {from: gauge, topic: readings, priority: 5, size: 400B}}
"""


def test_a_message_takes_the_links_of_both_routers_and_waits_while_the_outer_one_is_cut(
    places: Path, testbed_json: Command, analyzed: Command
) -> None:
    file = places / "chain.yaml"
    file.write_text(FILE)
    folder = Path(testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"])
    links = {one["link"]: one for one in testbed_json("link", "show", "chain")["links"]}
    assert (links["gauge"]["behind"], links["village"]["behind"]) == ("village", "valley")
    assert testbed_json("status", "chain")["labs"][0]["state"] == "up"
    testbed_json("play", "chain", codes=(0, 3))
    testbed_json("down", "chain")

    run = analyzed(folder)
    must_agree(folder)
    assert run["messages"]["delivered"] == 2
    assert run["hops"]["5"]["max"] == 2, "a router is no hop of the overlay"
    first, second = sorted(
        (row for row in rows(folder, "hops") if row["src"] == "gauge"),
        key=lambda row: row["ready_ns"],
    )
    for row in (first, second):
        assert row["propagation_s"] == pytest.approx(0.130)
    # About 500 bytes in one packet: each of the two slow links takes the time of all of them.
    sent = first["stream_bytes"] + first["packets"] * 66
    on_both = sent / 10_000 + sent / 20_000
    assert first["transmission_s"] == pytest.approx(on_both, rel=0.1)
    assert first["received_last_ns"] - first["ready_ns"] >= (0.130 + 0.9 * on_both) * 1e9
    manifest = json.loads((folder / "run.json").read_text())
    at_ns = {one["action"]: one["t_ns"] for one in manifest["actions"]}
    assert at_ns.keys() == {"cut", "restore"}
    assert second["received_last_ns"] > at_ns["restore"]
    captured = {name: one["bytes"] for name, one in manifest["capture"].items()}
    assert captured["village"] > 1_000
    assert captured["valley"] > 1_000
