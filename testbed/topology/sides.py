"""The sides of a partition: who is on which, and whether the core can keep them apart."""

from testbed.topology.checking import Checking
from testbed.topology.hints import quoted
from testbed.topology.model import Node
from testbed.topology.selection import Objection, Selection
from testbed.topology.source_map import Path


class Sides:
    """The nodes that can be on a side."""

    def __init__(
        self, checking: Checking, nodes: tuple[Node, ...], objection: Objection | None
    ) -> None:
        self._checking = checking
        self._selection = Selection(checking, nodes, objection)

    def of(self, path: Path, sides: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
        """The names of each side; whatever is wrong with them goes to the problems."""
        if not self._checking.shaped.sound(*path):
            return ()
        where = (*path, "sides")
        if len(sides) < 2:
            hint = 'write two or more: [["north[*]"], ["south[*]"]]'
            self._checking.value(where, "a partition has at least two sides", hint)
        found: list[tuple[Node, ...]] = [
            self._selection.of((*where, place), selectors) for place, selectors in enumerate(sides)
        ]
        side_of: dict[str, int] = {}
        behind: dict[str, Node] = {}  # router -> the first node behind it
        for place, nodes in enumerate(found):
            for node in nodes:
                self._check((*where, place), node, place, side_of, behind)
        return tuple(tuple(node.name for node in nodes) for nodes in found)

    def named(self, path: Path, name: str) -> Node | None:
        """A single node, however it is selected; that several are meant is a problem."""
        nodes = self._selection.of(path, (name,))
        if len(nodes) > 1:
            message = f"{quoted(name)} means {len(nodes):,} nodes, and one is needed"
            self._checking.value(path, message, f"name one of them, as in {nodes[0].name}")
        return nodes[0] if len(nodes) == 1 else None

    def _check(
        self, path: Path, node: Node, side: int, side_of: dict[str, int], behind: dict[str, Node]
    ) -> None:
        if side_of.setdefault(node.name, side) != side:
            hint = "let each be on one side"
            self._checking.value(path, f"{node.name} is on two sides", hint)
        if node.router is None:
            return
        other = behind.setdefault(node.router, node)
        if side_of[other.name] != side:
            self._checking.value(
                path,
                f"{node.name} and {other.name} meet in their router {node.router}, where nothing keeps them apart",
                "put those behind one router on one side",
            )
