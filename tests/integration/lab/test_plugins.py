"""Parts of other packages, installed as the pages in `docs/dev` say: in a lab, in virtual time, and with errors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.pages import blocks_of
from support.plugins import entry_points_of, install

PAGES = {
    "drop_low": "add-a-delivery-method.md",
    "counting": "add-an-overlay-method.md",
    "our_links": "add-a-link-profile.md",
}
TOPOLOGY = """
name: plugged
overlay: {method: counting}
delivery: {method: drop-low}
nodes:
  one: {kind: broker, link: lan}
  two: {kind: broker, link: lan}
  camera: {kind: sensor, link: lan, brokers: [one]}
  siren: {kind: subscriber, link: satellite, brokers: [two], topics: [photos, alerts]}
scenario:
  duration: 6s
  settle: 20s
  events:
    - {at: 0s, publish: {from: camera, topic: photos, priority: 1, size: 20kB, period: 50ms, count: 40}}
    - {at: 1s, publish: {from: camera, topic: alerts, priority: 5, size: 200B, period: 1s, count: 4}}
"""


@pytest.fixture
def installed(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packages of all pages, where testbed finds them."""
    for module, name in PAGES.items():
        blocks = blocks_of(repository / "docs" / "dev" / name)
        (code,), (toml,) = blocks["python"], blocks["toml"]
        folder = install(tmp_path, module, {f"{module}.py": code}, entry_points_of(toml))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "plugged.yaml"
    path.write_text(TOPOLOGY)
    return path


def check(summary: dict[str, Any]) -> None:
    """All alerts have arrived. The plugin has dropped routine messages, for which other methods have room."""
    levels = summary["by_priority"]
    assert (levels["5"]["lost"], levels["5"]["expected"]) == (0, 4)
    assert levels["1"]["lost"] > 0
    assert summary["lost_reasons"] == {"queue full at two": levels["1"]["lost"]}


def test_plugins_lists_what_the_pages_install(installed, testbed_json):
    rows = testbed_json("plugins")["plugins"]
    assert [(row["name"], row["package"], row["state"]) for row in rows] == [
        ("drop-low", "drop_low", "ready"),
        ("counting", "counting", "ready"),
        ("satellite", "our_links", "ready"),
    ]


@pytest.mark.netns
@pytest.mark.spark
def test_a_lab_runs_methods_and_links_of_other_packages(installed, topology, testbed_json):
    check(testbed_json("run", topology, "--backend", "netns", "--no-report"))


@pytest.mark.spark
def test_they_also_run_in_virtual_time(installed, topology, testbed_json):
    check(testbed_json("simulate", topology, "--no-report"))


def test_without_the_package_the_file_names_something_unknown(topology, testbed):
    done = testbed("validate", topology)
    assert done.returncode == 2
    for unknown in (
        "overlay method 'counting'",
        "delivery method 'drop-low'",
        "link profile 'satellite'",
    ):
        assert f"there is no {unknown}" in done.stdout


def test_a_broken_link_profile_is_an_error_only_for_files_that_name_it(
    tmp_path, monkeypatch, testbed: Callable[..., Any]
):
    folder = install(
        tmp_path,
        "broken",
        {"broken.py": "LINK = 1\n"},
        "[testbed.profiles]\nbroken = broken:LINK\n",
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    reason = "package broken brings 'broken:LINK' as the link profile 'broken', which is no BuiltIn"
    file = tmp_path / "broken.yaml"
    builtin = TOPOLOGY.replace("counting", "fan-tbps").replace("drop-low", "fifo")
    file.write_text(builtin.replace("satellite", "lan"))
    assert testbed("validate", file).returncode == 0
    file.write_text(builtin.replace("satellite", "broken"))
    done = testbed("validate", file)
    assert done.returncode == 2
    assert reason in done.stdout
    assert testbed("profiles").returncode == 2


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('not today')", "cannot be loaded: not today"),
        ("", "cannot be loaded: module 'broken' has no attribute 'DELIVERY'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named_with_the_reason(
    tmp_path, monkeypatch, testbed: Callable[..., Any], code, reason
):
    points = "[testbed.deliveries]\nbroken = broken:DELIVERY\n"
    folder = install(tmp_path, "broken", {"broken.py": code}, points)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    listed = json.loads(testbed("plugins", "--json").stdout)["plugins"]
    assert reason in listed[0]["state"]
    file = tmp_path / "broken.yaml"
    file.write_text(
        TOPOLOGY.replace("counting", "star")
        .replace("drop-low", "broken")
        .replace("satellite", "lan")
    )
    done = testbed("validate", file)
    assert done.returncode == 2
    assert "package broken 1.0 brings 'broken' as 'broken:DELIVERY'" in done.stdout
