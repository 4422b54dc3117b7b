"""Node images: the engine that will run them builds or pulls them where they are missing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from support.labs.image_registry import registry
from testbed.backends.docker import image_recipe, images
from testbed.backends.docker.engine import engine
from testbed.backends.docker.image_recipe import NodeImage, PackagesImage, RegistryImage
from testbed.backends.docker.images import (
    ImageOwner,
    chosen,
    ensure_image,
    ensure_images,
    our_images,
    own_platform,
    remove_images,
)
from testbed.backends.docker.platforms import Platform
from testbed.backends.docker.removal import remove_lab
from testbed.errors import InputError, MissingCapability
from testbed.keeper.processes import marked
from testbed.places import LabPlace
from testbed.progress import Event, StageEnded, StageStarted, ignore

pytestmark = pytest.mark.docker

UNREACHABLE_IMAGE = "localhost:9/no/such:image"
SMALL = 60_000_000  # bytes
GONE_S = 60.0
AMD64, ARM64, ARMV7 = Platform("amd64"), Platform("arm64"), Platform("arm", "v7")
PUBLISHED_FOR = {
    "linux/amd64": {"os": "linux", "architecture": "amd64"},
    "linux/arm64": {"os": "linux", "architecture": "arm64", "variant": "v8"},
}


@pytest.fixture
def client() -> docker.DockerClient:
    return engine()


@pytest.fixture
def lab(tmp_path: Path) -> LabPlace:
    return LabPlace(tmp_path / "lab")


@pytest.fixture(autouse=True)
def names_of_our_own(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Give images of these tests names of their own, so that the images of labs stay untouched."""
    if "the_labs_own" not in request.fixturenames:
        monkeypatch.setattr(image_recipe, "REPOSITORY", "landslide-testbed-test")
    yield
    monkeypatch.setattr(image_recipe, "REPOSITORY", "landslide-testbed-test")
    deadline = time.monotonic() + GONE_S
    while (ours := our_images()) and time.monotonic() < deadline:
        remove_images(ours)  # a container that has just ended may still hold one
        time.sleep(0.1)
    assert not ours


@pytest.fixture
def the_labs_own() -> None:
    """Use the images that labs use."""


def printed(client: docker.DockerClient, name: str, *command: str) -> str:
    ran = client.containers.run(name, list(command), network_mode="none", remove=True)
    return ran.decode().strip()


