"""Who publishes in an event: its selectors looked up, and its topic tried on the nodes found."""

from testbed.topology.checking import Checking
from testbed.topology.model import Node, NodeKind
from testbed.topology.names import filled, topic_problem
from testbed.topology.raw import MAX_NODES, RawPublish
from testbed.topology.selectors import Members, SelectorError, select
from testbed.topology.source_map import Path


class Publishers:
    """The nodes that the events of one file can mean. The same selection is looked up once, however often it occurs."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._by_name = {node.name: node for node in nodes}
        # A group whose count is wrong could have any number of members.
        groups = {
            name: group.count if checking.shaped.sound("groups", name, "count") else MAX_NODES
            for name, group in checking.file.groups.items()
        }
        self._members = Members(frozenset(self._by_name), groups)
        self._chosen: dict[tuple[str, ...], tuple[Node, ...]] = {}

    def of(self, path: Path, publish: RawPublish) -> tuple[str, ...]:
        """The names of the nodes meant, each once, in file order."""
        nodes = self._chosen.get(publish.nodes)
        if nodes is None:
            nodes = self._choose(path, publish.nodes)
        self._check_topic((*path, "topic"), publish.topic, nodes)
        return tuple(node.name for node in nodes)

    def _choose(self, path: Path, selectors: tuple[str, ...]) -> tuple[Node, ...]:
        chosen: dict[str, Node] = {}
        clear = True
        for index, selector in enumerate(selectors):
            where: Path = (*path, "from", index)
            if where not in self._checking.document.source.values:  # one selector, not in a list
                where = (*path, "from")
            found = self._select(where, selector)
            clear = clear and bool(found)
            chosen.update((node.name, node) for node in found)
        nodes = tuple(sorted(chosen.values(), key=lambda node: node.number))
        if clear:  # else the same problem is to be shown wherever it occurs
            self._chosen[selectors] = nodes
        return nodes

    def _select(self, path: Path, selector: str) -> tuple[Node, ...]:
        """The nodes of one selector; none if it is wrong."""
        if not self._by_name or not self._checkable(selector):
            return ()
        try:
            names = select(selector, self._members)
        except SelectorError as error:
            self._checking.value(path, str(error), error.hint)
            return ()
        found = tuple(self._by_name[name] for name in names if name in self._by_name)
        for node in found:
            if self._cannot_publish(node):
                self._checking.value(
                    path,
                    f"{node.name} is a {node.kind}; only sensors publish",
                    "choose sensors, or change its `kind`",
                )
                return ()
        return found

    def _checkable(self, selector: str) -> bool:
        """Whether what the selector names is itself in order; if not, that problem is enough."""
        shaped = self._checking.shaped
        name = selector.split("[", 1)[0]
        group = name.rpartition("-")[0]  # if it is the name of a member
        unclear: set[Path] = {("groups",), ("nodes",), ("groups", name), ("nodes", name)}
        return not unclear & shaped.wrong and (not group or shaped.sound("groups", group))

    def _cannot_publish(self, node: Node) -> bool:
        origin = ("groups", node.group) if node.group else ("nodes", node.name)
        return node.kind is not NodeKind.SENSOR and self._checking.shaped.sound(*origin, "kind")

    def _check_topic(self, path: Path, template: str, nodes: tuple[Node, ...]) -> None:
        """The template itself is right; with the nodes' names in it, it may mean nothing or be too long."""
        if "{" not in template or not nodes:
            return
        if "{group}" in template:
            for node in nodes:
                if node.group is None:
                    message = f"{{group}} means nothing for {node.name}, which is in no group"
                    self._checking.value(path, message, "use {node}")
                    return
        longest = max((filled(template, node.name, node.group) for node in nodes), key=len)
        if problem := topic_problem(longest):
            self._checking.value(path, *problem)
