"""Chooses and makes the backend of a lab."""

from collections.abc import Callable
from dataclasses import dataclass

from testbed.backends.common.base import Backend
from testbed.backends.common.names import BACKENDS, SIMULATED, has_boards, local_backend
from testbed.errors import InputError, MissingCapability
from testbed.links.namespaces import privileged
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit
from testbed.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend's name and the reason for it, for the user and the manifest."""

    name: str
    reason: str


def known_backend(asked: str | None) -> None:
    """InputError if there is no such backend, or none on which a lab can be up."""
    if asked == SIMULATED:
        raise InputError(
            "a simulated lab cannot be up: its time is virtual, and does not stand still for commands",
            "`testbed simulate FILE` runs the whole scenario; use docker or netns for a lab that stays up",
        )
    if asked is not None and has_boards(asked):
        raise InputError(
            "an inventory selects boards, not --backend",
            "`testbed deploy FILE -i INVENTORY` takes those with `place: boards` there",
        )
    if asked not in (None, "auto", *BACKENDS):
        raise InputError(
            f"no backend {asked!r}",
            f"there is: {', '.join(BACKENDS)}; for `testbed run` also {SIMULATED}",
        )


def choose_backend(asked: str | None) -> Choice:
    """The one asked for, else docker if it can serve here, else netns."""
    known_backend(asked)
    if asked == "netns":
        return Choice(asked, "asked for")
    from testbed.backends.docker.engine import NO_ENGINE_HINT, engine_answers
    from testbed.backends.docker.images import image_obtainable

    if asked == "docker":
        answers, engine = engine_answers()
        if not answers:
            raise MissingCapability(engine, NO_ENGINE_HINT)
        return Choice(asked, "asked for")
    if not privileged():
        return Choice("netns", "without root, links cannot be put into containers")
    answers, engine = engine_answers()
    if not answers:
        return Choice("netns", engine)
    obtainable, image = image_obtainable()
    if not obtainable:
        return Choice("netns", f"{engine}, but {image}")
    return Choice("docker", f"{engine}, {image}")


Maker = Callable[[str, LabPlace, RunPlace, Topology, Emit], Backend]


def make_backend(
    name: str, lab: LabPlace, run: RunPlace, topology: Topology, emit: Emit
) -> Backend:
    """The backend of this name for this lab; nothing is done yet."""
    if has_boards(name):
        from testbed.backends.field.backend import BoardsBackend
        from testbed.backends.field.mixed import MixedBackend

        boards = BoardsBackend(lab, run, topology, emit)
        own = local_backend(name)
        if own is None:
            return boards
        return MixedBackend(make_backend(own, lab, run, topology, emit), boards, lab, topology)
    if name == "docker":
        from testbed.backends.docker.backend import DockerBackend

        return DockerBackend(lab, run, topology, emit)
    from testbed.backends.netns import NetnsBackend

    return NetnsBackend(lab, run, topology)
