"""Select the nodes of an event by name, group, tag or area; each wrong selector becomes a problem at its place."""

from collections.abc import Callable

from testbed.topology.diagnostics.hints import did_you_mean, quoted, with_article
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Node, NodeKind
from testbed.topology.names import filled, topic_problem
from testbed.topology.parse.selectors import (
    TAG,
    MemberRange,
    Members,
    SelectorError,
    merged,
    select,
)
from testbed.topology.resolve.checking import Checking
from testbed.topology.schema.sections import RawPublish, RawTargets

Objection = Callable[[Node], tuple[str, str] | None]  # why a node is refused: message, hint


class Selection:
    """The nodes that selectors can select. Equal selections are cached."""

    def __init__(
        self, checking: Checking, nodes: tuple[Node, ...], objection: Objection | None = None
    ) -> None:
        self._checking = checking
        self._objection = objection
        self._by_name = {node.name: node for node in nodes}
        self._by_group: dict[str, list[Node]] = {}
        self._by_tag: dict[str, list[Node]] = {}
        for node in nodes:
            for tag in node.tags:
                self._by_tag.setdefault(tag, []).append(node)
            if node.group is not None:
                self._by_group.setdefault(node.group, []).append(node)
        self._members = Members(frozenset(self._by_name), checking.counts)
        self._chosen: dict[tuple[str, ...], tuple[Node, ...]] = {}

    @property
    def able(self) -> tuple[Node, ...]:
        """All nodes that are not refused."""
        return tuple(node for node in self._by_name.values() if self._against(node) is None)

    def of(self, path: Path, selectors: tuple[str, ...]) -> tuple[Node, ...]:
        """The nodes of the selectors at this path, each once, in file order."""
        if selectors in self._chosen:
            return self._chosen[selectors]
        names: set[str] = set()
        member_ranges: set[MemberRange] = set()
        clear = True
        tagged: list[Node] = []
        for index, selector in enumerate(selectors):
            if selector.startswith(TAG):
                found = self._tagged(self._where(path, index), selector.removeprefix(TAG))
                tagged += found
                clear = clear and bool(found)
                continue
            match self._select(self._where(path, index), selector):
                case MemberRange() as member_range:
                    member_ranges.add(member_range)
                case str(name):
                    names.add(name)
                case None:
                    clear = False
        chosen = {name: self._by_name[name] for name in names}
        chosen.update((node.name, node) for node in tagged)
        for member_range in merged(member_ranges):
            chosen.update((node.name, node) for node in self._nodes(member_range))
        nodes = tuple(sorted(chosen.values(), key=lambda node: node.number))
        if clear:  # else the problem is reported wherever it occurs
            self._chosen[selectors] = nodes
        return nodes

    def in_order(self, path: Path, selectors: tuple[str, ...]) -> tuple[Node, ...]:
        """The nodes of the selectors, each once, in the order of the selectors; not cached."""
        chosen: dict[str, Node] = {}
        for index, selector in enumerate(selectors):
            match self._select(self._where(path, index), selector):
                case MemberRange() as member_range:
                    chosen.update((node.name, node) for node in self._nodes(member_range))
                case str(name):
                    chosen[name] = self._by_name[name]
        return tuple(chosen.values())

    def _where(self, path: Path, index: int) -> Path:
        where = (*path, index)
        return where if where in self._checking.document.source.values else path  # not in a list

    def _nodes(self, member_range: MemberRange) -> list[Node]:
        return self._by_group.get(member_range.group, [])[
            member_range.indices.start : member_range.indices.stop
        ]

    def _tagged(self, where: Path, tag: str) -> list[Node]:
        """The nodes with the tag that are not refused; none is a problem."""
        with_tag = self._by_tag.get(tag, [])
        able = [node for node in with_tag if self._against(node) is None]
        if not with_tag:
            known = did_you_mean(tag, sorted(self._by_tag))
            hint = known or f"add `tags: [{tag}]` to nodes or groups"
            self._checking.value(where, f"no node has the tag {quoted(tag)}", hint)
        elif not able and (problem := self._against(with_tag[0])):
            self._checking.value(where, *problem)
        return able

    def _select(self, where: Path, selector: str) -> str | MemberRange | None:
        """The node or members of the selector; None if it is invalid, or if its nodes are."""
        if not self._by_name or not self._checkable(selector):
            return None
        try:
            found = select(selector, self._members)
        except SelectorError as error:
            self._checking.value(where, str(error), error.hint)
            return None
        match found:
            case MemberRange():
                first = next(iter(self._nodes(found)), None)  # a group's members are of one kind
            case str():
                first = self._by_name[found]
            case None:
                first = None
        if first is not None and (problem := self._against(first)):
            self._checking.value(where, *problem)
            return None
        return found

    def _checkable(self, selector: str) -> bool:
        """Whether the group or node of the selector is valid; if not, its own problem is enough."""
        shaped = self._checking.shaped
        name = selector.split("[", 1)[0]
        group = name.rpartition("-")[0]  # if it is the name of a member
        unclear: set[Path] = {("groups",), ("nodes",), ("groups", name), ("nodes", name)}
        return not unclear & shaped.wrong and (not group or shaped.sound("groups", group))

    def _against(self, node: Node) -> tuple[str, str] | None:
        origin = ("groups", node.group) if node.group else ("nodes", node.name)
        if self._objection is None or not self._checking.shaped.sound(*origin, "kind"):
            return None
        return self._objection(node)


