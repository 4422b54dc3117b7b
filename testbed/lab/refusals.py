"""What `up` refuses or points out before it makes anything."""

from pathlib import Path

from testbed.backends.choice import Choice
from testbed.errors import InputError, MissingCapability, NameTaken, few
from testbed.events import Emit, Note
from testbed.records import LabRecord
from testbed.topology.model import NodeKind, Topology


def refuse_another_lab(known: LabRecord, source: Path, asked: str | None) -> None:
    """A lab that is up keeps its file and its backend."""
    if Path(known.source) != source.resolve():
        raise NameTaken(
            f"a lab named {known.name!r} is up already, from {known.source}",
            f"end it with `testbed down {known.name}`, or give this one another name with --name",
        )
    if asked not in (None, "auto", known.backend):
        raise InputError(
            f"lab {known.name} is up on the {known.backend} backend",
            f"end it with `testbed down {known.name}` before you start it on {asked}",
        )


def refuse_guests_without_containers(topology: Topology, backend: str, reason: str) -> None:
    """Somebody else's program comes as an image; `reason` says why the lab is on this backend."""
    guests = [node.name for node in topology.of_kind(NodeKind.EXTERNAL)]
    if guests and backend != "docker":
        raise MissingCapability(
            f"{few(guests)}: external nodes are containers, and the {backend} backend "
            f"({reason}) has none",
            "use --backend docker; `make engine` installs and starts an engine",
        )


def say_what_is_not_enforced(topology: Topology, choice: Choice, emit: Emit) -> None:
    """Only containers have a processor and memory of their own: say so rather than pretend."""
    boards = [node for node in topology.nodes if node.platform or node.board]
    if boards and choice.name != "docker":
        emit(
            Note(
                f"platform and class are recorded only: under the {choice.name} backend {len(boards)} nodes "
                "run with this machine's own processor and memory"
            )
        )


def refuse_foreign_platforms(topology: Topology, backend: str) -> None:
    """Before anything is made: a node's platform must run here, natively or through qemu."""
    if backend == "docker":
        from testbed.backends.platforms import Platform, refuse_foreign

        refuse_foreign(
            {
                node.name: Platform.parse(node.platform)
                for node in topology.nodes
                if node.platform and node.kind is not NodeKind.ROUTER
            }
        )
