"""Time Mininet inside a network and a mount namespace of its own, so that it does not touch the machine.

Its hosts have the nodes of a topology: the same program, the same addresses, the same rates.
"""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.backends.common.node_config import lab_secret, node_config, write_node_files
from testbed.backends.common.zipapp import build
from testbed.errors import MissingCapability, TestbedError
from testbed.places import LabPlace, RunPlace
from testbed.topology import load

SYSTEM_PYTHON = "/usr/bin/python3"
SCRIPT = Path(__file__).with_name("mininet_star.py")
END_S = 300.0
# /sys must show the new namespace's interfaces: brctl looks there.
_INSIDE = 'mount -t sysfs none /sys && ip link set lo up && exec "$@"'
_APART = ("unshare", "--net", "--mount", "sh", "-c", _INSIDE, "sh")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from Mininet's start until its bare network stood and until all nodes were ready; then until its end."""

    bare_s: float
    ready_s: float
    down_s: float


def check() -> None:
    """MissingCapability if Mininet cannot run here."""
    for tool, package in (("mnexec", "mininet"), ("brctl", "bridge-utils"), ("tc", "iproute2")):
        if shutil.which(tool) is None:
            raise MissingCapability(f"{tool} is missing", f"`apt-get install {package}` has it")


def up_and_down(topology: Path, folder: Path) -> Times:
    """Run the nodes of the topology on Mininet."""
    folder.mkdir()
    try:
        return _run(_write_hosts(topology, folder))
    finally:
        shutil.rmtree(folder)


def _write_hosts(source: Path, folder: Path) -> Path:
    """Write the files that each host needs; this is not part of the measured time."""
    topology = load(source)
    lab, run = LabPlace(folder / "lab"), RunPlace(folder / "run")
    run.logs.mkdir(parents=True)
    lab.folder.mkdir()
    program = build(folder / "nodes.pyz")
    hosts = []
    for node in topology.nodes:
        control = str(lab.node_control(node.name))
        config = node_config(topology, node, run, control, str(run.log(node.name)), lab_secret(lab))
        path = write_node_files(lab, node, config, "")
        command = [sys.executable, "-IS", str(program), str(path)]
        rate_mbit = (topology.profile(node.profile).up.rate_bps or 0) / 1e6
        hosts.append(
            {
                "address": node.address,
                "rate_mbit": rate_mbit,
                "command": command,
                "control": control,
            }
        )
    listed = folder / "hosts.json"
    listed.write_text(json.dumps(hosts))
    return listed


def _run(hosts: Path) -> Times:
    began = time.monotonic()
    network = subprocess.Popen(
        [*_APART, SYSTEM_PYTHON, "-I", str(SCRIPT), str(hosts)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert network.stdin is not None
    assert network.stdout is not None
    try:
        reached = {}
        for stage in ("up", "ready"):
            if network.stdout.readline() != f"{stage}\n":
                raise TestbedError(f"Mininet did not say that it is {stage}")
            reached[stage] = time.monotonic() - began
        began = time.monotonic()
        network.stdin.close()
        network.wait(END_S)
        return Times(reached["up"], reached["ready"], time.monotonic() - began)
    finally:
        if network.poll() is None:
            network.stdin.close()
            network.kill()  # its hosts' shells end with their pipes, the rest with the namespace
            network.wait()
        network.stdout.close()
