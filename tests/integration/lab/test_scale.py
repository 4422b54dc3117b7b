"""The large lab at a smaller count: containers of three platforms, own links and shared ones, from start to report.

Users run the whole of topologies/valleys-300.yaml by hand; docs/howto/scale.md documents it.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.labs.lab_containers import marked
from support.runs.log_agreement import must_agree
from testbed.backends.docker.engine import engine
from testbed.places import LabPlace

pytestmark = [
    pytest.mark.docker,
    pytest.mark.arm,
    pytest.mark.root,
    pytest.mark.netns,
    pytest.mark.spark,
]

Command = Callable[..., Any]

COUNTS = {
    "villages": 2,
    "slopes": 10,
    "shared": 4,
    "boards": 3,
    "small-boards": 1,
    "sirens": 2,
    "brigades": 1,
}


@pytest.fixture
def valleys(repository: Path, places: Path) -> Path:
    """The lab of three hundred nodes with fewer in each group, and a shorter scenario."""
    text = (repository / "topologies" / "valleys-300.yaml").read_text()
    for group, count in COUNTS.items():
        text, found = re.subn(
            rf"(  {group}:(?: #[^\n]*)?\n(?:    .*\n)*?    count: )\d+", rf"\g<1>{count}", text
        )
        assert found == 1, group
    for old, new in (
        ("slopes[0..4]", "slopes[0..1]"),
        ("boards[0..1]", "boards[0..1]"),
        ("shared[0..9]", "shared[0..3]"),
        ("duration: 30s", "duration: 8s"),
        ("at: 10s", "at: 2s"),
        ("at: 15s", "at: 4s"),
    ):
        assert old in text
        text = text.replace(old, new)
    file = places / "valleys.yaml"
    file.write_text(text)
    return file


def test_a_mixed_lab_starts_is_measured_and_leaves_nothing_behind(
    valleys: Path, testbed: Command, testbed_json: Command, analyzed: Command, places: Path
) -> None:
    up = testbed_json("up", valleys, "--backend", "docker")
    containers = marked(LabPlace(places / "s" / "valleys"))
    assert len(containers) == 23, "routers have no containers"
    architectures = [
        engine().images.get(container.attrs["Image"]).attrs["Architecture"]
        for container in containers
    ]
    assert architectures.count("arm64") == 3
    assert architectures.count("arm") == 1

    played = testbed("play", "valleys")
    assert played.returncode == 0, played.stderr
    assert testbed("down", "valleys").returncode == 0
    assert marked(LabPlace(places / "s" / "valleys")) == []

    run = places / "c" / up["run"]
    messages = analyzed(run)["messages"]
    must_agree(run)
    assert messages["delivered"] == messages["expected_deliveries"] > 100
    assert messages["lost"] == 0
    manifest = json.loads((run / "run.json").read_text())
    assert set(manifest["details"]["images"]) >= {"linux/arm64", "linux/arm/v7"}
    assert set(manifest["details"]["limits"]) == {"pi-3", "pi-2"}
    assert {"villages-0", "boards-0", "small-boards-0"} <= manifest["capture"].keys()
    assert (run / "report.html").exists()
