"""The image that all node containers run: there already, else pulled, else built from the machine's own packages."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import docker
from docker.errors import ImageNotFound

from testbed.backends.build_folder import build_folder
from testbed.backends.engine import TROUBLE, engine, engine_talk, in_its_words
from testbed.backends.image_recipe import PUBLISHED, build_command, tag, write_archive
from testbed.errors import MissingCapability, TestbedError
from testbed.events import Emit, Note, StageAdvanced, StageEnded, StageStarted
from testbed.places import LabPlace, marks

STAGE = "image"
REGISTRY_TIMEOUT_S = 8
BUILD_TIMEOUT_S = 600
_INDEXES = ("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)")


@engine_talk()
def ensure_image(client: docker.DockerClient, lab: LabPlace, run: str, emit: Emit) -> str:
    """The name of the node image, which the engine has when this returns; what builds it carries the lab's mark."""
    architecture = _architecture(client)
    name = tag(architecture)
    if _present(client, name):
        return name
    emit(StageStarted(STAGE))
    try:
        refusal = _pull(client, name, emit)
        if refusal:
            with build_folder(lab) as folder:
                around = {**marks(lab, run, "image"), "TMPDIR": str(folder)}
                _build(client, architecture, refusal, around, emit)
    finally:
        emit(StageEnded(STAGE))
    return name


def image_obtainable() -> tuple[bool, str]:
    """Whether `ensure_image` will succeed as far as one can tell without doing it, and a phrase that says so."""
    try:
        with engine_talk():
            return _obtainable(engine())
    except TestbedError as error:
        return False, error.message


def _obtainable(client: docker.DockerClient) -> tuple[bool, str]:
    if _present(client, tag(_architecture(client))):
        return True, "the node image is there"
    lacking = _cannot_build()
    if not lacking:
        return True, "the node image can be built from this machine's packages"
    refusal = _registry_refusal(client)
    if not refusal:
        return True, f"the node image can be made from {PUBLISHED}"
    return False, f"the node image can neither be pulled ({refusal}) nor built ({lacking})"


def _architecture(client: docker.DockerClient) -> str:
    return str(client.version()["Arch"])


def _present(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _pull(client: docker.DockerClient, name: str, emit: Emit) -> str:
    """Take the published image under our name; why not, if not."""
    refusal = _registry_refusal(client)
    if refusal:
        return refusal
    emit(StageAdvanced(STAGE, 0, f"pulling {PUBLISHED}"))
    try:
        client.images.pull(PUBLISHED).tag(name)
    except TROUBLE as error:
        return _reason(error)
    emit(Note(f"node image: {PUBLISHED}"))
    return ""


def _registry_refusal(client: docker.DockerClient) -> str:
    """Why the published image cannot be pulled; nothing if it can. A pull itself would wait without end."""
    with _timeout(client, REGISTRY_TIMEOUT_S):
        try:
            client.images.get_registry_data(PUBLISHED)
        except TROUBLE as error:
            return _reason(error)
    return ""


@contextmanager
def _timeout(client: docker.DockerClient, seconds: int) -> Iterator[None]:
    usual = client.api.timeout
    client.api.timeout = seconds
    try:
        yield
    finally:
        client.api.timeout = usual


def _reason(error: Exception) -> str:
    """The engine's own words, without the request that failed."""
    return f"the registry does not answer: {in_its_words(error).rsplit(': ', 1)[-1]}"


def _cannot_build() -> str:
    """What a build from packages lacks here; nothing if it lacks nothing."""
    for tool in ("mmdebstrap", "apt-get", "setpriv"):
        if shutil.which(tool) is None:
            return f"{tool} is missing"
    return ""


def _build(
    client: docker.DockerClient,
    architecture: str,
    refusal: str,
    environment: Mapping[str, str],
    emit: Emit,
) -> None:
    """The layer and the archive are files without names: the kernel takes them away with this process."""
    lacking = _cannot_build()
    if lacking:
        raise MissingCapability(
            f"there is no node image: {refusal}, and {lacking}",
            "`make engine` installs mmdebstrap on Debian and Ubuntu; or --backend netns",
        )
    emit(StageAdvanced(STAGE, 0, "building from this machine's packages"))
    with tempfile.TemporaryFile() as layer, tempfile.TemporaryFile() as archive:
        _run_mmdebstrap(build_command(_suite(), architecture), environment, layer)
        write_archive(layer, archive, architecture)
        emit(StageAdvanced(STAGE, 0, "loading"))
        archive.seek(0)
        client.images.load(archive)
    emit(Note("node image: built from this machine's packages"))


def _run_mmdebstrap(command: list[str], environment: Mapping[str, str], layer: IO[bytes]) -> None:
    try:
        subprocess.run(
            command,
            input=_package_sources().encode(),
            stdout=layer,
            stderr=subprocess.PIPE,
            check=True,
            timeout=BUILD_TIMEOUT_S,
            env={**os.environ, **environment, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise MissingCapability(
            f"the node image was not built within {BUILD_TIMEOUT_S} s",
            "try `apt-get update` to see whether the package servers answer",
        ) from error
    except subprocess.CalledProcessError as error:
        *_, last = error.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise MissingCapability(
            f"mmdebstrap could not build the node image: {last}",
            "`apt-get update` must work, and Python 3.11 or later be among the packages; or --backend netns",
        ) from error


def _suite() -> str:
    """The release of Debian or Ubuntu that this machine runs."""
    for line in Path("/etc/os-release").read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "VERSION_CODENAME":
            return value.strip('"')
    raise MissingCapability(
        "this system does not name its release, so no image can be built from its packages",
        "use --backend netns",
    )


def _package_sources() -> str:
    """Where this machine gets the packages of its release from: its own mirrors, as apt has resolved them."""
    listed = subprocess.run(
        [*_INDEXES, "Created-By: Packages"], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    suite = _suite()
    ours = sorted({line for line in listed if line.split()[2].startswith(suite)})
    if not ours:
        raise MissingCapability(
            "apt knows no packages yet, so no image can be built from them", "run `apt-get update`"
        )
    return "\n".join(ours) + "\n"
