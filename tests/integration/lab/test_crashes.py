"""Parts of a lab die, or the commands that work on it. docs/explanation/crashes.md lists the outcome of each case."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.labs.crashing_lab import DELIVERIES, Victim, wait_for
from support.labs.lab_containers import marked
from testbed.backends.docker.containers import NODE_LABEL
from testbed.keeper.processes import marked as marked_processes

pytestmark = pytest.mark.netns

ON_AN_ENGINE = [pytest.mark.docker, pytest.mark.root]
DOCKER = pytest.param("docker", marks=ON_AN_ENGINE)
EVERYWHERE = pytest.mark.parametrize("backend", ["netns", DOCKER])
ON_NETNS = pytest.mark.parametrize("backend", ["netns"])
ON_DOCKER = pytest.mark.parametrize("backend", [DOCKER])


@pytest.fixture
def victim(testbed: Callable[..., Any], places: Path, backend: str) -> Victim:
    return Victim(testbed, places, backend)


@pytest.fixture
def lab(victim: Victim) -> Victim:
    """A lab that is up."""
    up = victim.up()
    assert up.returncode == 0, up.stderr
    return victim


def kill_node(lab: Victim, name: str) -> None:
    if lab.backend == "netns":
        lab.kill(f"node:{name}")
        return
    (container,) = (each for each in marked(lab.place) if each.labels[NODE_LABEL] == name)
    container.kill()
    container.wait(timeout=60)


@pytest.mark.parametrize(
    ("backend", "name"),
    [("netns", "broker"), ("netns", "siren"), pytest.param("docker", "siren", marks=ON_AN_ENGINE)],
)
def test_a_dead_node_is_reported_and_replaced(lab: Victim, name: str) -> None:
    others = {role: pid for role, pid in lab.pids().items() if role != f"node:{name}"}
    kill_node(lab, name)
    assert lab.nodes() == {**dict.fromkeys(lab.nodes(), "running"), name: "silent"}
    assert lab.status()["state"] == "partly"
    played = lab.play()
    assert played.returncode == 1
    assert f"no answer from {name}" in played.stderr

    up = lab.up()
    assert up.returncode == 0, up.stderr
    assert others.items() <= lab.pids().items(), "the others were left alone"
    lab.assert_whole()
    assert lab.down().returncode == 0
    (warning,) = lab.manifest()["warnings"]
    assert f"made anew: {name}" in warning


@ON_NETNS
@pytest.mark.parametrize("name", ["siren", "sensor"])
def test_play_names_a_node_that_dies_meanwhile_and_counts_the_deliveries_of_the_others(
    lab: Victim, name: str
) -> None:
    playing = lab.begin("play", "victim")
    wait_for(lab.publishes)
    kill_node(lab, name)
    stdout, stderr = playing.communicate(timeout=120)
    assert playing.returncode == 3, stderr
    assert f"while the scenario was played: no answer from {name}" in stderr
    (made, expected) = map(int, re.findall(r"(\d+) of (\d+) deliveries made", stdout)[0])
    never = [int(count) for count in re.findall(r"(\d+) more deliveries were expected", stderr)]
    assert expected + sum(never) == DELIVERIES
    assert bool(never) is (name == "sensor")  # what a dead sensor did not publish cannot be lost
    assert made < DELIVERIES
    assert any(f"no answer from {name}" in text for text in lab.manifest()["warnings"])


@ON_NETNS
@pytest.mark.parametrize(
    ("role", "trouble", "repair", "code"),
    [
        ("relay", "the relay has died", "new links: broker, sensor, siren, horn", 0),
        ("capture", "the capture has died", "captured anew: broker, sensor, siren, horn", 3),
    ],
)
def test_a_dead_relay_or_capture_is_reported_and_replaced(
    lab: Victim, role: str, trouble: str, repair: str, code: int
) -> None:
    nodes = {each: pid for each, pid in lab.pids().items() if each.startswith("node:")}
    lab.kill(role)
    wait_for(lambda: lab.status()["state"] == "partly")
    assert trouble in lab.status()["problems"][0]
    played = lab.play()
    assert played.returncode == 1
    assert trouble in played.stderr
    assert trouble in lab("inject", "victim", "--from", "sensor").stderr

    up = lab.up()
    assert up.returncode == 0, up.stderr
    assert repair in up.stderr
    assert nodes.items() <= lab.pids().items(), "the nodes were left alone"
    lab.assert_whole()
    assert lab.down().returncode == code
    assert any(repair in warning for warning in lab.manifest()["warnings"])


@ON_NETNS
def test_a_lab_does_not_depend_on_its_monitor(lab: Victim) -> None:
    lab.kill("monitor")
    lab.assert_whole()
    assert lab.down().returncode == 0


@EVERYWHERE
def test_a_lab_whose_keeper_dies_is_dead_and_up_starts_it_anew_where_it_was(lab: Victim) -> None:
    lab.kill("keeper")
    status = lab.status()
    assert status["state"] == "dead"
    assert "its keeper has died" in status["problems"][0]
    assert "its keeper has died" in lab.play().stderr
    orphans = json.loads(lab("status", "--orphans", "--json").stdout)["orphans"]
    ours = [orphan for orphan in orphans if orphan["lab"] == str(lab.place.folder)]
    assert [(orphan["what"], orphan["remedy"]) for orphan in ours] == [
        ("lab", "testbed down victim")
    ]

    up = lab("up", lab.file)
    assert up.returncode == 0, up.stderr
    assert "lab victim had died" in up.stderr
    assert lab.status()["backend"] == lab.backend, "the command named no backend"
    lab.assert_whole()
    assert [lab.manifest(number)["status"] for number in (0, 1)] == ["died", "played"]
    assert lab.runs()[0].joinpath("pcap").exists(), "captures stay"


@ON_NETNS
def test_down_clears_a_lab_whose_keeper_died(lab: Victim, watch: Any) -> None:
    lab.kill("keeper")
    down = lab.down()
    assert down.returncode == 0
    assert "its captures end where it died" in down.stderr
    assert lab.manifest()["status"] == "died"
    assert watch.leftovers() == []


@pytest.mark.parametrize(
    ("backend", "step"),
    [
        ("netns", "create"),
        ("netns", "start"),
        pytest.param("docker", "create", marks=ON_AN_ENGINE),
        pytest.param("docker", "wire", marks=ON_AN_ENGINE),
    ],
)
def test_an_up_that_is_killed_is_completed_by_the_next(victim: Victim, step: str) -> None:
    first = victim.begin_up()
    victim.wait_for_step(step)
    first.kill()
    first.communicate()
    up = victim.up()
    assert up.returncode == 0, up.stderr
    victim.assert_whole()
    assert victim.down().returncode == 0
    if victim.backend == "docker":
        assert marked(victim.place) == []


@pytest.mark.parametrize(
    ("backend", "step"),
    [
        ("netns", "wire"),
        pytest.param("docker", "create", marks=ON_AN_ENGINE),
        pytest.param("docker", "start", marks=ON_AN_ENGINE),
    ],
)
def test_an_up_that_is_interrupted_leaves_nothing(victim: Victim, step: str, watch: Any) -> None:
    first = victim.begin_up()
    victim.wait_for_step(step)
    watch.processes()
    first.send_signal(signal.SIGINT)
    _, stderr = first.communicate(timeout=120)
    assert first.returncode == 130, stderr
    assert "this command removed what it had created" in stderr
    assert watch.leftovers() == []
    assert victim.runs() == []
    if victim.backend == "docker":
        assert marked(victim.place) == []


@ON_NETNS
def test_a_run_that_is_killed_while_it_plays_leaves_a_lab_that_down_ends_in_order(
    victim: Victim, watch: Any
) -> None:
    run = victim.begin("run", str(victim.file), "--backend", "netns")
    wait_for(lambda: victim.runs() and victim.manifest()["status"] == "up")
    wait_for(victim.publishes)
    run.kill()
    run.communicate()
    assert victim.status()["state"] == "up"
    again = victim("run", victim.file)
    assert again.returncode == 2
    assert "`testbed down victim`" in again.stderr
    assert victim.down().returncode == 0
    manifest = victim.manifest()
    assert (manifest["status"], manifest["play"]) == ("down", None)
    assert sum(link["packets"] for link in manifest["capture"].values()) > 0
    assert watch.leftovers() == []


@EVERYWHERE
def test_a_down_that_is_killed_is_completed_by_the_next(lab: Victim, watch: Any) -> None:
    watch.processes()
    first = lab.begin("down", "victim")
    lab.wait_for_step("stop")
    first.kill()
    first.communicate()
    assert lab.down().returncode == 0
    assert lab.manifest()["status"] == "down"
    assert marked_processes(lab.place) == []
    if lab.backend == "docker":
        assert marked(lab.place) == []
    assert watch.leftovers() == []


@ON_DOCKER
def test_up_names_a_node_whose_container_name_is_taken_and_starts_the_others(
    lab: Victim,
) -> None:
    (siren,) = (each for each in marked(lab.place) if each.labels[NODE_LABEL] == "siren")
    kill_node(lab, "horn")
    siren.remove(force=True)
    foreign = siren.client.containers.create(siren.image, ["true"], name=siren.name)
    try:
        up = lab.up()
        assert up.returncode == 1
        assert "siren could not be created" in up.stderr
        assert "already in use" in up.stderr
        assert lab.nodes() == {**dict.fromkeys(lab.nodes(), "running"), "siren": "silent"}
    finally:
        foreign.remove(force=True)
    assert lab.up().returncode == 0
    lab.assert_whole()


@ON_DOCKER
def test_up_names_a_node_whose_program_cannot_start_and_starts_the_others(lab: Victim) -> None:
    image = marked(lab.place)[0].attrs["Config"]["Image"]
    before = lab.file.read_text()

    def add_external_node(command: str) -> None:
        external = f'  added: {{kind: external, image: "{image}", command: {command}}}\n'
        lab.file.write_text(before.replace("  broker:", f"{external}  broker:"))

    add_external_node("[/no/such/program]")
    up = lab("up", lab.file, "--json")
    assert up.returncode == 1
    document = json.loads(up.stdout)
    assert document["failed"] == ["added"]
    assert "/no/such/program" in document["error"]["message"]
    assert lab.nodes() == {**dict.fromkeys(lab.nodes(), "running"), "added": "silent"}

    add_external_node('[sh, -c, "trap exit TERM; while :; do sleep 0.2; done"]')
    again = lab.up()
    assert again.returncode == 0, again.stderr
    assert lab.nodes()["added"] == "running"
    lab.assert_whole()
