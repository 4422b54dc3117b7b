"""Ending all labs at once, and removing the processes of a lab whose folder was deleted."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.labs.crashing_lab import FILE

pytestmark = pytest.mark.netns

# In a process namespace of its own, the command sees no orphans of others, and cannot end them.
ALONE = ("unshare", "--pid", "--fork", "--mount-proc")
LOSE_A_LAB = """
set -e
testbed up "$FILE" --backend netns >&2
rm -r "$TESTBED_STATE"
testbed status --orphans --json
testbed down --orphans --json
testbed status --orphans --json
"""


def test_all_labs_end_at_once_and_nothing_is_left(
    testbed: Callable[..., Any], places: Path, watch: Any
) -> None:
    file = places / "lab.yaml"
    file.write_text(FILE)
    for name in ("first", "second"):
        up = testbed("up", file, "--name", name, "--backend", "netns")
        assert up.returncode == 0, up.stderr
    watch.processes()
    down = testbed("down", "--all", "--json")
    assert down.returncode == 0, down.stderr
    labs = json.loads(down.stdout)["labs"]
    assert [(lab["lab"], lab["error"]) for lab in labs] == [("first", ""), ("second", "")]
    assert all(Path(lab["run_folder"], "run.json").exists() for lab in labs)
    assert watch.leftovers() == []
    again = testbed("down", "--all")
    assert again.returncode == 0
    assert "nothing to take down" in again.stderr


def test_one_of_lab_all_and_orphans_must_be_named(testbed: Callable[..., Any]) -> None:
    for arguments in ([], ["demo", "--all"], ["--all", "--orphans"]):
        down = testbed("down", *arguments)
        assert down.returncode == 2
        assert "takes one of: a lab's name, --all, --orphans" in down.stderr


@pytest.mark.root
def test_processes_of_a_lab_whose_folder_was_deleted_are_orphans_until_down_ends_them(
    places: Path, repository: Path
) -> None:
    file = places / "lab.yaml"
    file.write_text(FILE)
    commands = places / "bin"
    commands.mkdir()
    (commands / "testbed").write_text(f'#!/bin/sh\nexec {sys.executable} -m testbed "$@"\n')
    (commands / "testbed").chmod(0o755)
    done = subprocess.run(
        [*ALONE, "sh", "-c", LOSE_A_LAB],
        cwd=repository,
        env={
            **os.environ,
            "FILE": str(file),
            "PATH": f"{commands}:{os.environ['PATH']}",
            "DOCKER_HOST": f"unix://{places}/nobody",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, cleared, after = _documents(done.stdout)
    processes = [o for o in before["orphans"] if o["what"] == "process"]
    assert {o["lab"] for o in processes} == {str(places / "s" / "victim")}
    roles = {o["name"].split()[0] for o in processes}
    assert {"keeper", "relay", "capture", "node:broker", "node:siren"} <= roles
    assert len(cleared["removed"]) >= len(roles)
    assert cleared["left"] == []
    assert [o["what"] for o in after["orphans"]] == ["run"], "captures are never removed"
    assert "containers were not looked for" in after["unseen"][0]


def _documents(text: str) -> list[Any]:
    decoder, found = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


@pytest.mark.root
def test_a_user_without_rights_sees_and_ends_its_own_labs(nobody: Any) -> None:
    file = nobody.home / "lab.yaml"
    file.write_text(FILE)
    up = nobody.python("-m", "testbed", "up", str(file), "--json")
    assert up.returncode == 0, up.stderr
    seen = nobody.python("-m", "testbed", "status", "--orphans", "--json")
    orphans = json.loads(seen.stdout)["orphans"]
    assert [each for each in orphans if str(nobody.home) in each["lab"]] == [], "its lab still runs"
    down = nobody.python("-m", "testbed", "down", "--all", "--json")
    assert down.returncode == 0, down.stderr
    assert [lab["lab"] for lab in json.loads(down.stdout)["labs"]] == ["victim"]
