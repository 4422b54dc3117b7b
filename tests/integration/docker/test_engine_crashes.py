"""The Docker engine dies during `up`, while a lab runs or during `down`; the machine reboots.

See docs/explanation/crashes.md.

Each test has an engine of its own, so that no other container is harmed.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.labs.crashing_lab import Victim, wait_for
from support.labs.docker_engine import OwnEngine
from testbed.backends.docker.engine import engine as usual_engine
from testbed.backends.docker.image_recipe import NodeImage
from testbed.backends.docker.images import ImageOwner, ensure_image, own_platform
from testbed.keeper.processes import marked as marked_processes
from testbed.progress import ignore

pytestmark = [pytest.mark.netns, pytest.mark.docker, pytest.mark.root]


@pytest.fixture(scope="module")
def engine() -> Iterator[OwnEngine]:
    """An engine of the test's own, with the node image of the machine's engine."""
    usual = usual_engine()
    image = ensure_image(NodeImage(own_platform(usual)), ImageOwner(ignore))
    own = OwnEngine()
    try:
        own.start()
        own.take_image(image.name, usual)
        yield own
    finally:
        own.end()


@pytest.fixture
def victim(
    engine: OwnEngine,
    testbed: Callable[..., Any],
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Victim]:
    """A lab whose commands all talk to the test's own engine."""
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    victim = Victim(testbed, places, "docker")
    yield victim
    if not engine.answers():
        engine.start()
    victim.down()
    assert containers(engine) == {}


@pytest.fixture
def lab(victim: Victim) -> Victim:
    up = victim.up()
    assert up.returncode == 0, up.stderr
    return victim


def containers(engine: OwnEngine) -> dict[str, str]:
    """Container states by node."""
    client = engine.client()
    try:
        found = client.api.containers(all=True)
    finally:
        client.close()
    return {each["Labels"]["testbed.node"]: each["State"] for each in found}


def test_a_lab_runs_without_its_engine_until_it_restarts_and_up_starts_the_lab_again(
    engine: OwnEngine, lab: Victim
) -> None:
    engine.kill()
    lab.assert_whole()
    up = lab.up()
    assert up.returncode == 1
    assert "no Docker engine answers" in up.stderr
    assert lab.status()["state"] == "up", "up does not change a lab that it cannot inspect"

    engine.start()
    assert set(containers(engine).values()) == {"exited"}, (
        "a starting engine ends the containers that it finds"
    )
    assert lab.status()["state"] == "dead"
    again = lab.up()
    assert again.returncode == 0, again.stderr
    lab.assert_whole()
    assert lab.down().returncode == 0
    assert any("made anew" in warning for warning in lab.manifest()["warnings"])
    assert containers(engine) == {}


def test_a_lab_does_not_notice_that_containerd_dies(engine: OwnEngine, lab: Victim) -> None:
    engine.kill_containerd()
    lab.assert_whole()
    up = lab.up()
    assert up.returncode == 0, up.stderr
    assert lab.down().returncode == 0
    assert containers(engine) == {}


def test_an_up_whose_engine_dies_reports_it_and_the_next_completes_the_lab(
    engine: OwnEngine, victim: Victim
) -> None:
    first = victim.begin_up()
    victim.wait_for_step("create")
    engine.kill()
    _, stderr = first.communicate(timeout=120)
    assert first.returncode == 1, stderr
    assert "the connection to the engine broke" in stderr or "no Docker engine answers" in stderr
    assert "Traceback" not in stderr
    engine.start()
    up = victim.up()
    assert up.returncode == 0, up.stderr
    victim.assert_whole()


def test_a_down_whose_engine_is_dead_completes_the_captures_and_the_next_removes_the_containers(
    engine: OwnEngine, lab: Victim
) -> None:
    lab.assert_whole()
    engine.kill()
    first = lab.down()
    assert first.returncode == 1
    assert "containers of lab victim may be left" in first.stderr
    manifest = lab.manifest()
    assert manifest["status"] == "down"
    assert all(link["packets"] for link in manifest["capture"].values())

    engine.start()
    assert lab.down().returncode == 0
    assert lab.manifest() == manifest
    assert containers(engine) == {}
    assert not lab.place.folder.exists()


def test_a_down_whose_engine_dies_meanwhile_can_be_repeated(engine: OwnEngine, lab: Victim) -> None:
    first = lab.begin("down", "victim")
    lab.wait_for_step("stop")
    engine.kill()
    _, stderr = first.communicate(timeout=120)
    assert first.returncode == 1, stderr
    assert "Traceback" not in stderr
    engine.start()
    assert lab.down().returncode == 0
    assert lab.manifest()["status"] == "down"
    assert containers(engine) == {}


def test_after_a_reboot_dead_containers_are_orphans_and_captures_stay(
    engine: OwnEngine, lab: Victim, places: Path
) -> None:
    engine.kill()
    for process in marked_processes(lab.place):
        os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: not marked_processes(lab.place))
    shutil.rmtree(places / "s")  # /run is empty after a reboot
    engine.start()

    status = lab("status", "--orphans", "--json")
    ours = [
        orphan
        for orphan in json.loads(status.stdout)["orphans"]
        if orphan["lab"] in (str(lab.place.folder), "victim")
    ]
    assert sorted(orphan["what"] for orphan in ours) == ["container"] * 4 + ["run"]
    assert {orphan["name"] for orphan in ours if orphan["what"] == "run"} == {lab.runs()[0].name}
    shown = lab("status", "--orphans")
    assert "testbed down --orphans" in shown.stdout

    down = lab("down", "--all")
    assert down.returncode == 0, down.stderr
    assert down.stdout.count("removed: container") == 4
    assert containers(engine) == {}
    assert lab.runs()[0].joinpath("pcap", "siren.pcap").exists()


def test_after_a_reboot_the_lab_can_simply_be_started_again(
    engine: OwnEngine, lab: Victim, places: Path
) -> None:
    engine.kill()
    for process in marked_processes(lab.place):
        os.kill(process.pid, signal.SIGKILL)
    shutil.rmtree(places / "s")
    engine.start()
    up = lab.up()
    assert up.returncode == 0, up.stderr
    lab.assert_whole()
    assert sorted(containers(engine)) == ["broker", "horn", "sensor", "siren"]


@pytest.fixture
def restoring(engine: OwnEngine) -> Iterator[OwnEngine]:
    """The same engine, restarted in the mode in which containers outlive it."""
    engine.kill()
    engine.start("--live-restore")
    yield engine
    engine.kill()
    engine.start()


def test_an_engine_with_live_restore_leaves_a_running_lab_alone(
    restoring: OwnEngine, lab: Victim
) -> None:
    engine = restoring
    engine.kill()
    engine.start("--live-restore")
    assert set(containers(engine).values()) == {"running"}
    up = lab.up()
    assert "nothing to do" in up.stderr
    lab.assert_whole()
    assert lab.down().returncode == 0
    assert lab.manifest()["warnings"] == []
    assert containers(engine) == {}
