"""The docker backend with real containers: what happens when one of them dies, and what `down` needs of the engine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_boxes import marked
from testbed.backends.docker import backend as docker_backend
from testbed.backends.docker.backend import DockerBackend
from testbed.backends.docker.containers import NODE_LABEL
from testbed.keeper import processes
from testbed.places import LabPlace, RunPlace
from testbed.progress import ignore
from testbed.topology.model import from_json

pytestmark = [pytest.mark.docker, pytest.mark.root, pytest.mark.netns]

Command = Callable[..., Any]


@pytest.fixture
def minimal(repository: Path) -> Path:
    return repository / "topologies" / "minimal.yaml"


@pytest.fixture
def backend(testbed_json: Command, minimal: Path, places: Path) -> DockerBackend:
    """A lab that is up, opened again as by another command."""
    up = testbed_json("up", minimal, "--name", "boxes", "--backend", "docker")
    run = RunPlace(places / "c" / up["run"])
    topology = from_json(json.loads(run.manifest.read_text())["topology"])
    return DockerBackend(LabPlace(places / "s" / "boxes"), run, topology, ignore)


def test_a_dead_container_is_replaced_by_the_next_up(
    backend: DockerBackend, testbed: Command, testbed_json: Command, minimal: Path, places: Path
) -> None:
    before = backend.inspect()
    lab = LabPlace(places / "s" / "boxes")
    victim = marked(lab)[0]
    name = victim.labels[NODE_LABEL]
    others = {c.id for c in marked(lab)} - {victim.id}
    victim.kill()
    victim.wait(timeout=30)

    actual = backend.inspect()
    assert actual.prepared
    for stage in ("created", "wired", "shaped", "captured", "started"):
        assert getattr(before, stage) - getattr(actual, stage) == {name}, stage

    again = testbed("up", minimal, "--name", "boxes", "--backend", "docker")
    assert again.returncode == 0, again.stderr
    assert backend.inspect() == before
    assert others < {c.id for c in marked(lab)}, "the others were left alone"
    status = testbed_json("status", "boxes")["labs"][0]
    assert all(node["ready"] for node in status["nodes"]), status
    down = testbed("down", "boxes")
    assert down.returncode == 0, down.stderr
    assert marked(lab) == []


def test_a_container_that_somebody_restarted_has_lost_its_link(
    backend: DockerBackend, places: Path
) -> None:
    victim = marked(LabPlace(places / "s" / "boxes"))[0]
    victim.restart(timeout=1)
    name = victim.labels[NODE_LABEL]
    assert name not in backend.inspect().created
    assert name not in backend.inspect().wired


def test_the_details_name_the_images_without_asking_for_others(
    backend: DockerBackend,
    testbed: Command,
    testbed_json: Command,
    monkeypatch: pytest.MonkeyPatch,
    places: Path,
) -> None:
    """The image that the details name is not removed while the lab runs."""

    def refuse(*_: object) -> None:
        raise AssertionError("no image may be made for the details")

    monkeypatch.setattr(docker_backend, "settings_for", refuse)
    details = backend.details()
    image = marked(LabPlace(places / "s" / "boxes"))[0].image
    (about,) = details["images"].values()
    assert about["name"] in image.tags
    assert (about["id"], about["size"]) == (image.id, image.attrs["Size"])
    assert details["docker"]

    answer = testbed_json("image", "remove", about["name"], codes=(3,))
    assert answer["removed"] == []
    (kept,) = answer["in_use"]
    assert kept["name"] == about["name"]
    assert "boxes" in kept["used_by"]
    assert testbed("image", "remove", "alpine").returncode == 2


def test_down_without_the_engine_says_what_may_be_left_and_can_be_repeated(
    backend: DockerBackend, testbed: Command, places: Path
) -> None:
    lab = LabPlace(places / "s" / "boxes")
    down = testbed("down", "boxes", env={"DOCKER_HOST": f"unix://{places}/nobody"})
    assert down.returncode == 1, down.stderr
    assert "containers of lab boxes may be left" in down.stderr
    assert "Traceback" not in down.stderr
    assert processes.marked(lab) == []
    assert lab.record.exists()
    assert testbed("down", "boxes").returncode == 0
    assert not lab.folder.exists()
    assert marked(lab) == []
