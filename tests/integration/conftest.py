"""The command as a user calls it, and a check for processes, interfaces and files that it leaves behind."""

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.labs.network_namespaces import SeenNamespaces
from testbed.places import MARK

LET_GO_S = 60.0
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
    """Processes with the mark of any lab below the state folder: pid and lab folder."""
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


def interfaces() -> set[str]:
    """Interfaces of the host's own namespace, except those of stand-in boards of other tests."""
    return {entry.name for entry in Path("/sys/class/net").iterdir() if not _of_stand_ins(entry)}


def _of_stand_ins(interface: Path) -> bool:
    """Whether it is the bridge of stand-in boards, or an interface attached to it."""
    try:
        bridge = (interface / "master").readlink().name
    except OSError:  # it has no bridge, or is gone
        bridge = interface.name
    return bridge.startswith("stand-in-")


class Watch:
    """Finds what labs of one test leave behind. Other tests share the machine: only the test's own labs count."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._links = interfaces()
        self._seen = SeenNamespaces()

    def processes(self) -> dict[int, str]:
        """Processes of this test's labs: pid and lab folder."""
        marked = marked_processes(self._state)
        self._seen.note(marked)
        return marked

    def leftovers(self) -> list[str]:
        """Processes, namespaces, interfaces and files that remain; the kernel may take a moment to release them."""
        deadline = time.monotonic() + LET_GO_S
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _left(self) -> list[str]:
        marked = self.processes()
        files = self._state.rglob("*") if self._state.exists() else ()
        return [
            *(f"process {pid} of {lab}" for pid, lab in marked.items()),
            *(f"namespace {name}" for name in self._seen.still_held()),
            *(f"interface {name}" for name in interfaces() - self._links),
            *(f"file {path}" for path in files),
        ]


@pytest.fixture
def watch(places: Path) -> Watch:
    """A check of what this test's labs leave behind."""
    return Watch(places / "s")


class SharedSpark:
    """One Spark session for all tests that do not test how a session starts and ends."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._session: Any = None

    def session(self) -> Any:
        """The session; it is started if it is not running."""
        from analysis.spark.session import open_session

        if self._session is None:
            self._session = self._open.enter_context(open_session())
        return self._session

    def end(self) -> None:
        """End the session if it is running."""
        self._session = None
        self._open.close()


@pytest.fixture(scope="session")
def shared_spark() -> Iterator[SharedSpark]:
    """The holder of the shared session; ends it after all tests."""
    shared = SharedSpark()
    yield shared
    shared.end()


@pytest.fixture(scope="module")
def spark(shared_spark: SharedSpark) -> Any:
    """The shared Spark session."""
    return shared_spark.session()


@pytest.fixture
def no_spark(shared_spark: SharedSpark) -> None:
    """End the shared session, for a test that opens one itself: a process can have only one."""
    shared_spark.end()


@pytest.fixture
def analyzed(spark: Any) -> Callable[[Path], Any]:
    """analyzed(run_folder): write the report, return the summary; as `testbed analyze`, without a Java of its own."""
    from analysis.inputs.run_folder import read_run
    from analysis.pipeline import measure
    from analysis.report.report import write_report

    def analyze(folder: Path) -> Any:
        summary = measure(spark.sparkContext, read_run(folder))
        write_report(folder)
        return summary

    return analyze


NOBODY = 65534


class Nobody:
    """The user nobody, who may not even read the folders in which this Python and this source are installed.

    In a mount namespace of their own, Python, its packages and our source appear in nobody's home directory.
    """

    def __init__(self, home: Path, repository: Path) -> None:
        home.mkdir()
        os.chown(home, NOBODY, NOBODY)
        self.home = home
        self.source = home / "source"
        self._python = home / "python" / "bin" / f"python3.{sys.version_info[1]}"
        self._seen_as = {
            sys.base_prefix: home / "python",
            sysconfig.get_path("purelib"): home / "packages",
            str(repository): self.source,
        }
        for place in self._seen_as.values():
            place.mkdir()

    def python(
        self, *arguments: str, cwd: Path | None = None, tun: int = 0o666
    ) -> subprocess.CompletedProcess[str]:
        """Run a Python process to its end; `tun`: the mode of the tap device (most systems let all users open it)."""
        device = self.home / "tun"
        binds = [*self._seen_as.items(), (str(device), "/dev/net/tun")]
        mounts = [f"mount --bind {shlex.quote(a)} {shlex.quote(str(b))}" for a, b in binds]
        make_device = f"rm -f {device} && mknod {device} c 10 200 && chmod {tun:o} {device}"
        user = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
        script = " && ".join([make_device, *mounts, f'exec {user} {self._python} "$@"'])
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *arguments],
            cwd=cwd or self.home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "LD_LIBRARY_PATH": str(self.home / "python" / "lib"),
                "PYTHONPATH": f"{self.source}:{self.home / 'packages'}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "TESTBED_STATE": str(self.home / "s"),
                "TESTBED_CAPTURES": str(self.home / "c"),
                "HYPOTHESIS_STORAGE_DIRECTORY": str(self.home / "hypothesis"),
                "CI": os.environ.get("CI", ""),
            },
            text=True,
            capture_output=True,
            timeout=240,
            check=False,
        )


@pytest.fixture
def nobody(places: Path, repository: Path) -> Nobody:
    """A user without any rights; needs root to become it."""
    return Nobody(places / "home", repository)
