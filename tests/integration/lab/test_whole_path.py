"""From a topology file to numbers: captures and nodes must agree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.labs.lab_processes import processor_wait
from support.runs.log_agreement import must_agree
from testbed.places import LabPlace

AGREEMENT_S = 0.005
EARLY_S = 0.001  # a message passes the link before the node gets it, by the same clock

CONTRACT = {
    "messages": {"published", "expected_deliveries", "delivered", "lost", "duplicates"},
    "overhead": {"payload_bytes", "wire_bytes", "packets", "retransmitted_packets"},
    "fidelity": {"ok", "reasons", "machine"},
}


def log_lines(run_folder: Path, event: str) -> list[dict]:
    return [
        line
        for log in sorted((run_folder / "logs").glob("*.jsonl"))
        for line in map(json.loads, log.read_text().splitlines())
        if line["event"] == event
    ]


def captured_delays(run_folder: Path) -> dict[tuple[str, str], float]:
    """(message, receiver) -> delay, from the metrics."""
    import pyarrow.parquet as pq

    table = pq.read_table(run_folder / "metrics" / "deliveries.parquet")
    rows = table.select(["id", "receiver", "status", "delay_s"]).to_pylist()
    return {(r["id"], r["receiver"]): r["delay_s"] for r in rows if r["status"] == "delivered"}


def logged_delays(run_folder: Path) -> dict[tuple[str, str], float]:
    """The same from the subscribers' logs."""
    return {
        (line["id"], line["node"]): (line["t"] - line["published_ns"]) / 1e9
        for line in log_lines(run_folder, "receive")
    }


def check_document(document: dict) -> None:
    """Check the contract for programs (docs/reference/json.md)."""
    assert {"run", "backend", "emulator", "delay_s", "hops"} <= document.keys()
    for key, parts in CONTRACT.items():
        assert parts <= document[key].keys()
    for level, delay in document["delay_s"].items():
        assert level in "12345"
        assert {"n", "p50", "p95", "p99", "max"} <= delay.keys()
        assert {"mean", "max"} <= document["hops"][level].keys()


@pytest.mark.netns
@pytest.mark.spark
@pytest.mark.parametrize(
    "backend", ["netns", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.root])]
)
def test_captures_and_logs_agree_on_every_delivery(
    backend, testbed_json, analyzed, watch, repository
):
    """A node that waits for a processor reads its clock late, by no more than all processes of the lab waited."""
    minimal = repository / "topologies" / "minimal.yaml"
    up = testbed_json("up", minimal, "--backend", backend)
    waits = processor_wait(LabPlace.of("minimal"), with_containers=backend == "docker")
    testbed_json("play", "minimal")
    waited_s = waits.seconds()
    testbed_json("down", "minimal")
    folder = Path(up["run_folder"])
    document = analyzed(folder)
    check_document(document)
    must_agree(folder)
    captured, logged = captured_delays(folder), logged_delays(folder)
    assert captured.keys() == logged.keys()
    assert document["backend"] == backend
    assert document["fidelity"]["machine"]["wakeup_max_s"] > 0

    published = {line["id"] for line in log_lines(folder, "publish")}
    assert document["messages"]["published"] == len(published) > 0
    assert document["messages"]["delivered"] == len(captured)
    assert document["messages"]["lost"] == 0
    assert {message for message, _ in captured} == published
    assert all(hops["mean"] == hops["max"] == 2 for hops in document["hops"].values())

    late = [logged[key] - captured[key] for key in captured]
    assert min(late) > -EARLY_S
    assert max(late) < AGREEMENT_S + waited_s
    assert watch.leftovers() == []
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.spark
def test_the_sample_run_is_measured_without_a_lab(testbed_json, places, repository):
    folder = places / "c" / "sample"
    shutil.copytree(repository / "captures" / "sample", folder)
    document = testbed_json("analyze", folder)
    check_document(document)
    assert document["fidelity"]["machine"] is None  # no monitor ran
    captured, logged = captured_delays(folder), logged_delays(folder)
    assert len(captured) == document["messages"]["delivered"] == 5
    must_agree(folder)
    assert all(abs(captured[key] - logged[key]) < AGREEMENT_S for key in logged)


@pytest.mark.netns
@pytest.mark.root
@pytest.mark.spark
def test_a_user_without_root_runs_and_measures_a_lab(nobody, repository):
    """As an ordinary user, the whole lab runs in a user namespace."""
    shutil.copy(repository / "topologies" / "minimal.yaml", nobody.home)
    done = nobody.python("-m", "testbed", "run", "minimal.yaml", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check_document(document)
    assert document["backend"] == "netns"
    assert "without root" in done.stderr
    assert document["fidelity"]["machine"]["wakeup_max_s"] > 0
    assert document["messages"]["lost"] == 0
    assert list((nobody.home / "s").iterdir()) == []


@pytest.mark.netns
def test_two_labs_at_once_do_not_disturb_each_other(testbed, testbed_json, watch, repository):
    minimal = repository / "topologies" / "minimal.yaml"
    for name in ("east", "west"):
        testbed_json("up", minimal, "--name", name, "--backend", "netns")
    plays = [
        subprocess.Popen(
            [sys.executable, "-m", "testbed", "play", name, "--json"],
            cwd=repository,
            env=dict(os.environ),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for name in ("east", "west")
    ]
    for process in plays:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        played = json.loads(out)
        assert played["received"] == played["expected"] > 0
    assert testbed("down", "east").returncode == 0
    (west,) = testbed_json("status")["labs"]
    assert (west["name"], west["state"]) == ("west", "up")
    assert testbed("down", "west").returncode == 0
    assert watch.leftovers() == []


@pytest.mark.netns
def test_messages_in_transit_still_arrive_when_a_lab_is_taken_down(
    testbed, testbed_json, repository
):
    minimal = repository / "topologies" / "minimal.yaml"
    lab = testbed_json("up", minimal, "--backend", "netns")
    inject = ("inject", "minimal", "--from", "sensor", "--size", "15kB")  # a second on its link
    injected = [testbed_json(*inject)["id"] for _ in range(2)]
    assert testbed("down", "minimal").returncode == 0
    received = [line["id"] for line in log_lines(Path(lab["run_folder"]), "receive")]
    assert received == injected
