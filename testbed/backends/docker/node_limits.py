"""The settings of each node's container: the image for its platform, and the limits of its class."""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.backends.docker import core_speed
from testbed.backends.docker.board_classes import BOARDS, Limits, limits
from testbed.backends.docker.containers import LAB_DIR_LABEL, NODE_LABEL
from testbed.backends.docker.engine import LOOK_TIMEOUT_S, engine, engine_errors
from testbed.backends.docker.image_recipe import (
    REPOSITORY,
    NodeImage,
    PackagesImage,
    RegistryImage,
    Wanted,
)
from testbed.backends.docker.images import (
    Image,
    ImageOwner,
    ensure_images,
    own_platform,
    platform_of,
)
from testbed.backends.docker.platforms import Platform
from testbed.places import LabPlace
from testbed.progress import Note, Warned
from testbed.topology.model import Node

AT_ONCE = 4  # platforms whose speed is measured
LIMITS_LABEL = "testbed.limits"
NO_NODE = "-"  # in the label of a container that is no node
# Entries of the engine's info that limits need, and what they limit.
NEEDED = {"MemoryLimit": "memory", "CpuCfsQuota": "processor time"}


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """Images and limits for a batch of nodes."""

    own: Platform
    images: Mapping[Wanted, Image]
    limits: Mapping[tuple[str, Platform], Limits]

    def covers(self, nodes: Iterable[Node]) -> bool:
        """Whether these settings cover these nodes."""
        nodes = _in_containers(nodes)
        classes = ((node.board, platform_for(node, self.own)) for node in nodes if node.board)
        return all(wanted in self.images for wanted in _wanted(nodes, self.own)) and all(
            known in self.limits for known in classes
        )

    def ours(self, node: Node) -> dict[str, Any]:
        """Arguments for the container of a broker, sensor or subscriber."""
        platform = platform_for(node, self.own)
        return {**self._image(NodeImage(platform)), **self._limits(node, platform)}

    def holder(self) -> dict[str, Any]:
        """Arguments for a container that only holds a namespace."""
        return self._image(NodeImage(self.own))

    def external(self, node: Node) -> dict[str, Any]:
        """Arguments for the container of an external node's program."""
        platform = platform_for(node, self.own)
        return {**self._image(_external_image(node, platform)), **self._limits(node, platform)}

    def _image(self, wanted: Wanted) -> dict[str, Any]:
        image = self.images[wanted]
        theirs = isinstance(wanted, RegistryImage)  # their name may be moved to another image
        foreign = {} if wanted.platform == self.own else {"platform": str(wanted.platform)}
        return {"image": image.id if theirs else image.name, **foreign}

    def _limits(self, node: Node, platform: Platform) -> dict[str, Any]:
        if not node.board:
            return {}
        its = self.limits[node.board, platform]
        about = {
            "class": node.board,
            "platform": str(platform),
            "memory_bytes": its.memory,
            "cpu_share": its.share,
            "of_board_speed": its.slower,
        }
        return {**its.for_engine(), "labels": {LIMITS_LABEL: json.dumps(about)}}


def platform_for(node: Node, own: Platform) -> Platform:
    """The platform of a node. A class alone does not choose one: it says how fast a machine is, not which."""
    return Platform.parse(node.platform) if node.platform else own


def _in_containers(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if node.ours or node.external]


def _external_image(node: Node, platform: Platform) -> Wanted:
    assert node.external is not None, f"{node.name} is no external node"
    if node.external.image:
        return RegistryImage(node.external.image, platform)
    return PackagesImage(node.external.packages, platform)


def _wanted(nodes: Iterable[Node], own: Platform) -> list[Wanted]:
    wanted: list[Wanted] = []
    for node in nodes:
        platform = platform_for(node, own)
        if node.external:
            wanted += [NodeImage(own), _external_image(node, platform)]
        if node.ours or (node.external and node.board):  # the platform's speed is measured in it
            wanted.append(NodeImage(platform))
    return list(dict.fromkeys(wanted))


@engine_errors()
def settings_for(nodes: Iterable[Node], owner: ImageOwner) -> ContainerSettings:
    """Provide all images that these nodes need, and measure the limits of their classes."""
    nodes = _in_containers(nodes)
    own = own_platform(engine())
    images = ensure_images(_wanted(nodes, own), owner)
    classes = dict.fromkeys(
        (node.board, platform_for(node, own)) for node in nodes if node.board is not None
    )
    platforms = list(dict.fromkeys(platform for _, platform in classes))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        measured = pool.map(lambda its: _speed(images[NodeImage(its)], its, owner), platforms)
        speeds = dict(zip(platforms, measured, strict=True))
    found = {(name, its): limits(BOARDS[name], speeds[its]) for name, its in classes}
    for (name, platform), limit in found.items():
        owner.emit(Note(f"class {name} on {platform}: {limit.in_words()}"))
    if found:
        _warn_of_limits_without_effect(owner)
    return ContainerSettings(own, images, found)


def _speed(image: Image, platform: Platform, owner: ImageOwner) -> float:
    """Measure how fast a core runs Python here for this platform, emulated or not."""
    marks = {LAB_DIR_LABEL: str(owner.lab.folder), NODE_LABEL: NO_NODE} if owner.lab else {}
    output = engine().containers.run(
        image.id,
        ["python3", "-c", Path(core_speed.__file__).read_text()],
        network_mode="none",
        remove=True,
        labels=marks,
        platform=str(platform),
    )
    return float(output)


def _warn_of_limits_without_effect(owner: ImageOwner) -> None:
    able = engine().info()
    lacking = [what for ability, what in NEEDED.items() if not able.get(ability)]
    if lacking:
        owner.emit(
            Warned(
                f"this engine cannot limit {' and '.join(lacking)}: nodes with a class run without"
            )
        )


@engine_errors()
def details(lab: LabPlace) -> dict[str, Any]:
    """The images and limits of the lab's containers, from the engine."""
    client = engine(LOOK_TIMEOUT_S)
    listed = client.api.containers(all=True, filters={"label": f"{LAB_DIR_LABEL}={lab.folder}"})
    ids = dict.fromkeys(found["ImageID"] for found in listed)
    images: dict[str, Any] = {}
    for image in (client.images.get(name) for name in ids):
        digests = image.attrs.get("RepoDigests") or []
        about = {"id": image.id, "size": image.attrs["Size"], "digests": digests}
        names = image.tags or [str(image.id)]
        ours = [name for name in names if name.startswith(f"{REPOSITORY}-node")]
        if ours:
            images.setdefault("images", {})[str(platform_of(image))] = {"name": ours[0], **about}
        else:
            images.setdefault("external_images", {})[names[0]] = {
                "platform": str(platform_of(image)),
                **about,
            }
    return images | _limits_of(listed)


def _limits_of(listed: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    limited: dict[str, Any] = {}
    for found in listed:
        label = (found["Labels"] or {}).get(LIMITS_LABEL)
        if label:
            about = json.loads(label)
            limited.setdefault(about.pop("class"), {})[about.pop("platform")] = about
    return {"limits": limited} if limited else {}
