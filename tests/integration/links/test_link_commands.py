"""`testbed link` on real labs: which messages pass, how long they take, and what the manifest records."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from testbed.cli.app import app

pytestmark = pytest.mark.netns

FILE = """
name: l-{emulator}
links:
  emulator: {emulator}
  profiles:
    fast: {{both: {{rate: 10Mbit/s}}}}
defaults: {{link: fast}}
nodes:
  broker: {{kind: broker}}
  sensor: {{kind: sensor}}
  siren: {{kind: subscriber, topics: [alerts]}}
scenario:
  duration: 10s
  settle: 60s
  events:
    - at: 0s
      publish: {{from: sensor, topic: alerts, size: 100B, period: 200ms, count: 50}}
"""


def command(*arguments: object) -> Any:
    """The document that a command prints; it runs within this process, which saves the start of another."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


class Lab:
    """A lab that is up, used through the command line."""

    def __init__(self, name: str) -> None:
        self.name = name

    def link(self, action: str, *arguments: str) -> dict[str, Any]:
        document: dict[str, Any] = command("link", action, self.name, *arguments)
        return document

    def settings(self, node: str, direction: str) -> dict[str, Any]:
        (link,) = self.link("show", node)["links"]
        settings: dict[str, Any] = link[direction]
        return settings

    def publish(self, size: str = "100B") -> str:
        """Publish a message; return its id."""
        arguments = ("inject", self.name, "--from", "sensor", "--size", size)
        return str(command(*arguments)["id"])

    def arrivals(self) -> dict[str, float]:
        """Delay in seconds of each message that the siren has received."""
        return {
            line["id"]: (line["t"] - line["published_ns"]) / 1e9
            for line in command("logs", self.name, "siren")
            if line["event"] == "receive"
        }

    def manifest(self) -> dict[str, Any]:
        (lab,) = command("status", self.name)["labs"]
        manifest: dict[str, Any] = json.loads((Path(lab["run_folder"]) / "run.json").read_text())
        return manifest


@pytest.fixture
def up(places, testbed) -> Callable[[str], Lab]:
    """up(emulator): a lab of three nodes."""

    def bring(emulator: str) -> Lab:
        file = places / "lab.yaml"
        file.write_text(FILE.format(emulator=emulator))
        command("up", file, "--backend", "netns")
        return Lab(f"l-{emulator}")

    return bring


def delay_of(lab: Lab, size: str, wait_until: Callable[..., None]) -> float:
    """Publish one message; return the seconds until the siren had it."""
    message = lab.publish(size)
    wait_until(lambda: message in lab.arrivals(), 60)
    return lab.arrivals()[message]


@pytest.mark.parametrize("emulator", ["relay", "tbf"])
def test_nothing_passes_a_cut_link_until_it_is_restored(up, wait_until, emulator):
    lab = up(emulator)
    before = lab.publish()
    wait_until(lambda: before in lab.arrivals(), 60)

    change = lab.link("cut", "sensor", "--up")["change"]
    assert (change["links"], change["directions"]) == (["sensor"], ["up"])
    stopped = [lab.publish(), lab.publish()]
    time.sleep(1.0)  # messages on a link without delay have passed by then
    assert not set(stopped) & set(lab.arrivals())
    assert lab.settings("sensor", "up")["cut"]
    assert not lab.settings("sensor", "down")["cut"]
    assert lab.link("cut", "sensor", "--up")["change"] is None

    lab.link("restore", "sensor")
    wait_until(lambda: set(stopped) <= set(lab.arrivals()), 60)
    assert not lab.settings("sensor", "up")["cut"]
    recorded = lab.manifest()["link_changes"]
    assert [entry["action"] for entry in recorded] == ["cut", "restore"]
    assert recorded[0] == change


def test_a_delay_takes_effect_is_recorded_stays_after_up_and_can_be_reset(
    up, testbed, places, wait_until
):
    lab = up("relay")
    lab.link("set", "sensor", "--up", "--delay", "1s")
    assert delay_of(lab, "100B", wait_until) >= 1.0
    delays_s = [lab.settings("sensor", direction)["delay_s"] for direction in ("up", "down")]
    assert delays_s == [1.0, 0]
    again = testbed("up", places / "lab.yaml")
    assert again.returncode == 0
    assert "1 link is not as the file says: sensor changed" in again.stderr
    assert lab.settings("sensor", "up")["changed"]

    lab.link("reset", "all")
    assert not lab.settings("sensor", "up")["changed"]
    wait_until(lambda: delay_of(lab, "100B", wait_until) < 1.0, 60)
    recorded = lab.manifest()["link_changes"]
    assert [(entry["action"], entry["links"]) for entry in recorded] == [
        ("set", ["sensor"]),
        ("reset", ["sensor"]),
    ]
    assert recorded[0]["shapes"] == {"up": {"delay_s": 1.0}}


def test_the_rate_of_a_tbf_link_can_be_changed_but_a_delay_is_refused(up, testbed, wait_until):
    lab = up("tbf")
    arguments = ("siren", "--down", "--rate", "10kB/s", "--queue", "40kB")
    refused = testbed("link", "set", lab.name, *arguments, "--delay", "20ms")
    assert refused.returncode == 2
    assert "tbf only limits rates" in refused.stderr
    assert lab.settings("siren", "down")["rate_bps"] == 10e6
    assert lab.manifest()["link_changes"] == []

    lab.link("set", *arguments)
    assert delay_of(lab, "12kB", wait_until) >= 1.0  # its credit is one frame
    lab.link("reset", "siren")
    wait_until(lambda: delay_of(lab, "12kB", wait_until) < 1.0, 60)


def test_a_link_is_cut_while_the_scenario_is_played(up, wait_until):
    lab = up("relay")
    playing = subprocess.Popen(
        [sys.executable, "-m", "testbed", "play", lab.name, "--json"],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        wait_until(lab.arrivals, 60)
        lab.link("cut", "siren", "--down")
        lab.link("restore", "siren", "--down")
        document, _ = playing.communicate(timeout=120)
    finally:
        playing.kill()
        playing.wait()
    assert json.loads(document)["settled"]
    manifest = lab.manifest()
    cut, restored = (entry["t_ns"] for entry in manifest["link_changes"])
    assert manifest["play"]["start_ns"] < cut < manifest["play"]["end_ns"]
    assert cut < restored


def test_nodes_behind_a_router_are_cut_with_it(places, testbed, wait_until):
    file = places / "lab.yaml"
    shared = FILE.format(emulator="relay").replace(
        "sensor: {kind: sensor}", "gw: {kind: router}\n  sensor: {kind: sensor, router: gw}"
    )
    file.write_text(shared)
    command("up", file, "--backend", "netns")
    lab = Lab("l-relay")
    assert lab.link("show", "sensor")["links"][0]["behind"] == "gw"
    lab.link("cut", "gw")
    stopped = lab.publish()
    wait_until(lambda: lab.settings("gw", "up")["counts"]["dropped_cut"] > 0, 60)
    assert stopped not in lab.arrivals()
    lab.link("restore", "gw")
    wait_until(lambda: stopped in lab.arrivals(), 60)
