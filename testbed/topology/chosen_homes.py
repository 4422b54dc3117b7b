"""`home:` of the file: the brokers that a node or group names itself, checked; and every node with its brokers."""

from dataclasses import replace

from nodes.kinds import EDGE
from testbed.topology.checking import Checking
from testbed.topology.hints import quoted, with_article
from testbed.topology.homes import MOST_HOMES, homes_of
from testbed.topology.model import Node, NodeKind
from testbed.topology.selection import Selection
from testbed.topology.source_map import Path

_KEY = "home"


def place_at_homes(checking: Checking, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Every sensor and subscriber with the names of its brokers, the nearest first."""
    selection = Selection(checking, nodes, _no_broker)
    of_path: dict[Path, tuple[str, ...]] = {}
    for section, raws in (("groups", checking.file.groups), ("nodes", checking.file.nodes)):
        for name, raw in raws.items():
            if raw.home:
                path = (section, name, _KEY)
                _check_kind(checking, path, raw.kind)
                found = selection.in_order(path, raw.home)
                if len(found) > MOST_HOMES:
                    checking.value(
                        path,
                        f"{len(found)} brokers; a node is told of at most {MOST_HOMES}",
                        "name the nearest ones",
                    )
                of_path[section, name] = tuple(broker.name for broker in found)
    chosen = {node.name: of_path.get(_origin(node), ()) for node in nodes}
    homes = homes_of(nodes, chosen)
    return tuple(replace(node, homes=homes.get(node.name, ())) for node in nodes)


def _origin(node: Node) -> Path:
    return ("groups", node.group) if node.group else ("nodes", node.name)


def _check_kind(checking: Checking, path: Path, kind: str) -> None:
    if kind not in EDGE and checking.shaped.sound(*path[:2], "kind"):
        checking.key(
            path,
            f"{with_article(kind)} has no `{_KEY}`; only sensors and subscribers do",
            "remove it",
        )


def _no_broker(node: Node) -> tuple[str, str] | None:
    if node.kind is NodeKind.BROKER:
        return None
    return (
        f"{quoted(node.name)} is {with_article(node.kind)}, not a broker",
        "name a node with `kind: broker`",
    )
