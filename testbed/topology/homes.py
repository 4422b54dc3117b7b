"""Which brokers a sensor or subscriber is told of, the nearest first. Pure.

Those that the file names come first; then brokers behind the same router, which are reached without crossing its line;
then, if both have a place, by the distance between them. What is left is spread evenly: each node has an order of
brokers of its own, drawn from the names, and its home is the first in it that has room for one more.
Orders that follow from names change little when a broker comes or goes: most nodes need not be told anything new.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import ceil

from nodes.kinds import EDGE
from testbed.earth import distance_m
from testbed.topology.model import Node, NodeKind

MOST_HOMES = 4  # brokers that a node at the edge is told of


def homes_of(
    nodes: Sequence[Node], chosen: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """For each sensor and subscriber the names of its brokers; `chosen` are those that the file names."""
    brokers = [node for node in nodes if node.kind is NodeKind.BROKER]
    edges = [node for node in nodes if node.kind in EDGE]
    if not brokers:
        return {}
    placeless = [node for node in edges if not _has_a_way(node, brokers, chosen)]
    room = dict.fromkeys((broker.name for broker in brokers), ceil(len(placeless) / len(brokers)))
    homes = {}
    for node in edges:
        order = _order(node, brokers)
        first = list(chosen.get(node.name, ()))
        if not _has_a_way(node, brokers, chosen):
            first = [next(name for name in order if room[name])]
            room[first[0]] -= 1
        homes[node.name] = tuple(dict.fromkeys([*first, *order]))[:MOST_HOMES]
    return homes


def _has_a_way(node: Node, brokers: Sequence[Node], chosen: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether something says which broker is nearest."""
    return (
        bool(chosen.get(node.name))
        or (node.router is not None and any(b.router == node.router for b in brokers))
        or (node.at is not None and any(b.at is not None for b in brokers))
    )


def _order(node: Node, brokers: Sequence[Node]) -> list[str]:
    def far(broker: Node) -> tuple[bool, float, bytes]:
        beside = node.router is not None and broker.router == node.router
        distance = distance_m(node.at, broker.at) if node.at and broker.at else float("inf")
        return not beside, distance, _lot(node.name, broker.name)

    return [broker.name for broker in sorted(brokers, key=far)]


def _lot(node: str, broker: str) -> bytes:
    return blake2b(f"{node}/{broker}".encode(), digest_size=8).digest()
