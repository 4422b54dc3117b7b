"""The node image: made where there is none, by the engine that will run it."""

from collections.abc import Iterator

import docker
import pytest
from docker.errors import ImageNotFound

from testbed.backends import image, image_recipe
from testbed.backends.engine import engine
from testbed.errors import MissingCapability
from testbed.events import Event, StageEnded, StageStarted, ignore

pytestmark = pytest.mark.docker

NOBODY_ANSWERS = "localhost:9/no/such:image"


@pytest.fixture
def client() -> docker.DockerClient:
    return engine()


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
    client: docker.DockerClient, unmade: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "PUBLISHED", NOBODY_ANSWERS)
    events: list[Event] = []
    assert image.ensure_image(client, events.append) == unmade
    assert events[0] == StageStarted("image")
    assert StageEnded("image") in events
    assert client.images.get(unmade).attrs["Architecture"] == client.version()["Arch"]

    again: list[Event] = []
    assert image.ensure_image(client, again.append) == unmade
    assert again == [], "an image that is there is used as it is"

    program = "import asyncio, json, socket, ssl, sys; print(sys.version_info >= (3, 11))"
    ran = client.containers.run(
        unmade, ["python3", "-c", program], network_mode="none", remove=True
    )
    assert ran == b"True\n"
    shell = client.containers.run(unmade, ["sh", "-c", "whoami"], network_mode="none", remove=True)
    assert shell == b"root\n"


def test_without_registry_and_packages_the_error_says_what_to_install(
    client: docker.DockerClient, unmade: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "PUBLISHED", NOBODY_ANSWERS)
    monkeypatch.setattr("shutil.which", lambda _: None)
    able, reason = image.image_obtainable()
    assert not able
    assert "neither be pulled" in reason
    assert "mmdebstrap is missing" in reason
    with pytest.raises(MissingCapability, match="mmdebstrap is missing") as refused:
        image.ensure_image(client, ignore)
    assert "make engine" in refused.value.hint


def test_the_image_of_the_labs_is_obtainable_here() -> None:
    able, reason = image.image_obtainable()
    assert able, reason
