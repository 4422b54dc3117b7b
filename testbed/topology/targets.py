"""The nodes that an event is about: by name, group or tag, in an area. Which share of them is the seed's to say."""

from testbed.topology.checking import Checking
from testbed.topology.model import Node
from testbed.topology.raw import RawPublish, RawTargets
from testbed.topology.selection import Objection, Selection
from testbed.topology.source_map import Path

Corners = tuple[tuple[float, float], tuple[float, float]]


class Targets:
    """The nodes that events of one kind can be about."""

    def __init__(
        self, checking: Checking, nodes: tuple[Node, ...], objection: Objection | None = None
    ) -> None:
        self._checking = checking
        self._selection = Selection(checking, nodes, objection)

    def of(self, path: Path, raw: RawTargets | RawPublish, key: str = "nodes") -> tuple[Node, ...]:
        """The nodes meant, each once, in file order; `key` is where the file names them."""
        if raw.share == 0:
            hint = "remove the event instead"
            self._checking.value((*path, "share"), "a share of zero means nobody", hint)
        if raw.nodes:
            nodes = self._selection.of((*path, key), raw.nodes)
        elif raw.within is not None:
            nodes = self._selection.able
        else:
            if self._checking.shaped.sound(*path, key):
                self._checking.key(path, f"`{key}` is missing here", _EXAMPLES[key])
            return ()
        if raw.within is None or not nodes:
            return nodes
        there = tuple(node for node in nodes if _stands_in(node, raw.within))
        if not there and self._checking.shaped.sound(*path, key):
            placed = any(node.at is not None for node in nodes)
            self._checking.value(
                (*path, "within"),
                "none of the nodes meant is in this area",
                "look at the corners" if placed else "say where they are: `at: [33.5, 133.5]`",
            )
        return there


_EXAMPLES = {"nodes": 'add `nodes: "brokers[*]"`', "from": 'add `from: "sensors[*]"`'}


def _stands_in(node: Node, corners: Corners) -> bool:
    """Edges belong to the area."""
    if node.at is None:
        return False
    return all(
        min(corner[axis] for corner in corners) <= node.at[axis] <= max(c[axis] for c in corners)
        for axis in (0, 1)
    )
