"""A Docker engine of the benchmark's own, in a network namespace of its own: only the two peers use it.

Bridges that a peer makes are in that namespace and never touch the machine's network. Data, sockets and processes
are in one folder; all of it is gone when the benchmark ends.
"""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
from docker.errors import DockerException

from testbed.backends.docker.image_recipe import REPOSITORY
from testbed.errors import MissingCapability, TestbedError

ANSWER_S = 60.0
END_S = 120.0
_PAUSE_S = 0.1
_APART = ("setpriv", "--pdeathsig", "TERM", "unshare", "--net", "--mount")
# As `scripts/engine` starts one. Networks with a bridge can be made nevertheless, and the peer makes one.
_FLAGS = ("--bridge", "none", "--iptables=false", "--ip6tables=false")


@contextmanager
def own_engine(folder: Path) -> Iterator[str]:
    """The address for DOCKER_HOST, as long as the engine runs."""
    _check()
    place = folder / "engine"
    place.mkdir()
    address = place / "sock"
    inside = 'ip link set lo up; exec "$@"'
    engine = [
        *("dockerd", "--host", f"unix://{address}", "--pidfile", str(place / "pid")),
        *("--data-root", str(place / "data"), "--exec-root", str(place / "exec"), *_FLAGS),
    ]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [*_APART, "sh", "-c", inside, "sh", *engine],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the benchmark, which ends the engine in order
        )
    try:
        _wait_for_answer(address, process, place / "log")
        yield f"unix://{address}"
    finally:
        _end(process)
        _let_go(place)


def _check() -> None:
    if os.geteuid() != 0:
        raise MissingCapability("an engine of the benchmark's own needs root", "use sudo")
    for tool in ("dockerd", "unshare", "setpriv", "ip"):
        if shutil.which(tool) is None:
            raise MissingCapability(f"{tool} is missing", "`make engine` installs an engine")


def _wait_for_answer(address: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + ANSWER_S
    while time.monotonic() < end and process.poll() is None:
        if _answers(address):
            return
        time.sleep(_PAUSE_S)
    words = log.read_text(errors="replace").strip().splitlines()[-3:]
    raise TestbedError(f"the benchmark's engine did not start: {' '.join(words)}")


def _answers(address: Path) -> bool:
    line = http.client.HTTPConnection("localhost", timeout=5)
    line.sock = socket.socket(socket.AF_UNIX)
    try:
        line.sock.connect(str(address))
        line.request("GET", "/_ping")
        return line.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        line.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the engine: at SIGTERM it ends containers and its containerd, too."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _let_go(place: Path) -> None:
    """Remove the files; its mounts were in its mount namespace and are gone with it."""
    end = time.monotonic() + END_S
    while place.exists():
        with suppress(OSError):
            shutil.rmtree(place)
        if time.monotonic() > end:
            raise TestbedError(f"{place} cannot be removed", "see which process still uses it")
        time.sleep(_PAUSE_S)


# The node image in the benchmark's own engine: copied from the machine's engine if that has it, else built by `up`.


def copy_images(address: str) -> None:
    """Copy the images of the machine's engine; this saves the half minute of building."""
    own = docker.DockerClient(base_url=address)
    try:
        machines = docker.from_env()
        here = machines.version()["Arch"]
        for image in machines.images.list(f"{REPOSITORY}-node"):
            if image.attrs["Architecture"] == here:
                own.images.load(b"".join(image.save(named=True)))
        machines.close()
    except DockerException:
        return  # no engine, or none that answers us: `up` builds the image
    finally:
        own.close()


def image_in_use(address: str, lab_label: str) -> str:
    """The image of the containers with this label."""
    own = docker.DockerClient(base_url=address)
    try:
        found = own.containers.list(all=True, filters={"label": lab_label})
        if not found:
            raise TestbedError("the benchmark's lab has no containers")
        return str(found[0].attrs["Config"]["Image"])
    finally:
        own.close()
