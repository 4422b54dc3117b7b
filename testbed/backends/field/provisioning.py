"""Sets up boards: writes their files here; `playbooks/deploy.yml` copies them and starts the units."""

import ipaddress
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.field import playbooks
from testbed.backends.field.board_files import (
    BoardFiles,
    board_facts,
    connection_variables,
    host_variables,
    write_inventory,
)
from testbed.backends.field.boards import Board
from testbed.backends.field.collection import note_board
from testbed.backends.field.connections import BoardError, Connections, failures_by_node
from testbed.backends.field.deployment import Deployment, folder
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit, StageAdvanced
from testbed.topology.model import Topology

STAGE = "creating nodes"
DEPLOY = "deploy.yml"


class BoardSetup:
    """Sets up the boards of one lab."""

    def __init__(
        self,
        lab: LabPlace,
        run: RunPlace,
        topology: Topology,
        deployment: Deployment,
        connections: Connections,
        emit: Emit,
    ) -> None:
        self._lab, self._run, self._topology = lab, run, topology
        self._deployment, self._connections, self._emit = deployment, connections, emit

    def apply(self, boards: Sequence[Board]) -> dict[str, str]:
        """Set up each board; its node then waits at its gate. Return the reasons of failures by node."""
        failed, outcome = self._play(boards, check=False)
        for board in boards:
            if board.node not in failed:
                answer = outcome.facts.get(board.host, {})
                clock = answer.get("testbed_clock")
                interface = self._interfaces[board.node]
                facts = {"interface": interface, "clock": clock}
                note_board(self._run, board.node, board_facts(board, facts))
        # A login session from before the group `testbed` was made is not a member of it.
        self._connections.close(board for board in boards if outcome.changed.get(board.host))
        return failed

    def check(self, boards: Sequence[Board]) -> tuple[dict[str, int], dict[str, str]]:
        """Change nothing: how many tasks would change something on each board, and the reasons of failures."""
        failed, outcome = self._play(boards, check=True)
        able = [board for board in boards if board.node not in failed]
        return {board.node: outcome.changed.get(board.host, 0) for board in able}, failed

    def _play(
        self, boards: Sequence[Board], *, check: bool
    ) -> tuple[dict[str, str], playbooks.Outcome]:
        failed = self._connections.open(boards)
        able = [board for board in boards if board.node not in failed]
        self._interfaces: dict[str, str] = {}
        failed |= failures_by_node(self._find_interface, able)
        failed |= failures_by_node(
            self._check_sudo, [board for board in able if board.node not in failed]
        )
        able = [board for board in able if board.node not in failed]
        if not able:
            return failed, playbooks.Outcome()
        files = BoardFiles(folder(self._lab), self._lab, self._run, self._topology)
        files.write_programs()
        for board in able:
            files.write_node(board, self._interfaces[board.node])
        outcome = playbooks.play(
            DEPLOY,
            self._deployment.inventories(self._own_inventory(able)),
            [board.host for board in able],
            {**names(self._lab, self._run), "testbed_files": str(files.folder)},
            self._run.folder / "ansible",
            lambda host, task: self._emit(StageAdvanced(STAGE, 0, f"{host}: {task}")),
            check=check,
        )
        by_host = {board.host: board.node for board in able}
        failed |= {by_host[host]: why for host, why in outcome.reasons.items() if host in by_host}
        return failed, outcome

    def _own_inventory(self, boards: Sequence[Board]) -> Path:
        hosts = {
            board.host: connection_variables(board)
            | host_variables(
                board, self._interfaces[board.node], self._topology, self._deployment.uplink
            )
            for board in boards
        }
        return write_inventory(folder(self._lab) / "lab-inventory.json", hosts)

    def _check_sudo(self, board: Board) -> None:
        """Check sudo without a password: later commands cannot ask for one."""
        try:
            self._connections.command(board, ("true",), as_root=True)
        except BoardError as error:
            raise BoardError(
                f"{error.message}; {board.user or 'the login user'} needs sudo without a password"
            ) from error

    def _find_interface(self, board: Board) -> None:
        """Find the interface that has the board's address."""
        if board.interface:
            self._interfaces[board.node] = board.interface
            return
        answer = self._connections.command(board, ("ip", "-json", "-4", "address", "show"))
        found = interface_with(board.address, json.loads(answer))
        if found is None:
            raise BoardError(
                f"{board.host} has no interface with {board.address}: set testbed_address or testbed_interface"
            )
        self._interfaces[board.node] = found


def interface_with(address: str, interfaces: Sequence[Mapping[str, Any]]) -> str | None:
    """The interface with this address, in the output of `ip -json address show`."""
    wanted = ipaddress.ip_address(address)
    for interface in interfaces:
        for entry in interface.get("addr_info", ()):
            if ipaddress.ip_address(entry["local"]) == wanted:
                return str(interface["ifname"])
    return None


def names(lab: LabPlace, run: RunPlace) -> dict[str, Any]:
    """The variables of every playbook."""
    return {"testbed_lab": lab.name, "testbed_run": run.run}
