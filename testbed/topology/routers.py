"""Which node is behind which router: several nodes then share the router's one link."""

from collections.abc import Mapping
from dataclasses import replace

from testbed.topology.checking import Checking
from testbed.topology.hints import did_you_mean, quoted, with_article
from testbed.topology.model import Node, NodeKind
from testbed.topology.raw import RawMember
from testbed.topology.selectors import Members, SelectorError, Stretch, member, select
from testbed.topology.source_map import Path

NONE_KNOWN = "add a node with `kind: router`"


def place_behind_routers(
    checking: Checking, nodes: tuple[Node, ...], origin: Mapping[str, Path]
) -> tuple[Node, ...]:
    """Every node with the name of its router; members of a group take turns if there are several."""
    file = checking.file
    routers = _Routers(checking, nodes)
    of_path: dict[Path, tuple[str, ...]] = {}
    for section, raws in (("groups", file.groups), ("nodes", file.nodes)):
        for name, raw in raws.items():
            if raw.router is not None:
                of_path[section, name] = routers.meant((section, name, "router"), raw, raw.router)
    placed = []
    for node in nodes:
        chosen = of_path.get(origin[node.name])
        placed.append(replace(node, router=chosen[node.index % len(chosen)]) if chosen else node)
    return tuple(placed)


class _Routers:
    """The routers that a file has."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._by_name = {node.name: node for node in nodes}
        self._known = [node.name for node in nodes if node.kind is NodeKind.ROUTER]
        self._members = Members(frozenset(self._by_name), checking.counts)

    def meant(self, where: Path, raw: RawMember, selector: str) -> tuple[str, ...]:
        """The routers that the selector of this member means; none if that is not clear."""
        if raw.kind == NodeKind.ROUTER:
            self._checking.key(
                where,
                "a router cannot be behind another one",
                "its link goes to the core: remove this",
            )
            return ()
        try:
            found = select(selector, self._members)
        except SelectorError as error:
            self._checking.value(where, str(error), error.hint if self._known else NONE_KNOWN)
            return ()
        names = [found] if isinstance(found, str) else _names(found)
        for node in (self._by_name[name] for name in names if name in self._by_name):
            if node.kind is not NodeKind.ROUTER:
                self._checking.value(
                    where,
                    f"{quoted(node.name)} is {with_article(node.kind)}, not a router",
                    did_you_mean(selector, self._known) if self._known else NONE_KNOWN,
                )
                return ()
        return tuple(name for name in names if name in self._by_name)


def _names(stretch: Stretch | None) -> list[str]:
    return [member(stretch.group, index) for index in stretch.indices] if stretch else []