Corners = tuple[tuple[float, float], tuple[float, float]]


class Targets:
    """The nodes that events of one kind can affect. The share among them is chosen later, by the seed."""

    def __init__(
        self, checking: Checking, nodes: tuple[Node, ...], objection: Objection | None = None
    ) -> None:
        self._checking = checking
        self._selection = Selection(checking, nodes, objection)

    def of(self, path: Path, raw: RawTargets | RawPublish, key: str = "nodes") -> tuple[Node, ...]:
        """The nodes of the event, each once, in file order; `key` is the key of the selectors."""
        if raw.share == 0:
            hint = "remove the event instead"
            self._checking.value((*path, "share"), "a share of zero selects no node", hint)
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
                "none of the selected nodes is in this area",
                "check the corners" if placed else "give their coordinates: `at: [33.5, 133.5]`",
            )
        return there


_EXAMPLES = {"nodes": 'add `nodes: "brokers[*]"`', "from": 'add `from: "sensors[*]"`'}


def _stands_in(node: Node, corners: Corners) -> bool:
    """Whether the node is in the area; edges belong to it."""
    if node.at is None:
        return False
    return all(
        min(corner[axis] for corner in corners) <= node.at[axis] <= max(c[axis] for c in corners)
        for axis in (0, 1)
    )


class Publishers:
    """The sensors that can publish in events of one file."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._targets = Targets(checking, nodes, cannot_publish)

    def of(self, path: Path, publish: RawPublish) -> tuple[str, ...]:
        """The names of the event's publishers, each once, in file order; their topics are checked."""
        nodes = self._targets.of(path, publish, "from")
        check_topic(self._checking, (*path, "topic"), publish.topic, nodes)
        return tuple(node.name for node in nodes)


def check_topic(checking: Checking, path: Path, template: str, nodes: tuple[Node, ...]) -> None:
    """Check a valid template with the nodes' names in it: it may be too long, or lack a group."""
    if "{" not in template or not nodes:
        return
    if "{group}" in template:
        for node in nodes:
            if node.group is None:
                message = f"{{group}} is undefined for {node.name}, which is in no group"
                checking.value(path, message, "use {node}")
                return
    longest = max((filled(template, node.name, node.group) for node in nodes), key=len)
    if problem := topic_problem(longest):
        checking.value(path, *problem)


def cannot_publish(node: Node) -> tuple[str, str] | None:
    """Why this node cannot publish: message and hint; None if it can."""
    if node.kind is NodeKind.SENSOR:
        return None
    return (
        f"{node.name} is {with_article(node.kind)}; only sensors publish",
        "choose sensors, or change its `kind`",
    )
