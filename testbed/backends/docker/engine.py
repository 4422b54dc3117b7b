"""The Docker engine: a check whether one answers, a client for it, and its failures as our own errors."""

import functools
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import docker
from docker.errors import DockerException
from requests.exceptions import ConnectionError as ConnectionBroken
from requests.exceptions import RequestException, Timeout
from urllib3.exceptions import HTTPError

from testbed.errors import MissingCapability, TestbedError

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
ANSWER_TIMEOUT_S = 20  # a busy machine answers late; one without an engine refuses at once
NO_ENGINE_HINT = "`make engine` installs and starts one; or --backend netns"
LOOK_TIMEOUT_S = 30  # for listing containers and ending them
WORK_TIMEOUT_S = 120  # for making them, and images
# The SDK passes on the errors of its layers: refusals of the engine, broken connections, broken streams.
ENGINE_ERRORS = (DockerException, RequestException, HTTPError)


class EngineError(TestbedError):
    """The engine answers, but does not do as asked."""


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn all errors of requests to the engine into an EngineError."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise EngineError(
            f"the Docker engine failed: {engine_message(error)}",
            "see whether `docker ps` answers; `make engine` starts an engine; or use --backend netns",
        ) from error


def engine_message(error: Exception) -> str:
    """The engine's message, without the failed request."""
    if isinstance(error, ConnectionBroken) and not isinstance(error, Timeout):
        return "the connection to the engine broke"
    return str(getattr(error, "explanation", None) or error)


def engine_answers() -> tuple[bool, str]:
    """Whether a Docker engine answers, and a phrase with its version or the reason."""
    if not _socket_listens():
        return False, "no Docker engine answers"
    try:
        client = docker.from_env(timeout=ANSWER_TIMEOUT_S)
        try:
            version = client.version()["Version"]
        finally:
            client.close()
    except (*ENGINE_ERRORS, OSError):
        return False, "no Docker engine answers"
    return True, f"Docker engine {version} answers"


def _socket_listens() -> bool:
    """Whether a process listens on the engine's Unix socket: the SDK would take longer, and leak a socket."""
    address = os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS
    if not address.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_TIMEOUT_S)
        try:
            connection.connect(address.removeprefix("unix://"))
        except OSError:
            return False
    return True


@functools.cache
def engine(timeout_s: int = WORK_TIMEOUT_S) -> docker.DockerClient:
    """A client of the engine; MissingCapability if none answers."""
    answers, reason = engine_answers()
    if not answers:
        raise MissingCapability(reason, NO_ENGINE_HINT)
    with engine_errors():
        return docker.from_env(timeout=timeout_s)
