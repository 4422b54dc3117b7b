"""Several sensors behind one router share its link; the lab captures and measures all links."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.runs.log_agreement import must_agree

pytestmark = [pytest.mark.netns, pytest.mark.spark]

Command = Callable[..., Any]

FILE = """
name: shared
groups:
  sensors: {kind: sensor, count: 3, router: valley}
nodes:
  valley: {kind: router, link: narrow}
  broker: {kind: broker}
  office: {kind: subscriber, topics: [readings]}
links:
  profiles:
    narrow: {both: {rate: 20kB/s, delay: 10ms}}
scenario:
  duration: 2s
  settle: 30s
  events:
    - at: 0s
      publish: {from: "sensors[*]", topic: readings, size: 10kB}
"""


@pytest.fixture
def run_folder(places: Path, testbed_json: Command) -> Path:
    """The run folder of a lab that was played and is down."""
    file = places / "shared.yaml"
    file.write_text(FILE)
    up = testbed_json("up", file, "--backend", "netns")
    testbed_json("play", "shared")
    testbed_json("down", "shared")
    return Path(up["run_folder"])


def test_messages_of_several_sensors_wait_for_each_other_on_the_shared_link(
    run_folder: Path, analyzed: Command
) -> None:
    run = analyzed(run_folder)
    must_agree(run_folder)
    assert run["messages"]["delivered"] == 3
    # 30 kB at 20 kB/s: the last message cannot arrive before 1.5 s; alone it would need 0.5 s
    assert run["delay_s"]["1"]["max"] > 1.4
    assert run["hops"]["1"]["max"] == 2, "a router is no hop of the overlay"
    manifest = json.loads((run_folder / "run.json").read_text())
    assert manifest["capture"]["valley"]["bytes"] > 30_000
