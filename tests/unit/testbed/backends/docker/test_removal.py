"""Removing a lab while the Docker engine refuses, hangs, is gone, or is slow to show a container."""

import json
import os
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from docker.errors import DockerException

from testbed.backends.docker import containers
from testbed.backends.docker.containers import (
    LAB_DIR_LABEL,
    RUN_LABEL,
    Container,
    all_containers,
    in_parallel,
    lab_containers,
    remove_containers,
    remove_marked,
)
from testbed.backends.docker.engine import EngineError, engine
from testbed.backends.docker.images import image_obtainable
from testbed.backends.docker.removal import remove_lab
from testbed.errors import TestbedError
from testbed.places import LabPlace, marks

VERSION = {"Version": "1.0", "ApiVersion": "1.41", "Arch": "amd64"}


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """Speaks enough of the engine's protocol; `present` are its containers, `looks` counts requests for them."""

    daemon_threads = True
    block_on_close = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Answers)
        self.present: set[str] = set()
        self.looks = 0
        self.on_look: Callable[[int], None] = lambda _: None
        self.removal: tuple[int, str] = (204, "")
        self.refusal: tuple[int, str] | None = None
        self.hangs = False
        self.ended = threading.Event()


class Answers(BaseHTTPRequestHandler):
    """One connection to the fake engine."""

    server: FakeEngine
    protocol_version = "HTTP/1.0"

    def log_message(self, *_: object) -> None:
        return

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.endswith("/version"):
            self._reply(200, VERSION)
        elif self.server.hangs:
            self.server.ended.wait(30)
        elif self.server.refusal:
            code, reason = self.server.refusal
            self._reply(code, {"message": reason})
        elif path.endswith("/containers/json"):
            self.server.looks += 1
            self.server.on_look(self.server.looks)
            self._reply(200, [listed(name) for name in sorted(self.server.present)])
        else:
            name = path.split("/")[-2]
            self._reply(200, {"Id": name, "Name": f"/{name}", "Config": {"Labels": {}}})

    def do_DELETE(self) -> None:
        code, reason = self.server.removal
        if code == 204:
            self.server.present.discard(self.path.split("?")[0].split("/")[-1])
        self._reply(code, {"message": reason} if reason else None)

    def _reply(self, code: int, document: Any) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def listed(name: str) -> dict[str, Any]:
    """A container as the engine lists it."""
    labels = {LAB_DIR_LABEL: f"/labs/{name}", RUN_LABEL: f"{name}-run"}
    return {"Id": name, "Names": [f"/{name}"], "Labels": labels, "State": "exited", "Created": 7}


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The address of a fake engine; its clients are made anew and closed."""
    monkeypatch.setattr(containers, "QUIET_S", 0.01)
    engine.cache_clear()
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as folder:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/engine")
        yield Path(folder, "engine")
    engine.cache_clear()


@pytest.fixture
def fake(address: Path) -> Iterator[FakeEngine]:
    with FakeEngine(address) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.ended.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def lab(tmp_path: Path) -> LabPlace:
    return LabPlace(tmp_path / "lab")


@pytest.fixture
def process(lab: LabPlace) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the lab."""
    env = {"PATH": os.environ["PATH"], **marks(lab, "run", "keeper")}
    child = subprocess.Popen(["sleep", "600"], env=env)
    yield child
    child.kill()
    child.wait()


def test_processes_end_even_if_the_engine_refuses(
    fake: FakeEngine, lab: LabPlace, process: "subprocess.Popen[bytes]"
) -> None:
    fake.refusal = (500, "layer does not exist")
    with pytest.raises(TestbedError, match=r"may be left .*layer does not exist") as left:
        remove_lab(lab, "docker")
    assert process.wait(5) == -15
    assert left.value.exit_code == 1
    assert left.value.hint == "`make engine`, then `testbed down lab` again"


