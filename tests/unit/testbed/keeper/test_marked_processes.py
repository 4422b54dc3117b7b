"""Ending a lab's processes by their mark, and no other processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.keeper import processes
from testbed.keeper.processes import end, end_marked, marked, marked_process
from testbed.places import LabPlace, marks

Start = Callable[..., "subprocess.Popen[bytes]"]
STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "sys.stdout.write('up\\n'); sys.stdout.flush(); time.sleep(600)"
)


@pytest.fixture
def start() -> Iterator[Start]:
    """start(environment, code): a child that lives until it is ended."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(environment: dict[str, str], code: str | None = None) -> "subprocess.Popen[bytes]":
        argv = [sys.executable, "-c", code] if code else ["sleep", "600"]
        env = {"PATH": os.environ["PATH"], **environment}
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE)
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


@pytest.fixture
def lab(tmp_path: Path) -> LabPlace:
    return LabPlace(tmp_path / "lab")


def test_marked_processes_are_found_with_their_roles(lab: LabPlace, start: Start) -> None:
    child = start(marks(lab, "run", "node:s1"))
    assert [(process.pid, process.role) for process in marked(lab)] == [(child.pid, "node:s1")]


def test_all_of_a_lab_ends_and_nothing_else(lab: LabPlace, start: Start, tmp_path: Path) -> None:
    ours = [start(marks(lab, "run", role)) for role in ("keeper", "relay")]
    neighbours = [
        start(marks(LabPlace(tmp_path / "lab2"), "run", "keeper")),
        start(marks(LabPlace(tmp_path / "la"), "run", "keeper")),
        start({"OTHER": f"TESTBED_LAB_DIR={lab.folder}"}),
        start({}),
    ]
    ended = end_marked(lab)
    assert sorted(ended) == sorted(
        f"ended {role} (process {child.pid})"
        for role, child in zip(("keeper", "relay"), ours, strict=True)
    )
    assert [child.wait(5) for child in ours] == [-15, -15]
    assert [child.poll() for child in neighbours] == [None] * 4


def test_a_process_that_ignores_sigterm_is_killed(
    lab: LabPlace, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_GRACE_S", 0.1)
    child = start(marks(lab, "run", "node:deaf"), STUBBORN)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    end_marked(lab)
    assert child.wait(5) == -9


def test_a_stopped_process_ends_too(lab: LabPlace, start: Start) -> None:
    child = start(marks(lab, "run", "node:asleep"))
    os.kill(child.pid, 19)
    end_marked(lab)
    assert child.wait(5) == -15


def test_a_process_that_this_user_may_not_end_is_named(
    lab: LabPlace, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(marks(lab, "run", "keeper"))

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(processes.signal, "pidfd_send_signal", refuse)
    with pytest.raises(TestbedError, match=f"belong to another user: {child.pid}"):
        end_marked(lab)
    assert child.poll() is None


def test_a_process_is_known_by_its_number_and_its_start(lab: LabPlace, start: Start) -> None:
    child = start(marks(lab, "run", "keeper"))
    (found,) = marked(lab)
    assert found == marked_process(child.pid)
    assert 0 <= found.age_s < 60
    assert end([replace(found, started=found.started - 1)]) == set()
    assert child.poll() is None, "another process had this number once"


def test_a_lab_without_processes_is_nothing_to_end(lab: LabPlace) -> None:
    assert end_marked(lab) == []


def test_the_calling_process_is_not_ended(lab: LabPlace) -> None:
    code = (
        "import sys; from pathlib import Path; from testbed.places import LabPlace;"
        "from testbed.keeper.processes import end_marked; sys.exit(len(end_marked(LabPlace(Path(sys.argv[1])))))"
    )
    env = {**os.environ, **marks(lab, "run", "command")}
    asked = subprocess.run(
        [sys.executable, "-c", code, str(lab.folder)], env=env, timeout=60, check=False
    )
    assert asked.returncode == 0
