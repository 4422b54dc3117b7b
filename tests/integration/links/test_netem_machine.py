"""The whole path on a kernel that has netem: a virtual machine boots once and runs many steps.

With KVM all tests of links run in it. Without KVM, emulation takes ten times as long, and only the tests that show
netem to be exact run.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.machine, pytest.mark.timeout(1200)]

REPOSITORY = Path(__file__).parents[3]
SCRIPT = REPOSITORY / "scripts" / "netem-machine"
TESTBED = [sys.executable, "-m", "testbed"]
LINKS = "tests/integration/links"
# On an emulated processor, just enough tests to show that netem is exact.
CHOSEN = f'[ "$NETEM_MACHINE" = kvm ] && where={LINKS} || where={LINKS}/test_links_netem.py'
PYTEST = f"{sys.executable} -m pytest -q -m netem -p no:cacheprovider"
STEPS = {
    "probe": [sys.executable, "-m", "testbed.links.probe"],
    "up": [*TESTBED, "up", "topologies/minimal.yaml", "--backend", "netns"],
    "play": [*TESTBED, "play", "minimal"],
    "down": [*TESTBED, "down", "minimal"],
    "manifest": ["sh", "-c", "cat $TESTBED_CAPTURES/minimal-*/run.json"],
    "links": ["sh", "-c", f"{CHOSEN}; exec {PYTEST} $where"],
}


@dataclass(frozen=True)
class Step:
    """One command that ran in the machine."""

    code: int
    out: str
    err: str
    seconds: float


def machine(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, "--", *command],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def steps() -> dict[str, Step]:
    """The steps that ran in the machine, by name."""
    runner = REPOSITORY / "tests" / "support" / "labs" / "machine_steps.py"
    done = machine(
        *(sys.executable, str(runner), json.dumps(STEPS)),
        TESTBED_STATE="/tmp/machine/s",
        TESTBED_CAPTURES="/tmp/machine/c",
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("step"): Step(**line) for line in lines}


@pytest.fixture
def manifest(steps: dict[str, Step]) -> Any:
    """The manifest of the run that was made in the machine."""
    return json.loads(steps["manifest"].out)


def test_the_machine_returns_output_and_exit_code_and_leaves_no_file(tmp_path: Path) -> None:
    written = tmp_path / "written"
    script = (
        f"uname -r; ls /sys/class/net; echo >{written}; test -s {written} && echo oh >&2; exit 7"
    )
    done = machine("sh", "-c", script)
    assert (done.returncode, done.stderr) == (7, "oh\n"), done.stderr
    release, *interfaces = done.stdout.split()
    assert release != os.uname().release
    assert interfaces == ["lo"]  # the machine has no network to the outside
    assert not written.exists()


def test_wrong_arguments_print_the_usage() -> None:
    done = subprocess.run([SCRIPT, "--memory"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")


def test_the_probe_finds_netem(steps: dict[str, Step]) -> None:
    found = json.loads(steps["probe"].out)
    assert found["capabilities"] == {"netem": True, "tbf": True, "tun": ""}


def test_netem_gives_links_the_requested_settings(steps: dict[str, Step]) -> None:
    assert steps["links"].code == 0, steps["links"].out + steps["links"].err
    assert " passed" in steps["links"].out


def test_a_lab_uses_netem_by_default(steps: dict[str, Step], manifest: Any) -> None:
    for step in ("up", "play", "down"):
        assert steps[step].code == 0, (step, steps[step].err)
    assert manifest["emulator"] == {"name": "netem", "reason": "this kernel has netem"}
    assert manifest["play"]["settled"]
    assert "5 of 5 deliveries made" in steps["play"].out


def test_the_lab_has_measured_its_links(manifest: Any) -> None:
    found = {(one["profile"], one["direction"]): one for one in manifest["calibration"]}
    for direction in ("up", "down"):
        achieved = found["mvno-128k", direction]["achieved"]
        # On a machine of any speed, no packet is earlier than 60 ms - 15 ms of jitter, or faster than the link.
        assert achieved["delay_s"] is None or achieved["delay_s"] >= 0.045
        assert achieved["rate_bps"] is None or achieved["rate_bps"] <= 1.2 * 128_000