def test_an_engine_that_hangs_is_not_waited_for_without_end(
    fake: FakeEngine,
    lab: LabPlace,
    process: "subprocess.Popen[bytes]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(containers, "LOOK_TIMEOUT_S", 0.2)
    fake.hangs = True
    with pytest.raises(TestbedError, match="may be left"):
        remove_lab(lab, "docker")
    assert process.wait(5) == -15


def test_a_lab_without_containers_does_not_care_about_the_engine(
    fake: FakeEngine, lab: LabPlace, process: "subprocess.Popen[bytes]"
) -> None:
    fake.refusal = (500, "broken")
    assert remove_lab(lab, "netns") == [f"ended keeper (process {process.pid})"]


def test_without_an_engine_a_docker_lab_with_nodes_is_not_forgotten(
    address: Path, lab: LabPlace
) -> None:
    lab.node("s1").mkdir(parents=True)
    with pytest.raises(TestbedError, match="containers of lab lab may be left"):
        remove_lab(lab, "docker")


def test_without_an_engine_there_is_nothing_left_of_a_lab_that_never_had_nodes(
    address: Path, lab: LabPlace
) -> None:
    assert remove_lab(lab, "docker") == []
    lab.node("s1").mkdir(parents=True)
    assert remove_lab(lab, None) == [], "without a record, nothing shows that it was a Docker lab"


def test_containers_are_removed_by_name(fake: FakeEngine, lab: LabPlace) -> None:
    fake.present = {"a", "b"}
    assert sorted(remove_lab(lab, None)) == ["container a", "container b"]
    assert fake.present == set()


def test_a_container_that_shows_up_late_is_removed_too(fake: FakeEngine, lab: LabPlace) -> None:
    fake.on_look = lambda look: fake.present.add("late") if look == 2 else None
    assert remove_marked(lab) == ["container late"]
    assert fake.present == set()
    assert fake.looks == 4, "two empty looks in a row are the end"


def test_containers_that_cannot_be_removed_are_named(fake: FakeEngine, lab: LabPlace) -> None:
    fake.present = {"a", "b"}
    fake.removal = (500, "device is busy")
    with pytest.raises(
        TestbedError, match=r"could not be removed: a, b \(.*device is busy"
    ) as left:
        remove_marked(lab)
    assert "testbed down lab" in left.value.hint


def test_the_containers_of_all_labs_are_listed_with_their_marks(fake: FakeEngine) -> None:
    fake.present = {"a"}
    assert all_containers() == [Container("a", "a", Path("/labs/a"), "a-run", "exited", 7.0)]


def test_of_all_labs_containers_only_the_chosen_are_removed(fake: FakeEngine) -> None:
    fake.present = {"a", "b"}
    chosen = lambda: [container for container in all_containers() if container.name == "a"]  # noqa: E731
    assert remove_containers(chosen, "labs that are gone", "again") == ["container a"]
    assert fake.present == {"b"}


def test_a_removal_that_never_ends_is_an_error(
    fake: FakeEngine, lab: LabPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "MOST_ROUNDS", 4)
    fake.present = {"a"}
    fake.removal = (409, "removal of container a is already in progress")
    with pytest.raises(TestbedError, match=r"removed: a \(their removal does not end\)"):
        remove_marked(lab)
    assert fake.looks == 4


def test_failures_of_the_engine_become_our_own_error(fake: FakeEngine, lab: LabPlace) -> None:
    fake.refusal = (500, "no space left on device")
    with pytest.raises(EngineError, match="the Docker engine failed: no space left on device"):
        lab_containers(lab)
    assert image_obtainable() == (False, "the Docker engine failed: no space left on device")


def test_after_an_interrupt_nothing_new_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    noticed = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            noticed.set()
            super().shutdown(wait)

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise KeyboardInterrupt
        assert noticed.wait(60)

    monkeypatch.setattr(containers, "ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        in_parallel({str(number): number for number in range(100)}, work)
    assert len(begun) < 50


def test_one_broken_connection_does_not_stop_the_others(fake: FakeEngine) -> None:
    client = engine(1)
    fake.hangs = True
    work = {"good": lambda: "done", "bad": client.containers.list}
    results, failed = in_parallel(work, lambda do: do())
    assert results == {"good": "done"}
    assert "timed out" in failed["bad"]


def test_each_success_is_reported_while_others_are_still_at_work() -> None:
    first_called = threading.Event()

    def work(name: str) -> str:
        if name == "slow":
            assert first_called.wait(60), "it was not called before all were done"
        if name == "bad":
            raise DockerException("no")
        return name.upper()

    calls: list[tuple[str, str, int]] = []

    def finished(name: str, result: str) -> None:
        calls.append((name, result, threading.get_ident()))
        first_called.set()

    names = {name: name for name in ("slow", "quick", "bad")}
    _, failed = in_parallel(names, work, finished)
    here = threading.get_ident()
    assert calls == [("quick", "QUICK", here), ("slow", "SLOW", here)]
    assert failed == {"bad": "no"}
