"""With which exit code commands end: what they did not do counts always, warnings only with --strict."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.protocols import application_messages
from testbed.backends.docker import backend as docker_backend
from testbed.backends.docker import images
from testbed.backends.docker.backend import DockerBackend
from testbed.backends.field import board_files, boards, playbooks, removal
from testbed.backends.field.backend import BoardsBackend
from testbed.cli.app import _load, app
from testbed.cli.commands import COMMANDS, deploy, export, replay, report
from testbed.cli.commands import down as down_command
from testbed.keeper import processes
from testbed.lab.simulate import simulate
from testbed.places import LabPlace, RunPlace
from testbed.progress import Event, Incomplete, ignore
from testbed.topology import load

ROOT = Path(__file__).resolve().parents[4]
MINIMAL = ROOT / "topologies" / "minimal.yaml"
OK = {"expect": "lost == 0", "ok": True, "found": 0, "unit": "", "reason": ""}
UNMET = {**OK, "ok": False, "found": 1}


def called(*arguments: object) -> Any:
    """The finished command, called with --json."""
    return CliRunner().invoke(app, [*map(str, arguments), "--json"])


@pytest.fixture
def run(places: Path) -> RunPlace:
    return simulate(load(MINIMAL), MINIMAL, ignore)


@pytest.mark.parametrize(
    ("expectation", "reasons", "options", "code"),
    [
        (OK, [], [], 0),
        (OK, [], ["--strict"], 0),
        (OK, ["busy"], [], 0),
        (OK, ["busy"], ["--strict"], 3),
        (UNMET, ["busy"], [], 1),
        (UNMET, ["busy"], ["--strict"], 1),
    ],
)
def test_a_run_whose_expectations_hold_ends_with_zero_unless_warnings_count(
    run, expectation, reasons, options, code, monkeypatch
):
    summary = {"fidelity": {"reasons": reasons}, "by_priority": {}, "expectations": [expectation]}
    (run.folder / "summary.json").write_text(json.dumps(summary))
    monkeypatch.setattr(report, "judge_again", lambda _: summary)
    monkeypatch.setattr(report, "write_run_report", lambda place, _: place.folder / "report.html")
    done = called("report", run.run, *options)
    assert done.exit_code == code, done.output
    document = json.loads(done.stdout)
    assert (document["warnings"], document["incomplete"]) == (reasons, [])


def test_an_image_that_stays_leaves_the_removal_incomplete(monkeypatch):
    kept = SimpleNamespace(name="ours:1", used_by=["valley"])
    monkeypatch.setattr(images, "our_images", list)
    monkeypatch.setattr(images, "remove_images", lambda _: ([], [kept]))
    done = called("image", "remove")
    assert done.exit_code == 3
    assert "incomplete: ours:1 is in use by valley, and stays" in done.stderr


def test_a_board_that_was_not_cleared_leaves_down_incomplete(places, monkeypatch):
    monkeypatch.setattr(playbooks, "read_hosts", lambda _: {"pi-1": {}})
    monkeypatch.setattr(boards, "uplink_of", lambda _: "eth0")
    monkeypatch.setattr(board_files, "write_inventory", lambda path, _: path)
    monkeypatch.setattr(removal, "clean", lambda *_: ([], {"pi-1": "no route to host"}))
    monkeypatch.setattr(down_command, "_uncollected", lambda *_: {})
    done = called("down", "valley", "-i", "inventory.yml")
    assert done.exit_code == 3
    missing = ["board pi-1 was not cleared (no route to host)"]
    assert json.loads(done.stdout)["incomplete"] == missing


def test_boards_whose_files_did_not_come_leave_collect_incomplete(run, monkeypatch):
    monkeypatch.setattr(deploy, "_collect_later", lambda *_: ({}, "siren: no route to host"))
    done = called("collect", run.run, "-i", "inventory.yml")
    assert done.exit_code == 3
    assert "incomplete: siren: no route to host" in done.stderr


def test_places_that_cannot_be_read_leave_packets_incomplete(monkeypatch):
    problem = {"path": "a.pcap", "offset": 24, "bytes": 7, "reason": "cut"}
    document = {"packets": 1, "files": 1, "kinds": [], "parquet": None, "problems": [problem]}
    monkeypatch.setattr(export, "_read", lambda *_: document)
    done = called("packets", "a.pcap")
    assert done.exit_code == 3
    assert "incomplete: 7 bytes in 1 places of 1 files could not be read" in done.stderr


def test_messages_that_no_capture_has_wholly_leave_a_replay_incomplete(places, monkeypatch):
    message = application_messages.ApplicationMessage(0, "sensor", "alerts", 9, priority=5)
    found = application_messages.Found([message], 1, incomplete=2)
    monkeypatch.setattr(application_messages, "application_messages", lambda *_: found)
    seen: list[Event] = []
    replay.captured_replay(["pcap"], MINIMAL, (), (), None, SimpleNamespace(emit=seen.append))
    assert Incomplete("2 messages are left out: no capture has all of them") in seen


def test_output_that_cannot_be_saved_leaves_a_docker_lab_incomplete(places, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(docker_backend, "save_output", full)
    seen: list[Event] = []
    lab = DockerBackend(LabPlace.of("minimal"), RunPlace(places), load(MINIMAL), seen.append)
    lab._save_output(SimpleNamespace(node="mosquitto"))
    assert seen == [Incomplete("the output of mosquitto could not be saved: the disk is full")]


def test_boards_that_are_not_cleared_leave_a_failed_deployment_incomplete(places, monkeypatch):
    monkeypatch.setattr(removal, "clear_boards", lambda *_, **__: ([], ["board b was not cleared"]))
    monkeypatch.setattr(processes, "end_marked", lambda _: [])
    seen: list[Event] = []
    lab = BoardsBackend(LabPlace.of("minimal"), RunPlace(places), load(MINIMAL), seen.append)
    lab._known = SimpleNamespace()
    assert lab.destroy() == []
    assert seen == [Incomplete("board b was not cleared")]


# Which commands have --strict, and what the documentation says about that.


def _commands() -> dict[str, Any]:
    """All commands by name; those of groups with both words."""
    found = {}
    for name in COMMANDS:
        command = _load(name)
        below = getattr(command, "commands", None)
        parts = {f"{name} {part}": one for part, one in below.items()} if below else {name: command}
        found.update(parts)
    return found


def test_the_documentation_names_the_commands_that_have_strict():
    strict = {
        name
        for name, command in _commands().items()
        if any("--strict" in parameter.opts for parameter in command.params)
    }
    text = (ROOT / "docs" / "reference" / "expectations.md").read_text()
    (sentence,) = re.findall(r"`--strict` is an option of ([^.]*)\.", text)
    assert set(re.findall(r"`([^`]+)`", sentence)) == strict


def test_a_command_that_warns_takes_strict():
    """`Warned` in the module of a command is a warning that `--strict` must be able to count."""
    folder = ROOT / "testbed" / "cli" / "commands"
    warning = {path.stem for path in folder.glob("*.py") if "Warned(" in path.read_text()}
    with_strict = {path.stem for path in folder.glob("*.py") if "Strict = " in path.read_text()}
    assert warning
    assert warning <= with_strict
