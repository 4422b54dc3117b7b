"""The images that containers run: already present, else pulled, else built from the machine's own packages.

Also the list of our images in the engine, the containers that use them, and their removal.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound
from docker.models.images import Image as EngineImage

from testbed.backends.docker import image_recipe
from testbed.backends.docker.build_folder import build_folder
from testbed.backends.docker.engine import (
    ENGINE_ERRORS,
    LOOK_TIMEOUT_S,
    engine,
    engine_errors,
    engine_message,
)
from testbed.backends.docker.image_build import Job, build, cannot_build, is_present
from testbed.backends.docker.image_recipe import (
    CONTENT_LABEL,
    PUBLISHED,
    Built,
    NodeImage,
    PackagesImage,
    RegistryImage,
    Wanted,
)
from testbed.backends.docker.platforms import Platform
from testbed.errors import InputError, MissingCapability, TestbedError
from testbed.places import LabPlace, marks
from testbed.progress import Emit, Note, StageEnded, StageStarted
from testbed.topology.diagnostics.hints import did_you_mean

REGISTRY_TIMEOUT_S = 8
AT_ONCE = 2  # builds; they share processors and a mirror
_PULLING = threading.Lock()  # a name in the engine means one platform at a time


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has. Containers are made from its id, as a name may be moved to another image."""

    name: str
    id: str
    platform: str
    size: int


@dataclass(frozen=True, slots=True)
class ImageOwner:
    """The owner of image builds: builds for a lab carry its mark; without a lab they belong to the command."""

    emit: Emit
    lab: LabPlace | None = None
    run: str = ""

    def job(self, folder: Path, image: Wanted, stop: threading.Event) -> Job:
        """The job that makes one image."""
        marked = marks(self.lab, self.run, "image") if self.lab else {}
        environment = {**marked, "TMPDIR": str(folder)}
        stage = f"image of {image.content} for {image.platform}"
        return Job(environment, stage, self.emit, stop)


def own_platform(client: docker.DockerClient) -> Platform:
    """The engine's default platform."""
    return Platform.parse(f"linux/{client.version()['Arch']}")


@engine_errors()
def ensure_images(wanted: Iterable[Wanted], owner: ImageOwner) -> dict[Wanted, Image]:
    """Provide all of these images; make the missing ones in parallel."""
    client = engine()
    every = list(dict.fromkeys(wanted))
    found = {image: there for image in every if (there := _existing(client, image))}
    missing = [image for image in every if image not in found]
    if not missing:
        return found
    with build_folder(owner.lab) as folder:
        made = obtain_in_parallel(
            missing, lambda image, stop: _obtain(client, image, owner.job(folder, image, stop))
        )
    return {image: {**found, **made}[image] for image in every}


def obtain_in_parallel(
    wanted: list[Wanted], obtain: Callable[[Wanted, threading.Event], Image]
) -> dict[Wanted, Image]:
    """Make images in parallel; after a failure or an interrupt, stop the others."""
    stop = threading.Event()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            coming = {pool.submit(obtain, image, stop): image for image in wanted}
            return {coming[done]: done.result() for done in as_completed(coming)}
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def ensure_image(wanted: Wanted, owner: ImageOwner) -> Image:
    """Provide one image."""
    return ensure_images([wanted], owner)[wanted]


def image_obtainable() -> tuple[bool, str]:
    """Whether the node image can be obtained, as far as that is known without doing it, and a phrase on it."""
    try:
        with engine_errors():
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


def _existing(client: docker.DockerClient, wanted: Wanted) -> Image | None:
    """The image if the engine has it; a registry's image by its own name first, if that is for this platform."""
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
    """The platform in its config."""
    about: dict[str, Any] = image.attrs
    parts = (about["Os"], about["Architecture"], about.get("Variant"))
    return Platform.parse("/".join(filter(None, parts)))


def _described(image: EngineImage, name: str) -> Image:
    return Image(name, str(image.id), str(platform_of(image)), int(image.attrs["Size"]))


def _obtain(client: docker.DockerClient, wanted: Wanted, job: Job) -> Image:
    job.emit(StageStarted(job.stage))
    try:
        if isinstance(wanted, RegistryImage):
            _pull_registry_image(client, wanted, job)
        else:
            _pull_or_build(client, wanted, job)
    finally:
        job.emit(StageEnded(job.stage))
    return _described(client.images.get(wanted.name), wanted.name)


