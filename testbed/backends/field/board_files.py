"""The files for boards: programs, each node's configuration, the shape of its link, the variables of its host."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.backends.common import zipapp
from testbed.backends.common.node_config import lab_secret, node_config
from testbed.backends.field.boards import Board, Uplink
from testbed.backends.field.capture_zipapp import build as build_capture
from testbed.backends.field.deployment import BoardPaths
from testbed.jsonfiles import write_json
from testbed.links.changes import LinkState
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import PREFIX, Node, Topology

NODES_PYZ, CAPTURE_PYZ = "nodes.pyz", "capture.pyz"


class BoardFiles:
    """Files in a folder that only the lab's owner can read: the configurations hold its secret."""

    def __init__(self, folder: Path, lab: LabPlace, run: RunPlace, topology: Topology) -> None:
        self.folder = folder
        self._lab, self._run, self._topology = lab, run, topology
        self._board_paths = BoardPaths(lab.name)

    def write_programs(self) -> None:
        """Write the programs, which are the same for all boards."""
        self._make_folder()
        zipapp.build(self.folder / NODES_PYZ)
        build_capture(self.folder / CAPTURE_PYZ)

    def write_node(self, board: Board, interface: str) -> None:
        """Write the files of one board."""
        node = self._topology.node(board.node)
        self._make_folder()
        folder = self.folder / "hosts" / board.host
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "node.json", self._config(node))
        write_json(
            folder / "links.json", self.links(board, interface, link_of(self._topology, node))
        )

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _config(self, node: Node) -> dict[str, Any]:
        """node.json. The journal is on the board's disk: unsent messages survive a loss of power.

        The node itself sets the congestion control of its connections; the board's routes are not the lab's.
        """
        paths = self._board_paths
        config = node_config(
            self._topology, node, self._run, paths.control, paths.log, lab_secret(self._lab)
        )
        journal = paths.journal if config["journal"] else None
        return {**config, "journal": journal, "tcp": self._topology.tcp}

    def links(self, board: Board, interface: str, link: LinkState) -> dict[str, Any]:
        """links.json: only packets to and from other nodes are shaped."""
        others = [node for node in self._topology.nodes if node.name != board.node]
        here = [self._topology.prefix] if any(not node.on_board for node in others) else []
        return {
            "interface": interface,
            "peers": [*(node.address for node in others if node.on_board), *here],
            "up": link.up.to_json(),
            "down": link.down.to_json(),
        }


def link_of(topology: Topology, node: Node) -> LinkState:
    """The link of a node, as the file says."""
    return LinkState.of(topology.profile(node.profile))


def host_variables(
    board: Board, interface: str, topology: Topology, uplink: Uplink | None
) -> dict[str, Any]:
    """The playbook variables of a host, beside those of its inventory."""
    return {
        "testbed_node": board.node,
        "testbed_interface": interface,
        "testbed_shape": board.shape,
        "testbed_capture": board.capture and topology.capture.enabled,
        "testbed_snaplen": topology.capture.snaplen,
        "testbed_routes": routes(uplink),
        "testbed_tcp": topology.tcp or "",
    }


def routes(uplink: Uplink | None) -> list[dict[str, str]]:
    """The boards' routes to the nodes of this machine."""
    return [{"to": PREFIX, "via": uplink.gateway}] if uplink else []


def connection_variables(board: Board) -> dict[str, Any]:
    """The connection variables of a board, for an inventory that needs no other file."""
    known = {
        "ansible_host": board.target,
        "ansible_port": board.port,
        "ansible_user": board.user,
        "ansible_ssh_private_key_file": board.key,
        "ansible_ssh_common_args": board.ssh_options or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def write_inventory(path: Path, hosts: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write an inventory of our own, beside the user's, with the lab's variables of each host."""
    write_json(path, {"boards": {"hosts": {name: dict(each) for name, each in hosts.items()}}})
    return path


def board_facts(board: Board, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts on a board for the run's folder, without keys and options."""
    own = {name: asdict(board)[name] for name in ("node", "host", "address", "shape", "capture")}
    return {**own, **facts}
