"""The recipes of images."""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.docker import image_recipe
from testbed.backends.docker.image_recipe import (
    Built,
    NodeImage,
    PackagesImage,
    RegistryImage,
    build_command,
    write_archive,
)
from testbed.backends.docker.platforms import Platform

AMD64, ARM64, ARMV7 = Platform("amd64"), Platform("arm64"), Platform("arm", "v7")
MOSQUITTO = PackagesImage(("mosquitto", "mosquitto-clients"), AMD64)
CREATED = "2026-01-01T00:00:00Z"


def test_another_recipe_is_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = NodeImage(AMD64).name
    assert before == NodeImage(AMD64).name
    assert before != NodeImage(ARM64).name
    monkeypatch.setattr(image_recipe, "NODE_PACKAGES", (*image_recipe.NODE_PACKAGES, "vim"))
    assert before != NodeImage(AMD64).name


def test_the_script_that_completes_the_packages_is_part_of_the_recipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = NodeImage(AMD64).name
    other = tmp_path / "image_root.py"
    other.write_text("# does nothing\n")
    monkeypatch.setattr(image_recipe, "_ROOT_SCRIPT", other)
    assert before != NodeImage(AMD64).name


names = st.text(st.sampled_from("abc-"), min_size=1, max_size=4)
kinds = st.one_of(
    st.builds(NodeImage, st.sampled_from([AMD64, ARM64, ARMV7])),
    st.builds(
        PackagesImage, st.tuples(names) | st.tuples(names, names), st.sampled_from([AMD64, ARM64])
    ),
    st.builds(RegistryImage, names, st.sampled_from([AMD64, ARM64])),
)


@given(kinds, kinds)
def test_different_images_never_share_a_name(one: Any, other: Any) -> None:
    def same(image: Any) -> Any:
        packages = sorted(image.packages) if isinstance(image, PackagesImage) else None
        return type(image), image.platform, packages or image.content

    assert (one.name == other.name) == (same(one) == same(other))
    assert one.name.startswith("landslide-testbed-")


def members(image: Built, folder: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Manifest, config and layer of an image's archive; its layer is an empty tar file."""
    layer, archive = folder / "layer.tar", folder / "image.tar"
    with layer.open("w+b") as content, archive.open("w+b") as written:
        with tarfile.open(fileobj=content, mode="w"):
            pass
        write_archive(image, content, written, CREATED)
    with tarfile.open(archive) as tar:

        def member(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file
            return file.read()

        (manifest,) = json.loads(member("manifest.json"))
        return manifest, json.loads(member(manifest["Config"])), member(*manifest["Layers"])


def test_the_archive_names_the_platform_and_its_layer(tmp_path: Path) -> None:
    manifest, config, layer = members(NodeImage(ARMV7), tmp_path)
    assert layer == (tmp_path / "layer.tar").read_bytes()
    assert manifest["RepoTags"] == [NodeImage(ARMV7).name]
    assert (config["os"], config["architecture"], config["variant"]) == ("linux", "arm", "v7")
    assert config["config"]["Labels"]["testbed.platform"] == "linux/arm/v7"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]


def test_a_platform_without_variants_has_none_in_the_archive(tmp_path: Path) -> None:
    _, config, _ = members(NodeImage(ARM64), tmp_path)
    assert config["architecture"] == "arm64"
    assert "variant" not in config


def test_an_image_of_packages_lists_its_packages(tmp_path: Path) -> None:
    _, config, _ = members(MOSQUITTO, tmp_path)
    assert config["config"]["Labels"]["testbed.content"] == "mosquitto mosquitto-clients"
    assert config["config"]["Cmd"] == ["sh"]


def test_the_build_asks_for_debians_name_of_the_architecture() -> None:
    command = build_command(NodeImage(ARMV7), "bookworm", "python3")
    assert "--architectures=armhf" in command
    assert command[-3:] == ["bookworm", "-", "-"]


def test_the_build_runs_nothing_of_the_image() -> None:
    command = build_command(NodeImage(ARM64), "bookworm", "/opt/my python")
    assert "--variant=extract" in command
    assert not any("chroot" in argument for argument in command)
    (hook,) = (argument for argument in command if argument.startswith("--extract-hook="))
    assert hook.startswith("--extract-hook='/opt/my python' -I ")


def test_an_image_of_packages_has_a_shell_and_no_python_is_asked_of_it() -> None:
    command = build_command(MOSQUITTO, "bookworm", "python3")
    assert "--include=mosquitto,mosquitto-clients,busybox-static" in command
    assert not any("--python" in argument for argument in command)


def test_the_build_ends_with_its_parent() -> None:
    command = build_command(NodeImage(AMD64), "bookworm", "python3")
    assert command[:4] == ["setpriv", "--pdeathsig", "TERM", "mmdebstrap"]
