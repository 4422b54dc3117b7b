"""The node image: made where there is none, by the engine that will run it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from testbed.backends import image, image_recipe
from testbed.backends.clearing import clear_away
from testbed.backends.engine import engine
from testbed.errors import MissingCapability
from testbed.events import Event, StageEnded, StageStarted, ignore
from testbed.keeper.processes import marked
from testbed.places import LabPlace

pytestmark = pytest.mark.docker

NOBODY_ANSWERS = "localhost:9/no/such:image"


@pytest.fixture
def client() -> docker.DockerClient:
    return engine()


@pytest.fixture
def lab(tmp_path: Path) -> LabPlace:
    return LabPlace(tmp_path / "lab")


@pytest.fixture
def unmade(client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of an image that nobody has made yet; the labs' own image stays untouched."""
    monkeypatch.setattr(image_recipe, "REPOSITORY", "landslide-testbed-test-image")
    name = image_recipe.tag(client.version()["Arch"])
    yield name
    try:
        client.images.remove(name)
    except ImageNotFound:
        return


def test_without_a_registry_it_is_built_from_packages(
    client: docker.DockerClient, unmade: str, lab: LabPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "PUBLISHED", NOBODY_ANSWERS)
    events: list[Event] = []
    assert image.ensure_image(client, lab, "run", events.append) == unmade
    assert events[0] == StageStarted("image")
    assert StageEnded("image") in events
    assert client.images.get(unmade).attrs["Architecture"] == client.version()["Arch"]

    again: list[Event] = []
    assert image.ensure_image(client, lab, "run", again.append) == unmade
    assert again == [], "an image that is there is used as it is"

    program = "import asyncio, json, socket, ssl, sys; print(sys.version_info >= (3, 11))"
    ran = client.containers.run(
        unmade, ["python3", "-c", program], network_mode="none", remove=True
    )
    assert ran == b"True\n"
    shell = client.containers.run(unmade, ["sh", "-c", "whoami"], network_mode="none", remove=True)
    assert shell == b"root\n"


def test_without_registry_and_packages_the_error_says_what_to_install(
    client: docker.DockerClient, unmade: str, lab: LabPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "PUBLISHED", NOBODY_ANSWERS)
    monkeypatch.setattr("shutil.which", lambda _: None)
    able, reason = image.image_obtainable()
    assert not able
    assert "neither be pulled" in reason
    assert "mmdebstrap is missing" in reason
    with pytest.raises(MissingCapability, match="mmdebstrap is missing") as refused:
        image.ensure_image(client, lab, "run", ignore)
    assert "make engine" in refused.value.hint


def test_the_image_of_the_labs_is_obtainable_here() -> None:
    able, reason = image.image_obtainable()
    assert able, reason


BUILD = """
import sys
from pathlib import Path
from testbed.backends import image, image_recipe
from testbed.backends.engine import engine
from testbed.events import ignore
from testbed.places import LabPlace
image.PUBLISHED = sys.argv[2]
image_recipe.REPOSITORY = "landslide-testbed-test-image"
image.ensure_image(engine(), LabPlace(Path(sys.argv[1])), "run", ignore)
"""


@pytest.mark.root
def test_of_a_build_whose_command_is_killed_nothing_is_left(
    lab: LabPlace, unmade: str, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(lab.folder), NOBODY_ANSWERS],
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    try:
        wait_until(lambda: any(temporary.glob("*/mmdebstrap.*")), 60)
        assert {process.role for process in marked(lab)} == {"image"}
    finally:
        command.send_signal(signal.SIGKILL)
        command.wait()
    (folder,) = temporary.iterdir()
    assert f"folder {folder}" in clear_away(lab, "docker")
    assert marked(lab) == []
    assert not any(temporary.iterdir())
