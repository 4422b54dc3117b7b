"""The settings of each node's container, without an engine."""

import json
from dataclasses import replace
from typing import Any

import pytest

from testbed.backends.docker.backend import with_settings
from testbed.backends.docker.board_classes import BOARDS, limits
from testbed.backends.docker.image_recipe import NodeImage, PackagesImage, RegistryImage
from testbed.backends.docker.images import Image
from testbed.backends.docker.node_limits import LIMITS_LABEL, ContainerSettings, platform_for
from testbed.backends.docker.platforms import Platform
from testbed.topology.model import External, Node, NodeKind

AMD64, ARM64 = Platform("amd64"), Platform("arm64")
SENSOR = Node("gauge", 1, NodeKind.SENSOR, "lan")
EXTERNAL_NODE = Node("hub", 2, NodeKind.EXTERNAL, "lan", external=External(image="their/broker:2"))
OF_PACKAGES = replace(
    EXTERNAL_NODE, external=External(packages=("mosquitto",), command=("mosquitto",))
)
WANTED = (
    NodeImage(AMD64),
    NodeImage(ARM64),
    RegistryImage("their/broker:2", AMD64),
    PackagesImage(("mosquitto",), AMD64),
)
SETTINGS = ContainerSettings(
    own=AMD64,
    images={
        wanted: Image(wanted.name, f"sha256:{n}", str(wanted.platform), 1)
        for n, wanted in enumerate(WANTED)
    },
    limits={("pi-3", AMD64): limits(BOARDS["pi-3"], 1000.0)},
)


def test_a_node_runs_the_image_of_its_platform() -> None:
    assert SETTINGS.ours(SENSOR) == {"image": NodeImage(AMD64).name}
    assert SETTINGS.ours(replace(SENSOR, platform="linux/amd64")) == SETTINGS.ours(SENSOR)
    assert SETTINGS.ours(replace(SENSOR, platform="linux/arm64")) == {
        "image": NodeImage(ARM64).name,
        "platform": "linux/arm64",
    }


def test_a_class_sets_limits_and_no_platform() -> None:
    of_class = replace(SENSOR, board="pi-3")
    assert platform_for(of_class, AMD64) == AMD64
    given = SETTINGS.ours(of_class)
    assert given["image"] == NodeImage(AMD64).name
    assert given["mem_limit"] == BOARDS["pi-3"].memory
    assert given["cpu_quota"] / given["cpu_period"] == pytest.approx(
        BOARDS["pi-3"].speed / 1000, rel=0.01
    )
    about = json.loads(given["labels"][LIMITS_LABEL])
    assert (about["class"], about["platform"]) == ("pi-3", "linux/amd64")


def test_an_external_node_runs_its_own_image_and_its_holder_ours() -> None:
    theirs = SETTINGS.images[RegistryImage("their/broker:2", AMD64)]
    assert SETTINGS.external(EXTERNAL_NODE) == {"image": theirs.id}, (
        "their name may come to mean another"
    )
    assert SETTINGS.external(OF_PACKAGES) == {"image": PackagesImage(("mosquitto",), AMD64).name}
    assert SETTINGS.holder() == {"image": NodeImage(AMD64).name}


@pytest.mark.parametrize(
    ("node", "covered"),
    [
        (SENSOR, True),
        (replace(SENSOR, platform="linux/arm/v7"), False),
        (replace(SENSOR, board="pi-3"), True),
        (replace(SENSOR, board="pi-3", platform="linux/arm64"), False),
        (EXTERNAL_NODE, True),
        (replace(EXTERNAL_NODE, external=External(image="another")), False),
        (Node("valley", 3, NodeKind.ROUTER, "lan", platform="linux/arm/v7"), True),
    ],
)
def test_settings_know_which_nodes_they_cover(node: Node, covered: bool) -> None:
    assert SETTINGS.covers([SENSOR, node]) == covered


def test_labels_of_container_and_limits_add_up() -> None:
    recipe: dict[str, Any] = {"image": "old", "labels": {"a": "1"}}
    assert with_settings(recipe, {"image": "new", "labels": {"b": "2"}, "mem_limit": 3}) == {
        "image": "new",
        "labels": {"a": "1", "b": "2"},
        "mem_limit": 3,
    }
    assert with_settings(recipe, {"image": "new"})["labels"] == {"a": "1"}
