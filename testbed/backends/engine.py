"""The Docker engine: whether one answers, and a client for it."""

import functools

import docker
from docker.errors import DockerException

from testbed.errors import MissingCapability

ANSWER_TIMEOUT_S = 5
WORK_TIMEOUT_S = 120


def engine_answers() -> tuple[bool, str]:
    """Whether a Docker engine answers, and a phrase that says so (or why not)."""
    try:
        client = docker.from_env(timeout=ANSWER_TIMEOUT_S)
        try:
            version = client.version()["Version"]
        finally:
            client.close()
    except (DockerException, OSError):
        return False, "no Docker engine answers"
    return True, f"Docker engine {version} answers"


@functools.cache
def engine() -> docker.DockerClient:
    """A client of the engine; MissingCapability if none answers."""
    answers, reason = engine_answers()
    if not answers:
        raise MissingCapability(reason, "`make engine` installs and starts one; or --backend netns")
    return docker.from_env(timeout=WORK_TIMEOUT_S)
