"""The brokers of an overlay: their number, and the brokers of each sensor and subscriber."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import ceil, inf

from nodes.overlay.reliability.settings import STAR
from nodes.protocol.kinds import EDGE
from testbed.earth import distance_m
from testbed.topology.diagnostics.hints import quoted, with_article
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Node, NodeKind, routers_of
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.selection import Selection

# Broker selection for sensors and subscribers, the nearest broker first. Pure.
#
# Brokers that the file names come first; then brokers behind the same router, whose link the traffic need not cross,
# the nearest such router first; then brokers by distance, if both have a place. The other clients are spread evenly:
# each client orders the brokers by a hash of the names, and takes the first one with free capacity.
# A hash of names changes few selections when a broker is added or removed, so most clients keep their configuration.


MAX_BROKERS_PER_CLIENT = 4  # in the configuration of a sensor or subscriber


def select_brokers(
    nodes: Sequence[Node], chosen: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The names of the brokers of each sensor and subscriber; `chosen` are those that the file names."""
    brokers = [node for node in nodes if node.kind is NodeKind.BROKER]
    edges = [node for node in nodes if node.kind in EDGE]
    if not brokers:
        return {}
    by_name = {node.name: node for node in nodes}
    routers = {
        node.name: tuple(router.name for router in routers_of(node, by_name))
        for node in (*edges, *brokers)
    }
    unplaced = [node for node in edges if not _nearest_is_known(node, brokers, chosen, routers)]
    capacity = dict.fromkeys(
        (broker.name for broker in brokers), ceil(len(unplaced) / len(brokers))
    )
    selected = {}
    for node in edges:
        order = _order(node, brokers, routers)
        first = list(chosen.get(node.name, ()))
        if not _nearest_is_known(node, brokers, chosen, routers):
            first = [next(name for name in order if capacity[name])]
            capacity[first[0]] -= 1
        selected[node.name] = tuple(dict.fromkeys([*first, *order]))[:MAX_BROKERS_PER_CLIENT]
    return selected


RoutersOf = Mapping[str, tuple[str, ...]]  # node -> its routers, the nearest first


def _nearest_is_known(
    node: Node,
    brokers: Sequence[Node],
    chosen: Mapping[str, tuple[str, ...]],
    routers: RoutersOf,
) -> bool:
    """Whether the file, the router or the place decides which broker is nearest."""
    return (
        bool(chosen.get(node.name))
        or any(_climbs(node, broker, routers) is not None for broker in brokers)
        or (node.at is not None and any(b.at is not None for b in brokers))
    )


def _climbs(node: Node, broker: Node, routers: RoutersOf) -> int | None:
    """How many of its routers a node's messages pass to the router where they meet the broker's; None: the core."""
    shared = set(routers[broker.name])
    return next((n for n, name in enumerate(routers[node.name]) if name in shared), None)


def _order(node: Node, brokers: Sequence[Node], routers: RoutersOf) -> list[str]:
    def far(broker: Node) -> tuple[float, float, bytes]:
        climbs = _climbs(node, broker, routers)
        distance = distance_m(node.at, broker.at) if node.at and broker.at else float("inf")
        return inf if climbs is None else climbs, distance, _spreading_hash(node.name, broker.name)

    return [broker.name for broker in sorted(brokers, key=far)]


def _spreading_hash(node: str, broker: str) -> bytes:
    return blake2b(f"{node}/{broker}".encode(), digest_size=8).digest()


_KEY = "brokers"


def with_brokers(checking: Checking, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Give every sensor and subscriber the names of its brokers, the nearest first."""
    selection = Selection(checking, nodes, _refuse_other_kinds)
    of_path: dict[Path, tuple[str, ...]] = {}
    for section, raws in (("groups", checking.file.groups), ("nodes", checking.file.nodes)):
        for name, raw in raws.items():
            if raw.brokers:
                path = (section, name, _KEY)
                _check_kind(checking, path, raw.kind)
                found = selection.in_order(path, raw.brokers)
                if len(found) > MAX_BROKERS_PER_CLIENT:
                    checking.value(
                        path,
                        f"{len(found)} brokers; a node has at most {MAX_BROKERS_PER_CLIENT}",
                        "name the nearest ones",
                    )
                of_path[section, name] = tuple(broker.name for broker in found)
    chosen = {node.name: of_path.get(_origin(node), ()) for node in nodes}
    selected = select_brokers(nodes, chosen)
    return tuple(replace(node, brokers=selected.get(node.name, ())) for node in nodes)


def _origin(node: Node) -> Path:
    return ("groups", node.group) if node.group else ("nodes", node.name)


def _check_kind(checking: Checking, path: Path, kind: str) -> None:
    if kind not in EDGE and checking.shaped.sound(*path[:2], "kind"):
        checking.key(
            path,
            f"{with_article(kind)} has no `{_KEY}`; only sensors and subscribers do",
            "remove it",
        )


def _refuse_other_kinds(node: Node) -> tuple[str, str] | None:
    if node.kind is NodeKind.BROKER:
        return None
    return (
        f"{quoted(node.name)} is {with_article(node.kind)}, not a broker",
        "name a node with `kind: broker`",
    )


def check_brokers(checking: Checking, nodes: tuple[Node, ...]) -> None:
    """Check the number of brokers: a star needs exactly one, other overlays at least one.

    Skip the check if the nodes are not known because of other problems, or if all nodes are external.
    """
    shaped = checking.shaped
    unclear = not all(shaped.sound(section) for section in ("groups", "nodes", "overlay"))
    if unclear or not any(node.ours for node in nodes):
        return
    method = checking.file.overlay.method
    brokers = [node for node in nodes if node.kind is NodeKind.BROKER]
    if not brokers:
        where = "nodes" if "nodes" in checking.written() else "groups"
        checking.key(
            (where,),
            f"overlay {method} needs a broker, and there is none",
            "add `broker: {kind: broker}`",
        )
    elif method == STAR and len(brokers) > 1:
        second = brokers[1]
        path = ("groups", second.group) if second.group else ("nodes", second.name)
        checking.key(
            path,
            f"overlay star needs exactly one broker, and there are {len(brokers)}",
            "keep one, or choose an overlay for several brokers, as in `overlay: {method: sg-tbps}`",
        )
