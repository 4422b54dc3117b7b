"""Mistakes of a user and missing capabilities of a machine: one clear sentence, the right exit code, nothing left."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.netns


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The error as shown; exactly one sentence, and no traceback."""
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    return errors[0].removeprefix("error: ")


def test_a_missing_engine(testbed, repository, watch):
    minimal = repository / "topologies" / "minimal.yaml"
    no_engine = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    done = testbed("up", minimal, "--backend", "docker", env=no_engine)
    assert (done.returncode, sentence(done)) == (1, "no Docker engine answers")
    assert "make engine" in done.stderr
    assert watch.leftovers() == []


def test_up_without_an_engine_uses_namespaces_unless_docker_was_requested(testbed, repository):
    minimal = repository / "topologies" / "minimal.yaml"
    no_engine = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    done = testbed("up", minimal, env=no_engine)
    assert done.returncode == 0, done.stderr
    assert "backend netns: no Docker engine answers" in done.stderr


@pytest.mark.root
def test_a_missing_permission(testbed, repository, watch):
    minimal = repository / "topologies" / "minimal.yaml"
    with_no_namespaces = ["unshare", "--user", "--map-root-user"]
    limit = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    done = subprocess.run(
        [
            *with_no_namespaces,
            "sh",
            "-c",
            limit,
            "sh",
            sys.executable,
            "-m",
            "testbed",
            "up",
            minimal,
        ],
        cwd=repository,
        env=dict(os.environ),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "does not let us make network namespaces" in sentence(done)
    assert watch.leftovers() == []


def test_a_name_that_is_taken(testbed, repository, places):
    minimal = repository / "topologies" / "minimal.yaml"
    other = places / "other.yaml"
    other.write_text(minimal.read_text())
    assert testbed("up", minimal, "--backend", "netns").returncode == 0
    done = testbed("up", other, "--backend", "netns")
    assert done.returncode == 2
    assert "is up already, from" in sentence(done)
    assert "--name" in done.stderr


@pytest.mark.root
@pytest.mark.parametrize("size", ["4k", "16k"])  # full at the manifest, full at the captures
def test_a_full_disk(size, testbed, repository, places, watch):
    small = places / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", small], check=True)
    try:
        done = testbed(
            "up",
            repository / "topologies" / "minimal.yaml",
            "--backend",
            "netns",
            env={"TESTBED_CAPTURES": str(small)},
        )
        assert done.returncode == 1
        assert re.search("the disk is full|No space left on device", sentence(done))
        assert "make room" in done.stderr
    finally:
        subprocess.run(["umount", small], check=True)
    assert watch.leftovers() == []


def test_a_broken_file(testbed, places):
    broken = places / "broken.yaml"
    broken.write_text("name: x\nnodes: {broker: {kind: brokr}\n")
    done = testbed("up", broken)
    assert done.returncode == 2
    assert "broken.yaml:" in done.stderr
    assert "Traceback" not in done.stderr
    as_json = testbed("run", broken, "--json")
    assert as_json.returncode == 2
    document = json.loads(as_json.stdout)
    assert document["valid"] is False
    assert document["errors"][0]["line"] >= 1


def test_a_file_that_is_not_there(testbed):
    done = testbed("validate", "nowhere.yaml")
    assert done.returncode == 2
    assert "nowhere.yaml" in done.stdout + done.stderr


def test_an_unknown_lab_or_run(testbed):
    done = testbed("play", "nowhere")
    assert (done.returncode, sentence(done)) == (2, "no lab named 'nowhere' is up")
    done = testbed("analyze", "nowhere")
    assert done.returncode == 2
    assert json.loads(testbed("analyze", "nowhere", "--json").stdout)["error"]["exit_code"] == 2


def test_boards_are_not_a_backend_of_up(testbed, repository):
    done = testbed("up", repository / "topologies" / "minimal.yaml", "--backend", "boards")
    assert (done.returncode, sentence(done)) == (
        2,
        "an inventory selects boards, not --backend",
    )
    assert "testbed deploy FILE -i INVENTORY" in done.stderr


def test_no_node_is_deployed_without_a_matching_inventory(testbed, repository, tmp_path):
    file, inventory = repository / "topologies" / "hillside.yaml", tmp_path / "inventory.yml"
    done = testbed("deploy", file, "-i", inventory)
    assert (done.returncode, sentence(done)) == (2, f"there is no inventory {inventory}")
    inventory.write_text("boards: {hosts: {slopes-0: {ansible_host: 192.0.2.1}}}")
    done = testbed("deploy", file, "-i", inventory)
    assert done.returncode == 2
    assert "the inventory has no board for slopes-1, slopes-2, sirens-0" in sentence(done)
    minimal = testbed("deploy", repository / "topologies" / "minimal.yaml", "-i", inventory)
    assert minimal.returncode == 2
    assert "has `place: boards`" in sentence(minimal)


def test_a_simulated_lab_cannot_be_up(testbed, repository):
    for command in ("up", "plan"):
        file = repository / "topologies" / "minimal.yaml"
        done = testbed(command, file, "--backend", "simulated")
        assert done.returncode == 2
        assert "a simulated lab cannot be up" in sentence(done)
        assert "testbed simulate FILE" in done.stderr


def test_wrong_usage_is_one_document_too(testbed):
    for arguments in (("up", "--json"), ("inject", "--priority", "9", "--json")):
        done = testbed(*arguments)
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["exit_code"] == 2
        assert "Traceback" not in done.stderr


def test_a_captures_folder_that_cannot_be_created(testbed, repository, watch):
    done = testbed(
        "up",
        repository / "topologies" / "minimal.yaml",
        "--backend",
        "netns",
        env={"TESTBED_CAPTURES": "/dev/null/c"},
    )
    assert done.returncode == 1
    assert sentence(done).startswith("Not a directory: /dev/null/c/minimal-")
    assert watch.leftovers() == []


def test_a_name_that_is_a_path(testbed, places):
    (places / "victim").mkdir()
    done = testbed("down", places / "victim")
    assert done.returncode == 2
    assert "cannot be a lab's name" in sentence(done)
    assert (places / "victim").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_takes_its_lab_down(
    number, repository, wait_until, watch, places
):
    minimal = repository / "topologies" / "minimal.yaml"
    run = subprocess.Popen(
        [sys.executable, "-m", "testbed", "run", minimal, "--backend", "netns", "--json"],
        cwd=repository,
        env=dict(os.environ),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: list((places / "c").glob("*/planned.jsonl")), seconds=60)
    run.send_signal(number)
    out, err = run.communicate(timeout=120)
    assert run.returncode == 130, err
    assert json.loads(out)["error"]["message"].startswith("interrupted; the lab was taken down")
    assert watch.leftovers() == []
