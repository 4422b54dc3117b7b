"""Assigns the hosts of an inventory to the nodes of a topology, and writes a sample inventory. Pure."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.errors import InputError, few
from testbed.topology.model import Node, Topology

SSH_PORT = 22
GROUP = "boards"  # of an inventory; without it all its hosts are meant


@dataclass(frozen=True, slots=True)
class Board:
    """A host of the inventory, and the node that runs on it."""

    node: str
    host: str  # its name in the inventory
    address: str  # under which other nodes reach it
    target: str  # under which SSH does
    port: int = SSH_PORT
    user: str | None = None
    key: str | None = None
    ssh_options: str = ""  # as in the inventory
    interface: str | None = None  # None: that of the default route
    shape: bool = True  # False: the link is a real one
    capture: bool = True


@dataclass(frozen=True, slots=True)
class Uplink:
    """How the lab's own nodes and the boards reach each other: an interface of this machine and an address on it."""

    interface: str
    address: str  # with its prefix length, as in 192.0.2.250/24

    @property
    def gateway(self) -> str:
        """The address alone."""
        return str(ipaddress.ip_interface(self.address).ip)


Hosts = Mapping[str, Mapping[str, Any]]  # name -> its variables


def boards_of(topology: Topology, hosts: Hosts) -> tuple[Board, ...]:
    """One board for each node with `place: boards`; InputError if a node has none, or two hosts name the same node."""
    wanted = [node for node in topology.nodes if node.on_board]
    if not wanted:
        raise InputError(
            f"no node of lab {topology.name} has `place: boards`",
            "say so in the file, e.g. --set groups.sensors.place=boards, or take `testbed up`",
        )
    by_node: dict[str, str] = {}
    for host, variables in hosts.items():
        node = str(variables.get("testbed_node", host))
        if node in by_node:
            raise InputError(
                f"both {by_node[node]} and {host} of the inventory are to be {node}",
                "a node runs on one board: change `testbed_node` of one of them",
            )
        by_node[node] = host
    if missing := [node.name for node in wanted if node.name not in by_node]:
        raise InputError(
            f"the inventory has no board for {few(missing)}",
            "name a host like its node, or give it `testbed_node: NODE`; `testbed inventory FILE` writes one",
        )
    return tuple(_board(node, by_node[node.name], hosts[by_node[node.name]]) for node in wanted)


def _board(node: Node, host: str, variables: Mapping[str, Any]) -> Board:
    target = str(variables.get("ansible_host", host))
    address = str(variables.get("testbed_address", target))
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        raise InputError(
            f"{host}: {address!r} is not an IPv4 address",
            "other nodes need one: set `testbed_address` (or `ansible_host`) of this host",
        ) from None
    key, interface = (
        variables.get(name) for name in ("ansible_ssh_private_key_file", "testbed_interface")
    )
    return Board(
        node=node.name,
        host=host,
        address=address,
        target=target,
        port=int(variables.get("ansible_port", SSH_PORT)),
        user=str(variables["ansible_user"]) if "ansible_user" in variables else None,
        key=str(key) if key else None,
        ssh_options=str(variables.get("ansible_ssh_common_args", "")),
        interface=str(interface) if interface else None,
        shape=bool(variables.get("testbed_shape", True)),
        capture=bool(variables.get("testbed_capture", True)),
    )


def uplink_of(hosts: Hosts) -> Uplink | None:
    """The inventory's connection between boards and this machine's nodes; None if it names none."""
    for host, variables in hosts.items():
        if "testbed_uplink_interface" not in variables:
            continue
        address = str(variables.get("testbed_uplink_address", ""))
        try:
            ipaddress.IPv4Interface(address)
        except ValueError:
            raise InputError(
                f"{host}: testbed_uplink_address {address!r} is not an address with a prefix length",
                "give a free address of the boards' network, as in 192.168.1.250/24",
            ) from None
        return Uplink(str(variables["testbed_uplink_interface"]), address)
    return None


def at_their_addresses(topology: Topology, boards: Sequence[Board]) -> Topology:
    """The topology with the boards' own addresses."""
    addresses = {board.node: board.address for board in boards}
    return replace(
        topology,
        nodes=tuple(
            replace(node, address=addresses.get(node.name, node.address)) for node in topology.nodes
        ),
    )


def is_mixed(topology: Topology) -> bool:
    """Whether some nodes stay on this machine."""
    return not all(node.on_board for node in topology.nodes)


# A sample inventory: one host for each node with `place: boards`.


NO_ADDRESS = "192.0.2.{}"  # RFC 5737: addresses for documentation


def sample_inventory(topology: Topology, source: str, addresses: Sequence[str], user: str) -> str:
    """A YAML inventory with comments; addresses go to the nodes in their order."""
    nodes = [node for node in topology.nodes if node.on_board]
    if not nodes:
        raise InputError(
            f"no node of {source} has `place: boards`",
            "say so in the file, or e.g. --set groups.sensors.place=boards",
        )
    if addresses and len(addresses) != len(nodes):
        raise InputError(
            f"{len(addresses)} addresses for {len(nodes)} boards",
            "give one for each, in the order of the nodes",
        )
    given = addresses or [NO_ADDRESS.format(number) for number in range(1, len(nodes) + 1)]
    hosts = [
        f"    {node.name}: {{ansible_host: {address}}}"
        for node, address in zip(nodes, given, strict=True)
    ]
    missing = [] if addresses else ["# Put the boards' own addresses in the place of 192.0.2.x."]
    mixed = is_mixed(topology)
    return "\n".join(
        [
            f"# Boards for {source}: testbed deploy {source} -i THIS_FILE",
            "# A host is named like its node; another name is fine with `testbed_node: NODE`.",
            *missing,
            "boards:",
            "  hosts:",
            *hosts,
            "  vars:",
            f"    ansible_user: {user}",
            "    # ansible_ssh_private_key_file: ~/.ssh/id_ed25519",
            "    # testbed_shape: false            # the boards have real links (3G sticks): do not shape them",
            "    # testbed_interface: wwan0        # default: the interface with the board's address",
            "    # testbed_time_server: 192.0.2.100  # this machine's address, if chrony serves time here",
            *_uplink(mixed),
            "",
        ]
    )


def _uplink(mixed: bool) -> list[str]:
    """The lines on the uplink, which is needed only if some nodes stay on this machine."""
    mark = "" if mixed else "# "
    return [
        f"    {mark}testbed_uplink_interface: eth0            # of this machine, in the boards' network",
        f"    {mark}testbed_uplink_address: 192.0.2.250/24    # a free address there, for the lab's own nodes",
    ]