def test_a_node_image_is_built_from_packages_without_a_registry(
    client: docker.DockerClient, lab: LabPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PUBLISHED", UNREACHABLE_IMAGE)
    wanted = NodeImage(own_platform(client))
    events: list[Event] = []
    made = ensure_image(wanted, ImageOwner(events.append, lab, "run"))
    assert isinstance(events[0], StageStarted)
    assert StageEnded(events[0].stage) in events
    assert (made.name, made.platform) == (wanted.name, str(wanted.platform))
    assert client.images.get(wanted.name).attrs["Architecture"] == client.version()["Arch"]
    assert made.size < SMALL

    again: list[Event] = []
    assert ensure_image(wanted, ImageOwner(again.append, lab, "run")) == made
    assert again == [], "an existing image is used as it is"

    program = "import asyncio, json, socket, ssl, sys; print(sys.version_info >= (3, 11))"
    assert printed(client, made.name, "python3", "-c", program) == "True"
    assert printed(client, made.name, "sh", "-c", "whoami") == "root"
    compiled = printed(client, made.name, "sh", "-c", "ls /usr/lib/python3*/asyncio/__pycache__")
    assert "base_events.cpython" in compiled


def test_an_image_of_packages_runs_their_programs(client: docker.DockerClient) -> None:
    wanted = PackagesImage(("mosquitto-clients",), own_platform(client))
    made = ensure_image(wanted, ImageOwner(ignore))
    assert "mosquitto_pub version" in printed(
        client, made.name, "sh", "-c", "mosquitto_pub --help | head -n 3"
    )
    (listed,) = our_images()
    assert (listed.content, listed.current) == ("mosquitto-clients", True)


def test_a_package_that_does_not_exist_is_a_mistake_of_the_file(
    client: docker.DockerClient,
) -> None:
    wanted = PackagesImage(("mosquittto",), own_platform(client))
    with pytest.raises(InputError, match="mosquittto") as refused:
        ensure_image(wanted, ImageOwner(ignore))
    assert "apt-cache search" in refused.value.hint


def test_without_registry_and_packages_the_error_names_the_program_to_install(
    client: docker.DockerClient, lab: LabPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PUBLISHED", UNREACHABLE_IMAGE)
    monkeypatch.setattr("shutil.which", lambda _: None)
    able, reason = images.image_obtainable()
    assert not able
    assert "neither be pulled" in reason
    assert "mmdebstrap is missing" in reason
    with pytest.raises(MissingCapability, match="mmdebstrap is missing") as refused:
        ensure_image(NodeImage(own_platform(client)), ImageOwner(ignore, lab, "run"))
    assert "make engine" in refused.value.hint


@pytest.mark.usefixtures("the_labs_own")
def test_the_image_of_the_labs_is_obtainable_here() -> None:
    able, reason = images.image_obtainable()
    assert able, reason


def test_an_image_is_pulled_for_its_platform_from_a_registry_that_answers(
    client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry(PUBLISHED_FOR) as address:
        source = f"{address}/python:3.13-slim"
        monkeypatch.setattr(images, "PUBLISHED", source)
        mine = client.images.pull(source, platform="linux/amd64")
        try:
            made = ensure_image(NodeImage(ARM64), ImageOwner(ignore))
            assert made.platform == "linux/arm64"
            assert client.images.get(source).id == mine.id, "the name still means the same image"
        finally:
            client.images.remove(source)


def test_a_registry_image_is_pulled_for_several_platforms_and_kept(
    client: docker.DockerClient,
) -> None:
    with registry(PUBLISHED_FOR) as address:
        name = f"{address}/their/broker:2"
        wanted = [RegistryImage(name, AMD64), RegistryImage(name, ARM64)]
        first = ensure_images(wanted, ImageOwner(ignore))
    try:
        assert [first[its].platform for its in wanted] == ["linux/amd64", "linux/arm64"]
        without_registry = ensure_images(wanted, ImageOwner(ignore))
        assert [without_registry[its].id for its in wanted] == [first[its].id for its in wanted]
    finally:
        client.images.remove(name)


def test_a_platform_that_the_registry_lacks_is_reported(client: docker.DockerClient) -> None:
    with registry(PUBLISHED_FOR) as address:
        wanted = RegistryImage(f"{address}/their/broker:2", ARMV7)
        with pytest.raises(MissingCapability, match="linux/arm/v7"):
            ensure_image(wanted, ImageOwner(ignore))
        with pytest.raises(ImageNotFound):
            client.images.get(wanted.name)


def test_the_error_about_a_missing_image_names_the_next_step() -> None:
    with pytest.raises(MissingCapability, match=UNREACHABLE_IMAGE) as refused:
        ensure_image(RegistryImage(UNREACHABLE_IMAGE, AMD64), ImageOwner(ignore))
    assert f"docker pull --platform linux/amd64 {UNREACHABLE_IMAGE}" in refused.value.hint
    assert "packages" in refused.value.hint


def test_only_images_of_the_testbed_are_removed_and_images_in_use_are_named(
    client: docker.DockerClient,
) -> None:
    with registry(PUBLISHED_FOR) as address:
        name = f"{address}/their/broker:2"
        made = ensure_image(RegistryImage(name, own_platform(client)), ImageOwner(ignore))
    container = client.containers.create(made.id, ["/nothing"], labels={"testbed.lab": "valley"})
    try:
        assert name not in {ours.name for ours in our_images()}
        with pytest.raises(InputError, match="no image of ours"):
            chosen(our_images(), [name], only_old=False)
        removed, kept = remove_images(our_images())
        assert removed == []
        assert [(ours.id, ours.used_by) for ours in kept] == [(made.id, ("valley",))]
    finally:
        container.remove()
    removed, _ = remove_images(our_images())
    assert [ours.id for ours in removed] == [made.id]
    assert client.images.get(name).id == made.id, "the name in the registry stays"
    client.images.remove(name)


BUILD = """
import sys
from pathlib import Path
from testbed.backends.docker import image_recipe, images
from testbed.backends.docker.engine import engine
from testbed.progress import ignore
from testbed.places import LabPlace
images.PUBLISHED = sys.argv[2]
image_recipe.REPOSITORY = "landslide-testbed-test"
wanted = image_recipe.NodeImage(images.own_platform(engine()))
images.ensure_images([wanted], images.ImageOwner(ignore, LabPlace(Path(sys.argv[1])), "run"))
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The folder in which builds put temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def interrupted_build(
    lab: LabPlace, temporary: Path, wait_until: Callable[..., None], by: signal.Signals
) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(lab.folder), UNREACHABLE_IMAGE],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: any(temporary.glob("*/mmdebstrap.*")), 60)
        assert {process.role for process in marked(lab)} == {"image"}
    finally:
        command.send_signal(by)
        command.wait()


@pytest.mark.root
def test_nothing_remains_of_a_build_whose_command_was_killed(
    lab: LabPlace, temporary: Path, wait_until: Callable[..., None]
) -> None:
    interrupted_build(lab, temporary, wait_until, signal.SIGKILL)
    (folder,) = temporary.iterdir()
    assert f"folder {folder}" in remove_lab(lab, "docker")
    assert marked(lab) == []
    assert not any(temporary.iterdir())


@pytest.mark.root
def test_an_interrupted_build_clears_up_after_itself(
    lab: LabPlace, temporary: Path, wait_until: Callable[..., None]
) -> None:
    interrupted_build(lab, temporary, wait_until, signal.SIGINT)
    assert marked(lab) == []
    assert not any(temporary.iterdir())
