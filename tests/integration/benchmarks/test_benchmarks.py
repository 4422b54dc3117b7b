"""The benchmarks run and print what they promise. These tests do not judge speed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers import PEERS
from benchmarks.load import lab_text
from benchmarks.support.harness import Report
from testbed.topology.loader import load_text

needs_compose = pytest.mark.skipif(
    shutil.which("docker-compose") is None, reason="apt-get install docker-compose"
)
needs_mininet = pytest.mark.skipif(
    shutil.which("mnexec") is None or shutil.which("brctl") is None,
    reason="apt-get install mininet bridge-utils",
)


def benchmark(repository: Path, name: str, *arguments: str) -> Any:
    """The JSON document of a finished benchmark."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--json", *arguments],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.root
@pytest.mark.docker
@needs_compose
def test_containers_are_compared_with_docker_compose(repository: Path) -> None:
    found = benchmark(repository, "bringup", "--what", "docker", "--count", "4")
    assert found["ratios"].keys() == found["limits"].keys() == {"docker_up", "docker_down"}
    assert all(ratio > 0 for ratio in found["ratios"].values())
    assert found["details"]["containers"] == 4
    assert found["machine"]["cpu"]


@pytest.mark.root
@pytest.mark.netns
@needs_mininet
def test_namespaces_are_compared_with_mininet(repository: Path) -> None:
    found = benchmark(repository, "bringup", "--what", "netns", "--count", "4")
    assert found["ratios"].keys() == found["limits"].keys() == {"netns_up", "netns_up_bare"}
    assert 0 < found["ratios"]["netns_up"] < found["ratios"]["netns_up_bare"]
    assert found["details"]["hosts"] == 4


@pytest.mark.root
@pytest.mark.docker
def test_the_load_benchmark_reports_memory_and_deliveries(repository: Path) -> None:
    asked = ("--count", "6", "--rate", "20", "--seconds", "3")
    found = benchmark(repository, "load", *asked)
    assert found["ratios"].keys() == found["limits"].keys()
    assert found["ratios"]["container_memory"] > 0
    assert found["ratios"]["undelivered"] == 0
    assert found["details"]["containers"] == 6
    assert found["details"]["messages"] == pytest.approx(60, abs=4)


@pytest.mark.root
@pytest.mark.netns
def test_delivery_methods_are_compared_on_one_link(repository: Path) -> None:
    asked = ("--what", "rates", "--seconds", "10", "--scale", "8")
    found = benchmark(repository, "delivery", *asked, "--only", "dmpq-pc,preemptive,sse")
    expected = {"preemptive_vs_dmpq", "preemptive_wire_vs_dmpq"}
    assert found["ratios"].keys() == found["limits"].keys() == expected
    assert found["details"]["lines"].keys() == {"7 kB/s", "20 kB/s"}
    for rows in found["details"]["lines"].values():
        assert {row["name"] for row in rows} == {"dmpq-pc", "preemptive", "sse"}
        for row in rows:
            assert row["urgent_arrived"] == row["urgent_sent"] > 0
            assert row["routine_arrived"] == 1
            assert 1.05 < row["wire_per_payload"] < 1.3
            assert row["processor_ms"] > 0


@pytest.mark.root
@pytest.mark.netns
@needs_mininet
def test_an_interrupted_benchmark_takes_everything_back(repository: Path, places: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.bringup", "--what", "netns", "--count", "30"],
        cwd=repository,
        env={**os.environ, "TMPDIR": str(places)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(places.glob("testbed-bench-*/s/*/lab.json")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "taken back" in errors
    assert not list(places.iterdir())
    assert not [pid for pid in processes() if str(places) in environment(pid)]


def processes() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def environment(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def test_a_ratio_above_its_limit_is_reported() -> None:
    report = Report(limits={"up": 0.5, "down": 0.5, "not measured": 1.0})
    report.took("ours up", 2.0)
    report.took("ours down", 1.0)
    for seconds in (3.0, 4.0, 100.0):
        report.took("peer", seconds)
    report.compare("up", "ours up", "peer")
    report.compare("down", "ours down", "peer")
    assert report.ratios == {"up": 0.5, "down": 0.25}
    assert report.above == []
    report.took("ours down", 8.0)
    report.compare("down", "ours down", "peer")
    assert report.above == ["down"]


@pytest.mark.parametrize("count", [3, 12, 500])
def test_each_message_of_the_load_is_delivered_once(count: int) -> None:
    topology = load_text(lab_text("load", count, rate=500, seconds=30), "load.yaml")
    assert len(topology.nodes) == count
    subscribed = [topic for node in topology.nodes for topic in node.topics]
    sensors = [node.name for node in topology.nodes if node.kind == "sensor"]
    assert sorted(subscribed) == sorted(f"readings/{name}" for name in sensors)


@pytest.mark.netns
def test_lateness_of_publications_faults_and_starts_is_measured(repository: Path) -> None:
    found = benchmark(repository, "timing", "--count", "2", "--seconds", "4")
    names = {"publications_2", "faults_2", "starts_2", "behind_starts_2"}
    assert found["ratios"].keys() == found["limits"].keys() == names
    assert found["details"]["publications_2"]["n"] == 8
    assert found["details"]["faults_2"]["n"] == 4
    assert found["details"]["starts_2"]["n"] == found["details"]["behind_starts_2"]["n"] == 2


@pytest.mark.netns
@pytest.mark.spark
def test_answers_are_compared_with_a_plain_session_and_a_typer_program(repository: Path) -> None:
    found = benchmark(repository, "answers", "--rounds", "1")
    assert found["ratios"].keys() == found["limits"].keys() == PEERS.keys()
    assert all(ratio > 0 for ratio in found["ratios"].values())
    assert found["seconds"].keys() == {*PEERS, *PEERS.values()}
