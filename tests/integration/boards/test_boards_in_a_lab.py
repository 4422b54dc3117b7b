"""Labs on boards: stand-ins that Ansible sets up over SSH, from `deploy` to the report, also when boards die."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.boards.stand_in_boards import StandIn, StandIns, stand_in_boards

pytestmark = [
    pytest.mark.docker,
    pytest.mark.ansible,
    pytest.mark.root,
    pytest.mark.timeout(900),  # boards are set up several times, and the test waits for a dead one
]

NAMES = ("slopes-0", "slopes-1", "broker", "siren")
ON_BOARDS = """
name: field
links:
  profiles:
    desk: {both: {rate: 512kbit/s}}
groups:
  slopes: {kind: sensor, count: 2, link: desk, place: boards}
nodes:
  broker: {kind: broker, place: boards}
  siren: {kind: subscriber, topics: [alerts], link: desk, place: boards}
scenario:
  duration: 8s
  settle: 30s
  events:
    - at: 1s
      publish: {from: "slopes[*]", topic: alerts, priority: 5, size: 200B, period: 500ms}
"""
MIXED = """
name: mixed
groups:
  gauges: {kind: sensor, count: 2}
nodes:
  slopes-0: {kind: sensor, place: boards}
  broker: {kind: broker}
  siren: {kind: subscriber, topics: [alerts], place: boards}
  office: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 5s
  settle: 30s
  events:
    - at: 1s
      publish: {from: [slopes-0, "gauges[*]"], topic: alerts, priority: 5, size: 200B, period: 500ms}
