"""Nodes for ARM beside native ones: real containers, through qemu where this machine has no ARM processor."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from support.labs.lab_containers import marked
from testbed.backends.docker import platforms
from testbed.backends.docker.containers import NODE_LABEL
from testbed.backends.docker.engine import engine
from testbed.backends.docker.image_recipe import NodeImage
from testbed.backends.docker.platforms import Platform
from testbed.errors import MissingCapability
from testbed.lab.up import bring_up
from testbed.places import LabPlace
from testbed.progress import ignore
from testbed.topology import load

pytestmark = [pytest.mark.docker, pytest.mark.root, pytest.mark.netns]

Command = Callable[..., Any]
FOREIGN = {"linux/arm64": ("arm64", "aarch64"), "linux/arm/v7": ("arm", "armv7l")}
SMALL = 60_000_000  # bytes
FILE = """
name: mixed
defaults: {link: lan}
nodes:
  broker: {kind: broker, platform: linux/arm64}
  zero: {kind: sensor, platform: linux/arm/v7, class: pi-zero}
  three: {kind: sensor, platform: linux/arm64, class: pi-3}
  here: {kind: sensor, class: pi-zero-2w}
  office: {kind: subscriber, topics: [alerts]}
  siren: {kind: subscriber, topics: [alerts], platform: linux/arm/v7}
scenario:
  duration: 2s
  events:
    - at: 0s
      publish: {from: [zero, three, here], topic: alerts, priority: 5, size: 300B, period: 500ms}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.yaml"
    path.write_text(FILE)
    return path


def inside(container: Container, *command: str) -> str:
    code, output = container.exec_run(list(command))
    assert code == 0, output
    return str(output.decode().strip())


def limits_inside(container: Container) -> tuple[int, float | None]:
    """Memory, and processor time per time, from the node's own control group (files of old and new kernels)."""
    script = """
    cd /sys/fs/cgroup
    cat memory.max memory/memory.limit_in_bytes 2>/dev/null
    cat cpu.max 2>/dev/null || cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us
    """
    memory, quota, period = inside(container, "sh", "-c", script).split()
    return int(memory), int(quota) / int(period) if quota not in ("max", "-1") else None


@pytest.mark.arm
def test_images_for_arm_name_their_platform_and_are_small(testbed_json: Command) -> None:
    built = testbed_json("image", "build", "--platform", ",".join(FOREIGN))["images"]
    assert {image["platform"] for image in built} == set(FOREIGN)
    for image in built:
        about = engine().images.get(image["name"]).attrs
        assert about["Architecture"] == FOREIGN[image["platform"]][0]
        assert about.get("Variant", "") == Platform.parse(image["platform"]).variant
        assert image["name"] == NodeImage(Platform.parse(image["platform"])).name
        assert image["size"] < SMALL
        assert image["runs"]
    listed = testbed_json("image", "list")["images"]
    assert {image["name"] for image in built} <= {i["name"] for i in listed if i["current"]}


@pytest.mark.arm
@pytest.mark.spark
def test_a_lab_of_several_processors_delivers_from_up_to_the_analysis(
    file: Path, testbed: Command, testbed_json: Command, analyzed: Command, places: Path
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    assert up["state"] == "up"
    containers = {
        each.labels[NODE_LABEL]: each for each in marked(LabPlace(places / "s" / "mixed"))
    }
    machines = {name: inside(container, "uname", "-m") for name, container in containers.items()}
    for node in load(file).nodes:
        expected = (
            FOREIGN[node.platform][1]
            if node.platform
            else inside(containers["here"], "uname", "-m")
        )
        assert machines[node.name] == expected

    details = json.loads((places / "c" / up["run"] / "run.json").read_text())["details"]
    assert set(FOREIGN) < set(details["images"])
    for node in load(file).nodes:
        memory, share = limits_inside(containers[node.name])
        if node.board is None:
            assert containers[node.name].attrs["HostConfig"]["Memory"] == 0
            assert share is None
            continue
        own = next(name for name in details["images"] if name not in FOREIGN)
        asked = details["limits"][node.board][node.platform or own]
        assert memory == asked["memory_bytes"]
        if asked["cpu_share"] is None:  # an emulated core is slower than the board's
            assert share is None
            assert asked["of_board_speed"] < 1
        else:
            assert share == pytest.approx(asked["cpu_share"], rel=0.02)
    assert details["limits"]["pi-zero-2w"], "a class sets limits also without a platform"

    played = testbed_json("play", "mixed")
    assert (played["published"], played["received"]) == (12, 24)
    assert testbed("down", "mixed").returncode == 0
    summary = analyzed(places / "c" / up["run"])
    assert summary["messages"]["delivered"] == 24
    assert summary["messages"]["lost"] == 0


def test_without_a_handler_nothing_is_started(
    file: Path, places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = tmp_path / "binfmt_misc"
    handlers.mkdir()
    (handlers / "status").write_text("enabled\n")
    monkeypatch.setattr(platforms, "BINFMT", handlers)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(MissingCapability) as refused:
        bring_up(load(file), file, "docker", ignore)
    for named in ("linux/arm64", "linux/arm/v7", "broker", "three", "zero", "siren"):
        assert named in refused.value.message
    assert "sudo " in refused.value.hint
    assert not (places / "s" / "mixed").exists()
    assert not (places / "c").exists() or not any((places / "c").iterdir())
    assert marked(LabPlace(places / "s" / "mixed")) == []


def test_under_netns_platform_and_class_are_recorded_only(file: Path, testbed: Command) -> None:
    up = testbed("up", file, "--backend", "netns")
    assert up.returncode == 0, up.stderr
    assert "under the netns backend 5 nodes run with this machine's own processor" in " ".join(
        up.stderr.split()
    )
