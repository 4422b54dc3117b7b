"""The images that containers run: there already, else pulled, else built from the machine's own packages."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import ImageNotFound
from docker.models.images import Image as EngineImage

from testbed.backends.build_folder import build_folder
from testbed.backends.engine import TROUBLE, engine, engine_talk, in_its_words
from testbed.backends.image_build import Job, build, cannot_build, is_present
from testbed.backends.image_recipe import (
    PUBLISHED,
    Built,
    NodeImage,
    RegistryImage,
    Wanted,
)
from testbed.backends.platforms import Platform
from testbed.errors import MissingCapability, TestbedError
from testbed.events import Emit, Note, StageEnded, StageStarted
from testbed.places import LabPlace, marks

REGISTRY_TIMEOUT_S = 8
AT_ONCE = 2  # builds; they share processors and a mirror
_PULLING = threading.Lock()  # to the engine a name means one platform at a time


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has. Containers are made from its id: a name may come to mean another."""

    name: str
    id: str
    platform: str
    size: int


@dataclass(frozen=True, slots=True)
class Workshop:
    """For whom images are made: a lab's processes carry its mark; without a lab they belong to the command."""

    emit: Emit
    lab: LabPlace | None = None
    run: str = ""

    def job(self, folder: Path, image: Wanted, stop: threading.Event) -> Job:
        """What it takes to make one image."""
        marked = marks(self.lab, self.run, "image") if self.lab else {}
        environment = {**marked, "TMPDIR": str(folder)}
        stage = f"image of {image.content} for {image.platform}"
        return Job(environment, stage, self.emit, stop)


def own_platform(client: docker.DockerClient) -> Platform:
    """What the engine runs without being told."""
    return Platform.parse(f"linux/{client.version()['Arch']}")


@engine_talk()
def ensure_images(wanted: Iterable[Wanted], workshop: Workshop) -> dict[Wanted, Image]:
    """All of these, which the engine has when this returns; those that are missing are made side by side."""
    client = engine()
    every = list(dict.fromkeys(wanted))
    found = {image: there for image in every if (there := _there(client, image))}
    missing = [image for image in every if image not in found]
    if not missing:
        return found
    with build_folder(workshop.lab) as folder:
        made = side_by_side(
            missing, lambda image, stop: _obtain(client, image, workshop.job(folder, image, stop))
        )
    return {image: {**found, **made}[image] for image in every}


def side_by_side(
    wanted: list[Wanted], obtain: Callable[[Wanted, threading.Event], Image]
) -> dict[Wanted, Image]:
    """As soon as one fails, or somebody interrupts, the others are given up."""
    stop = threading.Event()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            coming = {pool.submit(obtain, image, stop): image for image in wanted}
            return {coming[done]: done.result() for done in as_completed(coming)}
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def ensure_image(wanted: Wanted, workshop: Workshop) -> Image:
    """One of them."""
    return ensure_images([wanted], workshop)[wanted]


def image_obtainable() -> tuple[bool, str]:
    """Whether the node image can be had as far as one can tell without doing it, and a phrase that says so."""
    try:
        with engine_talk():
            return _obtainable(engine())
    except TestbedError as error:
        return False, error.message


def _obtainable(client: docker.DockerClient) -> tuple[bool, str]:
    if is_present(client, NodeImage(own_platform(client)).name):
        return True, "the node image is there"
    lacking = cannot_build()
    if not lacking:
        return True, "the node image can be built from this machine's packages"
    refusal = _registry_refusal(PUBLISHED)
    if not refusal:
        return True, f"the node image can be made from {PUBLISHED}"
    return False, f"the node image can neither be pulled ({refusal}) nor built ({lacking})"


def _there(client: docker.DockerClient, wanted: Wanted) -> Image | None:
    """The image if the engine has it; somebody's by their name first, if that is for this platform now."""
    names = (wanted.image, wanted.name) if isinstance(wanted, RegistryImage) else (wanted.name,)
    for name in names:
        try:
            image = client.images.get(name)
        except ImageNotFound:
            continue
        if platform_of(image) == wanted.platform:
            return _described(image, name)
    return None


def platform_of(image: EngineImage) -> Platform:
    """What its config says."""
    about: dict[str, Any] = image.attrs
    parts = (about["Os"], about["Architecture"], about.get("Variant"))
    return Platform.parse("/".join(filter(None, parts)))


def _described(image: EngineImage, name: str) -> Image:
    return Image(name, str(image.id), str(platform_of(image)), int(image.attrs["Size"]))


def _obtain(client: docker.DockerClient, wanted: Wanted, job: Job) -> Image:
    job.emit(StageStarted(job.stage))
    try:
        if isinstance(wanted, RegistryImage):
            _pull_theirs(client, wanted, job)
        else:
            _pull_or_build(client, wanted, job)
    finally:
        job.emit(StageEnded(job.stage))
    return _described(client.images.get(wanted.name), wanted.name)


def _pull_theirs(client: docker.DockerClient, wanted: RegistryImage, job: Job) -> None:
    refusal = _pull(client, wanted.image, wanted, job)
    if refusal:
        raise MissingCapability(
            f"there is no image {wanted.image} for {wanted.platform}: {refusal}",
            f"where a registry answers: `docker pull --platform {wanted.platform} {wanted.image}`, then "
            f"`docker save` it and `docker load` it here; or have one made with `packages: [...]`",
        )


def _pull_or_build(client: docker.DockerClient, wanted: Built, job: Job) -> None:
    refusal = "no registry has it"
    if isinstance(wanted, NodeImage):
        refusal = _pull(client, PUBLISHED, wanted, job)
        if not refusal:
            return
    lacking = cannot_build()
    if lacking:
        raise MissingCapability(
            f"there is no image of {wanted.content} for {wanted.platform}: {refusal}, and {lacking}",
            "`make engine` installs mmdebstrap on Debian and Ubuntu; or --backend netns",
        )
    build(client, wanted, job)
    job.emit(Note(f"image for {wanted.platform}: built from this machine's packages"))


def _pull(client: docker.DockerClient, source: str, wanted: Wanted, job: Job) -> str:
    """Take a registry's image under our name; why not, if not. The source's name means again what it meant before."""
    refusal = _registry_refusal(source)
    if refusal:
        return refusal
    job.tell(f"pulling {source}")
    with _PULLING:
        before = _get(client, source)
        try:
            pulled = client.images.pull(source, platform=str(wanted.platform))
        except TROUBLE as error:
            return _reason(error)
        if platform_of(pulled) != wanted.platform:
            return f"the registry has it only for {platform_of(pulled)}"
        pulled.tag(wanted.name)
        if before is not None and before.id != pulled.id:
            before.tag(source)
    job.emit(Note(f"image for {wanted.platform}: {source}"))
    return ""


def _get(client: docker.DockerClient, name: str) -> EngineImage | None:
    try:
        return client.images.get(name)
    except ImageNotFound:
        return None


def _registry_refusal(image: str) -> str:
    """Why the image cannot be pulled; nothing if it can. A pull itself would wait without end."""
    try:
        engine(REGISTRY_TIMEOUT_S).images.get_registry_data(image)
    except TROUBLE as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    """The engine's own words, without the request that failed."""
    return f"the registry does not answer: {in_its_words(error).rsplit(': ', 1)[-1]}"
