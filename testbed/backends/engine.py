"""The Docker engine: whether one answers, and a client for it."""

import functools
import os
import socket

import docker
from docker.errors import DockerException

from testbed.errors import MissingCapability

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
ANSWER_TIMEOUT_S = 5
WORK_TIMEOUT_S = 120


def engine_answers() -> tuple[bool, str]:
    """Whether a Docker engine answers, and a phrase that says so (or why not)."""
    if not _socket_listens():
        return False, "no Docker engine answers"
    try:
        client = docker.from_env(timeout=ANSWER_TIMEOUT_S)
        try:
            version = client.version()["Version"]
        finally:
            client.close()
    except (DockerException, OSError):
        return False, "no Docker engine answers"
    return True, f"Docker engine {version} answers"


def _socket_listens() -> bool:
    """Whether somebody is behind the engine's Unix socket: the SDK would take longer to find out, and leak a socket."""
    address = os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS
    if not address.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(ANSWER_TIMEOUT_S)
        try:
            line.connect(address.removeprefix("unix://"))
        except OSError:
            return False
    return True


@functools.cache
def engine() -> docker.DockerClient:
    """A client of the engine; MissingCapability if none answers."""
    answers, reason = engine_answers()
    if not answers:
        raise MissingCapability(reason, "`make engine` installs and starts one; or --backend netns")
    return docker.from_env(timeout=WORK_TIMEOUT_S)
