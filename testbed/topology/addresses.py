"""Numbers of nodes, from which addresses, message ids and interface names follow."""

import ipaddress
from collections.abc import Mapping
from dataclasses import replace

from testbed.topology.model import PREFIX, Topology

_NETWORK = ipaddress.ip_network(PREFIX)


def address_of(number: int) -> str:
    """The address of the node of this number."""
    return str(_NETWORK[number])


def numbers_of(topology: Topology) -> dict[str, int]:
    """The number of each node, by name."""
    return {node.name: node.number for node in topology.nodes}


def keep_numbers(topology: Topology, given: Mapping[str, int]) -> Topology:
    """The same topology for a running lab: a node that had a number keeps it, further nodes get new ones.

    No number is used for two nodes within a run: its captures would show the packets of one as the other's.
    """
    newest = max(given.values(), default=0)
    nodes = []
    for node in topology.nodes:
        number = given.get(node.name)
        if number is None:
            newest += 1
            number = newest
        nodes.append(replace(node, number=number, address=address_of(number)))
    return replace(topology, nodes=tuple(nodes))
