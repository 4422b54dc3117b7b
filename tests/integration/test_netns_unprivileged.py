"""Without root: the same labs, in a user namespace, as the user `nobody`."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.netns, pytest.mark.root]

NOBODY = 65534
AsNobody = Callable[..., "subprocess.CompletedProcess[str]"]

# A tap device that everybody may open, as most systems have it, seen by this command only.
WITH_OPEN_TUN = (
    'mount --bind "$0" /dev/net/tun && '
    f'exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"'
)


def device(path: Path, mode: int) -> Path:
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(10, 200))
    except PermissionError:
        pytest.skip("device files cannot be made here")
    path.chmod(mode)
    return path


@pytest.fixture
def as_nobody(repository: Path, tmp_path: Path) -> AsNobody:
    """as_nobody(*arguments, tun=0o666): a finished Python process of that user."""
    packages = os.pathsep.join(
        [str(repository), *(path for path in sys.path if "site-packages" in path)]
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": packages,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis-nobody",
        "CI": os.environ.get("CI", ""),
    }

    def run(*arguments: str, tun: int = 0o666) -> "subprocess.CompletedProcess[str]":
        node = device(tmp_path / "tun", tun)
        before = ["unshare", "--mount", "sh", "-c", WITH_OPEN_TUN, str(node)]
        return subprocess.run(
            [*before, python, *arguments],
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    # It must be able to start itself again: labs are made of further Python processes.
    version = (
        "import subprocess, sys, testbed;"
        "subprocess.run([sys.executable, '-c', 'import testbed'], check=True);"
        f"sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    )
    for candidate in (sys.executable, "/usr/bin/python3"):
        python = candidate
        if run("-c", version).returncode == 0:
            return run
    pytest.skip("no Python here that the user nobody may start with our packages")


def test_the_probe_finds_a_way_without_root(as_nobody: AsNobody) -> None:
    said = as_nobody("-m", "testbed.links.namespaces")
    assert said.stdout == "in a user namespace, without root\n"


def test_labs_live_and_leave_nothing_without_root(as_nobody: AsNobody) -> None:
    done = as_nobody(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/integration/test_netns_backend.py",
        "-k",
        "lives_delivers or dead_node or keeper_was_killed",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert "skipped" not in done.stdout


def test_a_closed_tap_device_is_told_with_the_way_out(as_nobody: AsNobody) -> None:
    code = (
        "from testbed.links.probe import look; from testbed.links.emulator import choose;"
        "from testbed.topology.model import Emulator, Shape;"
        "from testbed.errors import MissingCapability\n"
        "try: choose(Emulator.RELAY, [Shape(delay_s=1)], look().capabilities)\n"
        "except MissingCapability as missing: print(missing.message, '|', missing.hint)"
    )
    said = as_nobody("-c", code, tun=0o600)
    assert "cannot open /dev/net/tun: Permission denied" in said.stdout, said.stderr
    assert "chmod 666 /dev/net/tun" in said.stdout
