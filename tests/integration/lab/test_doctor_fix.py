"""`testbed doctor --fix` in a process namespace, with stand-ins for system tools: it cannot change the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.netns, pytest.mark.root]

ALONE = ("unshare", "--pid", "--fork", "--mount-proc")
TOOLS = [
    "apt-get",
    "chmod",
    "dockerd",
    "modprobe",
    "mount",
    "prlimit",
    "sysctl",
    "systemctl",
    "tee",
    "update-binfmts",
]
START_AN_ORPHAN = 'TESTBED_LAB_DIR="$LOST" TESTBED_ROLE=keeper sleep 600 & exec "$@"'


def doctor(places: Path, repository: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command on a machine with one orphan, where each tool only records that it was called."""
    tools = places / "tools"
    tools.mkdir(exist_ok=True)
    for name in TOOLS:
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{places}/called"\n')
        (tools / name).chmod(0o755)
    command = [sys.executable, "-m", "testbed", "doctor", *options]
    return subprocess.run(
        [*ALONE, "sh", "-c", START_AN_ORPHAN, "sh", *command],
        cwd=repository,
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "LOST": str(places / "s" / "lost"),
            "DOCKER_HOST": f"unix://{places}/nobody",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_doctor_fixes_leftovers_and_shows_each_check_before_and_after(
    places: Path, repository: Path
) -> None:
    done = doctor(places, repository, "--fix", "--yes", "--json")
    document = json.loads(done.stdout)
    changes = {change["name"]: change for change in document["changes"]}
    left = changes["leftovers"]
    assert (left["before"]["status"], left["after"]["status"]) == ("limited", "ok")
    assert left["before"]["found"] == "1 of crashed labs"
    unfixed = [name for name, change in changes.items() if change["after"]["status"] != "ok"]
    assert done.returncode == (1 if unfixed else 0), done.stderr
    assert all(name in document["error"]["message"] for name in unfixed)
    assert ["testbed", "down", "--orphans"] in [repair["argv"] for repair in document["repairs"]]


def test_doctor_leaves_an_engine_that_docker_host_names_alone(
    places: Path, repository: Path
) -> None:
    done = doctor(places, repository, "--fix", "--yes", "--json")
    engine = next(c for c in json.loads(done.stdout)["checks"] if c["name"] == "Docker engine")
    assert engine["status"] == "limited"
    assert engine["repairs"] == []
    assert "DOCKER_HOST" in engine["fix"]


def test_doctor_changes_nothing_without_a_terminal_to_ask_the_user(
    places: Path, repository: Path
) -> None:
    done = doctor(places, repository, "--fix")
    assert done.returncode == 2
    assert "what will be done" in done.stdout
    assert "testbed down --orphans" in done.stdout.replace("\n", "")
    assert "--yes repairs without asking" in done.stderr
    assert not (places / "called").exists() or "apt-get" not in (places / "called").read_text()


def test_yes_without_fix_is_a_usage_error(places: Path, repository: Path) -> None:
    assert doctor(places, repository, "--yes").returncode == 2
