"""Deploy a lab to boards: nodes with `place: boards` go there, the others stay on this machine."""

from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.backends.common.names import BOARDS
from testbed.backends.field.boards import Board, boards_of, is_mixed, uplink_of
from testbed.backends.field.deployment import Deployment
from testbed.backends.registry import Choice, choose_backend
from testbed.errors import InputError, few
from testbed.lab.up import bring_up
from testbed.progress import Emit
from testbed.records import LabRecord
from testbed.topology.model import ActionKind, Topology

NOT_ON_BOARDS = {
    ActionKind.PARTITION: "boards have no core that could be partitioned; `cut` cuts their links",
    ActionKind.LOAD: "boards send nothing but their own messages",
}


def plan_deployment(topology: Topology, inventory: Path) -> Deployment:
    """Assign boards to nodes by the inventory; InputError if that is impossible."""
    from testbed.backends.field.playbooks import read_hosts

    hosts = read_hosts(inventory)
    boards = boards_of(topology, hosts)
    uplink = uplink_of(hosts) if is_mixed(topology) else None
    if is_mixed(topology) and uplink is None:
        raise InputError(
            f"lab {topology.name} has nodes on this machine, too, and the inventory no way between them and the boards",
            "set `testbed_uplink_interface` and `testbed_uplink_address` of the group `boards` (docs/howto/boards.md)",
        )
    _refuse_unsupported_actions(topology)
    return Deployment(inventory.resolve(), boards, uplink)


def _refuse_unsupported_actions(topology: Topology) -> None:
    for event in topology.scenario.actions:
        to = dict(event.details).get("to")
        concerned = [*event.nodes, *([to] if isinstance(to, str) else [])]
        there = [name for name in concerned if topology.node(name).on_board]
        if there and (why := NOT_ON_BOARDS.get(event.kind)):
            raise InputError(f"`{event.kind}` of {few(there)}: {why}", "leave it out here")


def limited_to(deployment: Deployment, only: Sequence[str]) -> frozenset[str]:
    """The nodes on boards that are left out if only these (nodes or hosts) are chosen."""
    known = {name for board in deployment.boards for name in (board.node, board.host)}
    if unknown := [name for name in only if name not in known]:
        raise InputError(f"--limit: no board {few(unknown)}", f"there is: {few(sorted(known))}")
    meant = set(only)
    return frozenset(b.node for b in deployment.boards if meant and not meant & {b.node, b.host})


def deploy(
    topology: Topology,
    source: Path,
    deployment: Deployment,
    emit: Emit,
    *,
    backend: str | None = None,
    scenario: Path | None = None,
    only: Sequence[str] = (),
) -> LabRecord:
    """As `bring_up`, with boards."""
    return bring_up(
        topology,
        source,
        None,
        emit,
        choose=_choice(topology, backend),
        scenario=scenario,
        deployment=deployment,
        left_out=limited_to(deployment, only),
    )


def _choice(topology: Topology, asked: str | None) -> Callable[[str | None], Choice]:
    def choose(_: str | None) -> Choice:
        if not is_mixed(topology):
            return Choice(BOARDS, "all nodes are on boards")
        own = choose_backend(asked)
        return Choice(f"{BOARDS}+{own.name}", f"the nodes of this machine: {own.reason}")

    return choose


def chosen_boards(deployment: Deployment, only: Sequence[str]) -> list[Board]:
    """The boards of these nodes or hosts; all boards if `only` is empty."""
    left_out = limited_to(deployment, only)
    return [board for board in deployment.boards if board.node not in left_out]
