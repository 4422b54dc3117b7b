"""Builds images from the packages of this machine's own release, for its processor or another one."""

import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import docker
from docker.errors import ImageNotFound

from testbed.backends.docker.image_recipe import Built, NodeImage, build_command, write_archive
from testbed.backends.docker.image_root import PREFIX
from testbed.errors import InputError, MissingCapability
from testbed.progress import Emit, Note, StageAdvanced

BUILD_TIMEOUT_S = 600
PATIENCE_S = 10  # for a terminated build to end
POLL_S = 0.1
_INDEXES = ("apt-get", "indextargets", "--format")
_SOURCE = "$(ARCHITECTURE) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"


def cannot_build() -> str:
    """What is missing here for a build from packages; empty if nothing is."""
    for tool in ("mmdebstrap", "apt-get", "setpriv"):
        if shutil.which(tool) is None:
            return f"{tool} is missing"
    return ""


@dataclass(frozen=True, slots=True)
class Job:
    """The build of one image: its environment, the name of its progress stage, and an event that stops it."""

    environment: Mapping[str, str]
    stage: str
    emit: Emit
    stop: threading.Event

    def report(self, detail: str) -> None:
        self.emit(StageAdvanced(self.stage, 0, detail))


def build(client: docker.DockerClient, image: Built, job: Job) -> None:
    """Build an image and load it; the layer and the archive are unnamed files, which vanish with this process."""
    job.report("building from this machine's packages")
    with tempfile.TemporaryFile() as layer, tempfile.TemporaryFile() as archive:
        _make_layer(image, job, layer)
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        write_archive(image, layer, archive, created.replace("+00:00", "Z"))
        job.report("loading")
        archive.seek(0)
        if not is_present(client, image.name):  # another command may have been faster
            client.images.load(archive)


def is_present(client: docker.DockerClient, name: str) -> bool:
    """Whether the engine has this image."""
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _make_layer(image: Built, job: Job, layer: IO[bytes]) -> None:
    """Use all package sources of this machine; if that fails, only those of the release itself.

    Mirrors are complete for the machine's own processor, but may lack updates for another one.
    """
    suite = _suite()
    sources = _package_sources(suite, image.platform.debian)
    of_release = [line for line in sources if line.split()[2] == suite]
    try:
        _run_mmdebstrap(image, suite, sources, job, layer)
    except _BuildFailed as error:
        if error.final or of_release in ([], sources):
            raise _refusal(image, error) from error
        layer.seek(0)
        layer.truncate()
        try:
            _run_mmdebstrap(image, suite, of_release, job, layer)
        except _BuildFailed as again:
            raise _refusal(image, again) from again
        job.emit(
            Note(f"image for {image.platform}: without updates, which the mirror does not have")
        )


class _BuildFailed(Exception):
    """The error message of mmdebstrap; `final`: fewer sources would not help."""

    def __init__(self, stderr: str) -> None:
        lines = [line.strip() for line in stderr.strip().splitlines()] or ["no reason given"]
        own_lines = [line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)]
        wrong = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
        super().__init__((own_lines or wrong or lines[-1:])[0])
        self.unknown = "Unable to locate package" in str(self)
        self.final = bool(own_lines) or self.unknown


def _refusal(image: Built, error: _BuildFailed) -> Exception:
    what = "the node image" if isinstance(image, NodeImage) else f"an image of {image.content}"
    if error.unknown and not isinstance(image, NodeImage):
        return InputError(
            f"{what} cannot be made for {image.platform}: {error}",
            "`apt-cache search NAME` finds packages; the mirror must have them for this platform",
        )
    return MissingCapability(
        f"mmdebstrap could not build {what} for {image.platform}: {error}",
        "`apt-get update` must work, and the mirror have the packages for this platform; or --backend netns",
    )


def _run_mmdebstrap(
    image: Built, suite: str, sources: list[str], job: Job, layer: IO[bytes]
) -> None:
    deadline = time.monotonic() + BUILD_TIMEOUT_S
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as listed:
        listed.write("".join(f"{line}\n" for line in sources).encode())
        listed.seek(0)
        process = subprocess.Popen(
            build_command(image, suite, sys.executable),
            stdin=listed,
            stdout=layer,
            stderr=errors,
            env={**os.environ, **job.environment, "LC_ALL": "C.UTF-8"},
        )
        try:
            while process.poll() is None and time.monotonic() < deadline:
                if job.stop.wait(POLL_S):
                    raise InterruptedError("the build was given up")
            ended = process.poll()
        finally:
            _end(process)
        if ended is None:
            raise MissingCapability(
                f"the image for {image.platform} was not built within {BUILD_TIMEOUT_S} s",
                "try `apt-get update` to see whether the package servers answer",
            )
        if ended:
            errors.seek(0)
            raise _BuildFailed(errors.read().decode(errors="replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()  # it then removes its folder
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _suite() -> str:
    """The release of Debian or Ubuntu that this machine runs."""
    with suppress(OSError):
        for line in Path("/etc/os-release").read_text().splitlines():
            name, _, value = line.partition("=")
            if name == "VERSION_CODENAME":
                return value.strip('"')
    raise MissingCapability(
        "this system does not name its release, so no image can be built from its packages",
        "use --backend netns",
    )


def _package_sources(suite: str, architecture: str) -> list[str]:
    """The package sources of this machine's release: its mirrors, as apt has resolved them.

    The mirrors of this architecture, if there are any (Ubuntu has others for ARM); else those of the machine's own.
    """
    asked = subprocess.run(
        [*_INDEXES, _SOURCE, "Created-By: Packages"], capture_output=True, check=False, text=True
    )
    if asked.returncode:
        raise MissingCapability(
            f"apt cannot list its packages: {asked.stderr.strip()}",
            "`apt-get update` must work; or --backend netns",
        )
    known = sorted({tuple(line.split(maxsplit=1)) for line in asked.stdout.splitlines()})
    ours = [(its, line) for its, line in known if line.split()[2].startswith(suite)]
    if not ours:
        raise MissingCapability(
            "apt knows no packages yet, so no image can be built from them", "run `apt-get update`"
        )
    fitting = [line for its, line in ours if its == architecture]
    return sorted(set(fitting or [line for _, line in ours]))
