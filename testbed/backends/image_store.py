"""The images that are ours: which the engine has, who uses them, and taking them away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError, ImageNotFound
from docker.models.images import Image as EngineImage

from testbed.backends import image_recipe
from testbed.backends.engine import LOOK_TIMEOUT_S, engine, engine_talk
from testbed.backends.image import platform_of
from testbed.backends.image_recipe import CONTENT_LABEL, NodeImage, PackagesImage
from testbed.errors import InputError
from testbed.topology.hints import did_you_mean

NEVER = "0001-"  # what the engine says of images that do not tell when they were made
CONFLICT = 409  # the engine's word for an image that is in use


@dataclass(frozen=True, slots=True)
class OurImage:
    """An image of ours. `current`: what would be made now would be the same."""

    name: str
    id: str
    platform: str
    content: str
    size: int  # bytes
    created: str
    current: bool
    used_by: tuple[str, ...]  # labs, or containers of somebody else


@engine_talk()
def our_images() -> list[OurImage]:
    """All that bear a name of ours, by name."""
    client = engine(LOOK_TIMEOUT_S)
    containers = client.api.containers(all=True)
    found = [
        _described(image, name, _users(containers, str(image.id)))
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


def _described(image: EngineImage, name: str, used_by: tuple[str, ...]) -> OurImage:
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


@engine_talk()
def remove_images(images: Iterable[OurImage]) -> tuple[list[OurImage], list[OurImage]]:
    """Those that were removed, and those that stay because something uses them."""
    client = engine()
    removed: list[OurImage] = []
    kept: list[OurImage] = []
    for image in images:
        if image.used_by:
            kept.append(image)
            continue
        try:
            client.images.remove(image.name)
        except ImageNotFound:
            continue
        except APIError as error:
            if error.status_code != CONFLICT:
                raise
            kept.append(image)
        else:
            removed.append(image)
    return removed, kept