def _pull_registry_image(client: docker.DockerClient, wanted: RegistryImage, job: Job) -> None:
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
    """Pull a registry's image under our name, and restore the meaning of its own name; return a refusal, if any."""
    refusal = _registry_refusal(source)
    if refusal:
        return refusal
    job.report(f"pulling {source}")
    with _PULLING:
        before = _get(client, source)
        try:
            pulled = client.images.pull(source, platform=str(wanted.platform))
        except ENGINE_ERRORS as error:
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
    """Why the image cannot be pulled; empty if it can. A pull itself would wait without a limit."""
    try:
        engine(REGISTRY_TIMEOUT_S).images.get_registry_data(image)
    except ENGINE_ERRORS as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    """The engine's message, without the failed request."""
    return f"the registry does not answer: {engine_message(error).rsplit(': ', 1)[-1]}"


# Our images in the engine, their users, and their removal.


NEVER = "0001-"  # the engine's creation time of images that have none
CONFLICT = 409  # the engine's answer for an image that is in use


@dataclass(frozen=True, slots=True)
class OurImage:
    """An image of ours. `current`: an image made now would have the same name."""

    name: str
    id: str
    platform: str
    content: str
    size: int  # bytes
    created: str
    current: bool
    used_by: tuple[str, ...]  # labs, or other containers


@engine_errors()
def our_images() -> list[OurImage]:
    """All images with a name of ours, sorted."""
    client = engine(LOOK_TIMEOUT_S)
    containers = client.api.containers(all=True)
    found = [
        _described_image(image, name, _users(containers, str(image.id)))
        for image in client.images.list()
        for name in image.tags
        if _is_ours(name)
    ]
    return sorted(found, key=lambda image: (image.name.partition(":")[0], image.platform))


def _is_ours(name: str) -> bool:
    return name.startswith(f"{image_recipe.REPOSITORY}-")


def _users(containers: Iterable[dict[str, Any]], image: str) -> tuple[str, ...]:
    using = (found for found in containers if found["ImageID"] == image)
    names = ((found["Labels"] or {}).get("testbed.lab") or _name(found) for found in using)
    return tuple(sorted(set(names)))


def _name(container: dict[str, Any]) -> str:
    return (
        str(container["Names"][0]).lstrip("/") if container["Names"] else str(container["Id"])[:12]
    )


def _described_image(image: EngineImage, name: str, used_by: tuple[str, ...]) -> OurImage:
    platform = platform_of(image)
    content = image.labels.get(CONTENT_LABEL)
    others = [tag for tag in image.tags if not _is_ours(tag)]
    makeable = {NodeImage(platform).name: "nodes"}
    if content:
        its = PackagesImage(tuple(content.split()), platform)
        makeable[its.name] = content
    if name.startswith(f"{image_recipe.REPOSITORY}-node:"):
        content = "nodes"
    created = str(image.attrs["Created"] or "")
    theirs = name.startswith(f"{image_recipe.REPOSITORY}-registry:")
    return OurImage(
        name=name,
        id=str(image.id),
        platform=str(platform),
        content=makeable.get(name) or content or ", ".join(others) or "?",
        size=int(image.attrs["Size"]),
        created="" if created.startswith(NEVER) else created,
        current=theirs or name in makeable,
        used_by=used_by,
    )


def chosen(images: Sequence[OurImage], names: Sequence[str], only_old: bool) -> list[OurImage]:
    """The images of these names (or tags, or ids); all of them without names. InputError for one that is not ours."""
    wanted = [image for image in images if not (only_old and image.current)]
    if not names:
        return wanted
    known = [image.name for image in images]
    for name in names:
        if not any(_means(image, name) for image in images):
            raise InputError(f"{name!r} is no image of ours", did_you_mean(name, known))
    return [image for image in wanted if any(_means(image, name) for name in names)]


def _means(image: OurImage, name: str) -> bool:
    short = image.id.removeprefix("sha256:")
    return name in (image.name, image.name.partition(":")[2], image.id) or (
        len(name) >= 12 and short.startswith(name)
    )


@engine_errors()
def remove_images(images: Iterable[OurImage]) -> tuple[list[OurImage], list[OurImage]]:
    """Remove images; return the removed ones, and those that stay because they are in use."""
    client = engine()
    removed: list[OurImage] = []
    in_use: list[OurImage] = []
    for image in images:
        if image.used_by:
            in_use.append(image)
            continue
        try:
            client.images.remove(image.name)
        except ImageNotFound:
            continue
        except APIError as error:
            if error.status_code != CONFLICT:
                raise
            in_use.append(image)
        else:
            removed.append(image)
    return removed, in_use
