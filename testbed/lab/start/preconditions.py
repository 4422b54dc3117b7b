"""Preconditions of `up`: refusals and notes before anything is made."""

from collections.abc import Callable
from pathlib import Path

from testbed.backends.common.names import has_boards, local_backend
from testbed.backends.field.boards import is_mixed
from testbed.backends.field.deployment import Deployed, Deployment, load
from testbed.backends.registry import Choice
from testbed.errors import InputError, MissingCapability, NameTaken, TestbedError, few
from testbed.lab.start.provenance import offered_congestion_controls
from testbed.places import LabPlace
from testbed.progress import Emit, Note
from testbed.records import LabRecord
from testbed.topology.model import NodeKind, Topology


def refuse_another_lab(
    known: LabRecord, source: Path, asked: str | None, *, deploying: bool = False
) -> None:
    """A lab that is up keeps its file and its backend."""
    if has_boards(known.backend) is not deploying:
        command = "testbed deploy" if has_boards(known.backend) else "testbed up"
        raise InputError(
            f"lab {known.name} is up by `{command}`",
            f"end it with `testbed down {known.name}` first",
        )
    if Path(known.source) != source.resolve():
        raise NameTaken(
            f"a lab named {known.name!r} is up already, from {known.source}; "
            f"`{'deploy' if deploying else 'up'}` brings a lab in line with its own file only",
            f"`testbed down {known.name}` ends it; --name starts this lab under another name",
        )
    if asked not in (None, "auto", known.backend):
        raise InputError(
            f"lab {known.name} is up on the {known.backend} backend",
            f"end it with `testbed down {known.name}` before you start it on {asked}",
        )


def refuse_other_boards(known: LabRecord, deployment: Deployment, topology: Topology) -> None:
    """Refuse to move a node to another board while the lab is up: its old board would never be cleared."""
    place = LabPlace.of(known.name)
    before = {board.node: board.host for board in load(place).boards}
    now = {board.node: board.host for board in deployment.boards}
    moved = [node for node in Deployed(place).all() if now.get(node) != before.get(node)]
    mixed_before = local_backend(known.backend) is not None
    if moved or is_mixed(topology) is not mixed_before:
        what = few(moved) if moved else "some nodes"
        raise InputError(
            f"{what} would be in another place than where lab {known.name} has them",
            f"end it with `testbed down {known.name}` first",
        )


def refuse_dead_lab_with_boards(known: LabRecord) -> None:
    """Refuse to start a dead lab anew before the data of its boards has been collected."""
    if has_boards(known.backend):
        raise TestbedError(
            f"lab {known.name} had died here, and its boards may hold data that was not collected",
            f"`testbed down {known.name}` collects it; then deploy again",
        )


def refuse_external_nodes_without_containers(topology: Topology, backend: str, reason: str) -> None:
    """Refuse external nodes on a backend without containers; `reason` says why the lab is on this backend."""
    externals = [node.name for node in topology.of_kind(NodeKind.EXTERNAL)]
    if externals and local_backend(backend) != "docker":
        raise MissingCapability(
            f"{few(externals)}: external nodes are containers, and the {backend} backend "
            f"({reason}) has none",
            "use --backend docker; `make engine` installs and starts an engine",
        )


def note_unenforced_limits(topology: Topology, choice: Choice, emit: Emit) -> None:
    """Note that only containers enforce limits of processor and memory."""
    elsewhere = has_boards(choice.name)
    staying = [node for node in topology.nodes if not (elsewhere and node.on_board)]
    boards = [node for node in staying if node.platform or node.board]
    if boards and local_backend(choice.name) != "docker":
        emit(
            Note(
                f"platform and class are recorded only: under the {choice.name} backend {len(boards)} nodes "
                "run with this machine's own processor and memory"
            )
        )


def note_board_nodes_here(topology: Topology, choice: Choice, emit: Emit) -> None:
    """Note that `up` runs nodes with `place: boards` on this machine."""
    elsewhere = sum(node.on_board for node in topology.nodes)
    if elsewhere and not has_boards(choice.name):
        emit(
            Note(
                f"{elsewhere} nodes with `place: boards` run on this machine, too; "
                "`testbed deploy` takes them to boards"
            )
        )


def refuse_missing_congestion_control(
    topology: Topology, offered: Callable[[], tuple[str, ...]] = offered_congestion_controls
) -> None:
    """Refuse a congestion control that this machine's kernel does not have."""
    wanted = topology.tcp
    if wanted is None or not topology.here or wanted in (known := offered()):
        return
    raise MissingCapability(
        f"`tcp: {wanted}`: this machine's kernel "
        + (f"offers only {', '.join(known)}" if known else "does not say what it offers"),
        f"`sudo modprobe tcp_{wanted}` loads it if the kernel has it as a module; or choose another, "
        "or leave `tcp` out for the kernel's own",
    )


def refuse_foreign_platforms(topology: Topology, backend: str) -> None:
    """Refuse platforms whose programs run here neither natively nor through qemu."""
    if local_backend(backend) == "docker":
        from testbed.backends.docker.platforms import Platform, refuse_foreign

        refuse_foreign(
            {
                node.name: Platform.parse(node.platform)
                for node in topology.nodes
                if node.platform
                and node.kind is not NodeKind.ROUTER
                and not (has_boards(backend) and node.on_board)
            }
        )
