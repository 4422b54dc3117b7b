"""The docker backend with real containers: one of them dies or restarts, or `down` finds no engine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.labs.lab_containers import marked
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
    up = testbed_json("up", minimal, "--name", "docker-lab", "--backend", "docker")
    run = RunPlace(places / "c" / up["run"])
    topology = from_json(json.loads(run.manifest.read_text())["topology"])
    return DockerBackend(LabPlace(places / "s" / "docker-lab"), run, topology, ignore)


def test_a_dead_container_is_replaced_by_the_next_up(
    backend: DockerBackend, testbed: Command, testbed_json: Command, minimal: Path, places: Path
) -> None:
    before = backend.inspect()
    lab = LabPlace(places / "s" / "docker-lab")
    victim = marked(lab)[0]
    name = victim.labels[NODE_LABEL]
    others = {c.id for c in marked(lab)} - {victim.id}
    victim.kill()
    victim.wait(timeout=60)

    actual = backend.inspect()
    assert actual.prepared
    for stage in ("created", "wired", "shaped", "captured", "started"):
        assert getattr(before, stage) - getattr(actual, stage) == {name}, stage

    again = testbed("up", minimal, "--name", "docker-lab", "--backend", "docker")
    assert again.returncode == 0, again.stderr
    assert backend.inspect() == before
    assert others < {c.id for c in marked(lab)}, "the others were left alone"
    status = testbed_json("status", "docker-lab")["labs"][0]
    assert all(node["ready"] for node in status["nodes"]), status
    down = testbed("down", "docker-lab")
    assert down.returncode == 0, down.stderr
    assert marked(lab) == []


def test_a_restarted_container_has_lost_its_link(backend: DockerBackend, places: Path) -> None:
    victim = marked(LabPlace(places / "s" / "docker-lab"))[0]
    victim.restart(timeout=1)
    name = victim.labels[NODE_LABEL]
    assert name not in backend.inspect().created
    assert name not in backend.inspect().wired


def test_the_details_name_the_images_of_the_lab_without_building_any(
    backend: DockerBackend,
    testbed: Command,
    testbed_json: Command,
    monkeypatch: pytest.MonkeyPatch,
    places: Path,
) -> None:
    """The image that the details name is not removed while the lab runs."""

    def refuse(*_: object) -> None:
        raise AssertionError("details must not build an image")

    monkeypatch.setattr(docker_backend, "settings_for", refuse)
    details = backend.details()
    image = marked(LabPlace(places / "s" / "docker-lab"))[0].image
    (about,) = details["images"].values()
    assert about["name"] in image.tags
    assert (about["id"], about["size"]) == (image.id, image.attrs["Size"])
    assert details["docker"]

    answer = testbed_json("image", "remove", about["name"], codes=(3,))
    assert answer["removed"] == []
    (kept,) = answer["in_use"]
    assert kept["name"] == about["name"]
    assert "docker-lab" in kept["used_by"]
    assert testbed("image", "remove", "alpine").returncode == 2


def test_down_without_the_engine_warns_of_leftovers_and_can_be_repeated(
    backend: DockerBackend, testbed: Command, places: Path
) -> None:
    lab = LabPlace(places / "s" / "docker-lab")
    down = testbed("down", "docker-lab", env={"DOCKER_HOST": f"unix://{places}/nobody"})
    assert down.returncode == 1, down.stderr
    assert "containers of lab docker-lab may be left" in down.stderr
    assert "Traceback" not in down.stderr
    assert processes.marked(lab) == []
    assert lab.record.exists()
    assert testbed("down", "docker-lab").returncode == 0
    assert not lab.folder.exists()
    assert marked(lab) == []