"""
Command = Callable[..., subprocess.CompletedProcess[str]]
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def boards() -> Iterator[StandIns]:
    with stand_in_boards(NAMES) as made:
        yield made


@pytest.fixture
def inventory(boards: StandIns, tmp_path: Path) -> Path:
    path = tmp_path / "inventory.json"
    document = boards.inventory()
    common = document["all"]["children"]["boards"]["vars"]
    network = boards["broker"].container.attrs["NetworkSettings"]["Networks"]
    (name,) = network
    common["testbed_uplink_interface"] = name
    common["testbed_uplink_address"] = f"{boards.gateway.rsplit('.', 1)[0]}.250/16"
    path.write_text(json.dumps(document))
    return path


def lab_file(folder: Path, text: str) -> Path:
    path = folder / "lab.yaml"
    path.write_text(text)
    return path


def is_clean(board: StandIn, lab: str) -> bool:
    """Whether the board has nothing of the lab."""
    places = [f"{root}/testbed/{lab}" for root in ("/opt", "/etc", "/var/lib")]
    left = any(board.root("test", "-e", path)[0] == 0 for path in places)
    return not left and "testbed" not in board.root("ls", "/etc/systemd/system")[1]


def run_folder(places: Path) -> Path:
    (run,) = (places / "c").iterdir()
    return run


@pytest.mark.spark
def test_a_lab_on_boards_from_check_to_report(
    testbed: Command,
    testbed_json: Callable[..., Any],
    boards: StandIns,
    inventory: Path,
    places: Path,
    tmp_path: Path,
) -> None:
    file = lab_file(tmp_path, ON_BOARDS)
    checked = testbed_json("deploy", file, "-i", inventory, "--check")
    assert all(changes > 0 for changes in checked["would_change"].values())
    assert all(is_clean(boards[name], "field") for name in NAMES)

    status = testbed_json("deploy", file, "-i", inventory)
    assert {node["state"] for node in status["nodes"]} == {"running"}
    addresses = {node["name"]: node["address"] for node in status["nodes"]}
    assert addresses == {name: boards[name].address for name in NAMES}

    played = testbed_json("play", "field")
    assert played["received"] == played["expected"] == 28
    assert testbed("link", "set", "field", "siren", "--rate", "64kbit/s").returncode == 0
    assert "64Kbit" in boards["siren"].output("tc", "qdisc", "show", "dev", "eth0")
    assert testbed("inject", "field", "--from", "slopes-0").returncode == 0

    down = testbed("down", "field")
    assert down.returncode == 0, down.stderr
    assert all(is_clean(boards[name], "field") for name in NAMES)
    run = run_folder(places)
    collected = json.loads((run / "boards.json").read_text())
    assert {node: each["collected"] for node, each in collected.items()} == dict.fromkeys(
        NAMES, "complete"
    )
    files = [path for path in run.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b'"secret": "' in path.read_bytes()]

    summary = testbed_json("analyze", run)
    assert summary["messages"]["delivered"] == 29
    readings = [json.loads(line) for line in (run / "clocks.jsonl").read_text().splitlines()]
    assert {reading["when"] for reading in readings} >= {"before", "after"}
    assert {reading["node"] for reading in readings} == set(NAMES)
    # The stand-ins share this machine's clock, so every measured offset is an error of the measurement.
    assert all(abs(each["offset_ns"]) <= each["error_ns"] for each in readings)


def test_dead_boards_are_named_and_their_files_are_collected_later(
    testbed: Command,
    testbed_json: Callable[..., Any],
    wait_until: Callable[..., None],
    boards: StandIns,
    inventory: Path,
    places: Path,
    tmp_path: Path,
) -> None:
    file = lab_file(tmp_path, ON_BOARDS)
    boards["slopes-1"].container.kill()
    one_missing = testbed("deploy", file, "-i", inventory)
    assert one_missing.returncode == 1
    assert "slopes-1 could not be set up" in one_missing.stderr
    states = {
        node["name"]: node["state"] for node in testbed_json("status", "field")["labs"][0]["nodes"]
    }
    assert states == {**dict.fromkeys(NAMES, "running"), "slopes-1": "silent"}

    boards["slopes-1"].container.start()
    complete = _patiently(lambda: testbed("deploy", file, "-i", inventory, "--json"))
    assert {node["state"] for node in json.loads(complete.stdout)["nodes"]} == {"running"}

    assert testbed_json("node", "crash", "field", "siren")["nodes"] == ["siren"]
    assert testbed_json("node", "start", "field", "siren")["nodes"] == ["siren"]

    playing = subprocess.Popen(
        [sys.executable, "-m", "testbed", "play", "field"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    log = ("cat", "/var/lib/testbed/field/node.jsonl")
    wait_until(lambda: '"publish"' in boards["slopes-0"].output(*log), PATIENCE_S)
    boards["slopes-0"].container.kill()  # like a power failure
    playing.wait(120)
    down = testbed("down", "field")
    assert down.returncode == 3
    assert "board slopes-0 still has what was not collected" in down.stderr
    assert all(is_clean(boards[name], "field") for name in NAMES if name != "slopes-0")
    run = run_folder(places)
    before = json.loads((run / "boards.json").read_text())["slopes-0"]
    assert before["collected"] in ("partial", "nothing")

    boards["slopes-0"].container.start()
    _patiently(lambda: testbed("collect", run, "-i", inventory))
    assert json.loads((run / "boards.json").read_text())["slopes-0"]["collected"] == "complete"
    published = (run / "logs" / "slopes-0.jsonl").read_text().count('"publish"')
    assert 0 < published < 14
    assert (run / "pcap" / "slopes-0.pcap").stat().st_size > 24
    assert testbed("down", "field", "-i", inventory).returncode == 0
    assert is_clean(boards["slopes-0"], "field")


def test_boards_and_nodes_of_this_machine_are_one_lab(
    testbed_json: Callable[..., Any],
    testbed: Command,
    boards: StandIns,
    inventory: Path,
    places: Path,
    tmp_path: Path,
) -> None:
    file = lab_file(tmp_path, MIXED)
    status = testbed_json("deploy", file, "-i", inventory, "--backend", "netns")
    assert status["backend"] == "boards+netns"
    played = testbed_json("play", "mixed")
    assert played["received"] == played["expected"] == 48
    assert testbed("down", "mixed").returncode == 0
    captured = sorted(path.stem for path in (run_folder(places) / "pcap").iterdir())
    assert captured == ["broker", "gauges-0", "gauges-1", "office", "siren", "slopes-0"]
    assert is_clean(boards["siren"], "mixed")
    assert "10.77" not in boards["siren"].output("ip", "route")


def test_a_deployment_that_is_killed_can_be_cleared(
    testbed: Command, boards: StandIns, inventory: Path, places: Path, tmp_path: Path
) -> None:
    file = lab_file(tmp_path, ON_BOARDS)
    deploying = subprocess.Popen(
        [sys.executable, "-m", "testbed", "deploy", str(file), "-i", str(inventory)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE_S
    while boards["siren"].root("test", "-e", "/opt/testbed/field/nodes.pyz")[0]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    deploying.send_signal(signal.SIGKILL)
    deploying.wait()
    assert testbed("down", "field").returncode in (0, 3)
    assert all(is_clean(boards[name], "field") for name in NAMES)


def _patiently(command: Callable[[], subprocess.CompletedProcess[str]]) -> Any:
    """Wait until a booting board accepts logins."""
    deadline = time.monotonic() + PATIENCE_S
    while (done := command()).returncode != 0:
        assert time.monotonic() < deadline, done.stderr
        time.sleep(3)
    return done
