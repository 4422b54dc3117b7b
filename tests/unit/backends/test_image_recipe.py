"""The node image as data."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from testbed.backends import image_recipe


def test_another_recipe_is_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = image_recipe.tag("amd64")
    assert before == image_recipe.tag("amd64")
    assert before != image_recipe.tag("arm64")
    monkeypatch.setattr(image_recipe, "PACKAGES", (*image_recipe.PACKAGES, "vim"))
    assert before != image_recipe.tag("amd64")


def test_the_archive_names_the_architecture_and_its_layer(tmp_path: Path) -> None:
    layer, archive = tmp_path / "layer.tar", tmp_path / "image.tar"
    with layer.open("w+b") as content, archive.open("w+b") as image:
        with tarfile.open(fileobj=content, mode="w"):
            pass
        image_recipe.write_archive(content, image, "arm64")
    with tarfile.open(archive) as tar:

        def member(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file
            return file.read()

        (manifest,) = json.loads(member("manifest.json"))
        config = json.loads(member(manifest["Config"]))
        assert member(*manifest["Layers"]) == layer.read_bytes()
    assert manifest["RepoTags"] == [image_recipe.tag("arm64")]
    assert config["architecture"] == "arm64"
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_the_build_asks_for_debians_name_of_the_architecture() -> None:
    command = image_recipe.build_command("bookworm", "arm")
    assert "--architectures=armhf" in command
    assert command[-3:] == ["bookworm", "-", "-"]


def test_the_build_ends_with_whoever_asked_for_it() -> None:
    command = image_recipe.build_command("bookworm", "amd64")
    assert command[:4] == ["setpriv", "--pdeathsig", "TERM", "mmdebstrap"]
