"""The benchmark of brokers runs and prints what it promises. These tests do not judge speed."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.support.delivery.contestant import MOSQUITTO
from nodes.overlay import BETWEEN_BROKERS

needs_mosquitto = pytest.mark.skipif(
    shutil.which(MOSQUITTO) is None or importlib.util.find_spec("paho") is None,
    reason="apt-get install mosquitto; pip install -e '.[benchmarks]'",
)


def benchmark(repository: Path, *arguments: str) -> Any:
    """The JSON document of a finished benchmark."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.brokers", "--json", *arguments],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.peers
@needs_mosquitto
def test_one_broker_is_compared_with_mosquitto(repository: Path) -> None:
    found = benchmark(repository, "--what", "forward", "--blast", "0.2")
    kinds = {"forward_star", "forward_overlay", "forward_custody", "forward_delay"}
    assert found["ratios"].keys() == found["limits"].keys() == kinds
    rows = {row["name"]: row for row in found["details"]["one broker"]}
    assert {"mosquitto, QoS 0", "mosquitto, QoS 1", "sg-tbps, custody"} < rows.keys()
    assert all(row["per_processor_s"] > 0 and row["delay_s"] > 0 for row in rows.values())


@pytest.mark.root
@pytest.mark.netns
def test_brokers_are_watched_until_they_have_found_one_another(repository: Path) -> None:
    found = benchmark(repository, "--what", "form", "--form", "5")
    assert found["ratios"].keys() == found["limits"].keys() == {"form"}
    keys, levels = found["details"]["keys, levels"]
    assert keys >= 5
    assert levels > 1


@pytest.mark.root
@pytest.mark.netns
def test_bytes_of_idle_overlays_are_counted_for_each_method(repository: Path) -> None:
    asked = ("--idle", "2", "--calm", "1", "--idle-seconds", "10")
    found = benchmark(repository, "--what", "idle", *asked)
    assert found["ratios"].keys() == found["limits"].keys() == {"idle"}
    assert len(found["details"]) == len(BETWEEN_BROKERS)
    for mean, most in found["details"].values():
        assert 0 < mean <= most


def test_a_method_that_does_not_exist_is_not_measured(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.brokers", "--what", "idle", "--methods", "rings"],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no method rings; there is sg-tbps" in done.stderr


@pytest.mark.root
@pytest.mark.netns
@pytest.mark.peers
@needs_mosquitto
def test_alerts_reach_all_offices_through_our_brokers_and_through_mosquitto(
    repository: Path,
) -> None:
    found = benchmark(repository, "--what", "mosquitto", "--play", "5")
    expected = {"backlog_vs_mosquitto", "quiet_vs_mosquitto"}
    assert found["ratios"].keys() == found["limits"].keys() == expected
    for rows in found["details"].values():
        assert len(rows) == 4
        for row in rows:
            assert row["arrived"] == row["due"] > 0
            assert row["photographs"] in (None, 1)
