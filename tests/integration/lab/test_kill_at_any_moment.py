"""`kill -9` of `testbed up` at random moments: `testbed down` removes all of that lab and touches nothing else."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

MOMENTS = 6


@pytest.mark.netns
@pytest.mark.parametrize(
    "backend", ["netns", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.root])]
)
def test_down_removes_a_lab_that_was_killed_at_any_moment_and_leaves_its_neighbour_running(
    backend, testbed, testbed_json, watch, places, repository
):
    minimal = repository / "topologies" / "minimal.yaml"
    neighbour = testbed_json("up", minimal, "--name", "neighbour", "--backend", "netns")
    neighbours_processes = watch.processes()
    begun = time.monotonic()
    assert testbed("up", minimal, "--name", "victim", "--backend", backend).returncode == 0
    whole_up_s = time.monotonic() - begun
    assert testbed("down", "victim").returncode == 0

    draw = random.Random(2026)
    for number in range(MOMENTS):
        command = [sys.executable, "-m", "testbed", "up", str(minimal)]
        victim = subprocess.Popen(
            [*command, "--name", "victim", "--backend", backend],
            cwd=repository,
            env=dict(os.environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(whole_up_s * (number + draw.random()) / MOMENTS)  # one in each sixth
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        watch.processes()
        down = testbed("down", "victim")
        assert down.returncode == 0, down.stderr
        assert watch.processes() == neighbours_processes
        assert not (places / "s" / "victim").exists()
        if backend == "docker":
            assert containers_of(places) == []

    assert testbed_json("status", "neighbour")["labs"][0]["nodes"] == neighbour["nodes"]
    assert testbed("down", "neighbour").returncode == 0
    assert watch.leftovers() == []


def containers_of(places) -> list[str]:
    from testbed.backends.docker.engine import engine

    return [
        container.name
        for container in engine().containers.list(all=True)
        if container.labels.get("testbed.lab_dir", "").startswith(str(places))
    ]
