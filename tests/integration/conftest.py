"""The command as a user calls it, and an eye on what it leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.places import MARK

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def testbed(places: Path, repository: Path) -> Iterator[Command]:
    """testbed("up", file, ...): the finished process; labs that a failed test leaves up are taken down."""

    def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "testbed", *map(str, arguments)],
            cwd=options.pop("cwd", repository),
            env={**os.environ, "COLUMNS": "160", **options.pop("env", {})},
            text=True,
            capture_output=True,
            timeout=240,
            check=False,
            **options,
        )

    yield command
    state = places / "s"
    for lab in sorted(state.glob("*/")) if state.exists() else []:
        command("down", lab.name)


@pytest.fixture
def testbed_json(testbed: Command) -> Callable[..., Any]:
    """testbed_json("status"): the one JSON document; the test fails if the command does."""

    def command(*arguments: object, codes: tuple[int, ...] = (0,)) -> Any:
        done = testbed(*arguments, "--json")
        assert done.returncode in codes, done.stderr + done.stdout
        return json.loads(done.stdout)

    return command


def marked_processes(state: Path) -> dict[int, str]:
    """Processes that carry the mark of any lab below the state folder: pid and lab folder."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in environment:
            name, _, value = variable.decode(errors="replace").partition("=")
            if name == MARK and Path(value).is_relative_to(state):
                found[int(entry.name)] = value
    return found


def network_namespaces() -> set[str]:
    """Every network namespace that some process or bind mount holds."""
    held = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                held.add(str((entry / "ns" / "net").readlink()))
            except OSError:
                continue
    named = Path("/run/netns")
    return held | {str(name) for name in (named.iterdir() if named.exists() else ())}


def interfaces() -> set[str]:
    """Interfaces of the host's own namespace."""
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


@pytest.fixture
def leftovers(places: Path) -> Callable[[], list[str]]:
    """leftovers(): what labs of this test have left on the machine since the fixture was made."""
    namespaces, links = network_namespaces(), interfaces()

    def look() -> list[str]:
        state = places / "s"
        return [
            *(f"process {pid} of {lab}" for pid, lab in marked_processes(state).items()),
            *(f"namespace {name}" for name in network_namespaces() - namespaces),
            *(f"interface {name}" for name in interfaces() - links),
            *(f"file {path}" for path in (state.rglob("*") if state.exists() else ())),
        ]

    return look


@pytest.fixture
def tell_marked(places: Path) -> Callable[[], dict[int, str]]:
    """tell_marked(): processes of this test's labs."""
    return lambda: marked_processes(places / "s")
