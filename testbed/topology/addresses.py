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
    """Node to number."""
    return {node.name: node.number for node in topology.nodes}


def keep_numbers(topology: Topology, given: Mapping[str, int]) -> Topology:
    """The same topology for a lab that runs: who ever had a number keeps it, newcomers get new ones.

    A number never changes hands within a run, or its captures would show the packets of one node as another's.
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
