"""Who publishes in an event: its selectors looked up, and its topic tried on the nodes found."""

from testbed.topology.checking import Checking
from testbed.topology.hints import with_article
from testbed.topology.model import Node, NodeKind
from testbed.topology.names import filled, topic_problem
from testbed.topology.raw import RawPublish
from testbed.topology.selectors import Members, SelectorError, Stretch, merged, select
from testbed.topology.source_map import Path


class Publishers:
    """The nodes that the events of one file can mean. The same selection is looked up once, however often it occurs."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._by_name = {node.name: node for node in nodes}
        self._by_group: dict[str, list[Node]] = {}
        for node in nodes:
            if node.group is not None:
                self._by_group.setdefault(node.group, []).append(node)
        self._members = Members(frozenset(self._by_name), checking.counts)
        self._chosen: dict[tuple[str, ...], tuple[Node, ...]] = {}

    def of(self, path: Path, publish: RawPublish) -> tuple[str, ...]:
        """The names of the nodes meant, each once, in file order."""
        nodes = self._chosen.get(publish.nodes)
        if nodes is None:
            nodes = self._choose(path, publish.nodes)
        self._check_topic((*path, "topic"), publish.topic, nodes)
        return tuple(node.name for node in nodes)

    def _choose(self, path: Path, selectors: tuple[str, ...]) -> tuple[Node, ...]:
        names: set[str] = set()
        stretches: set[Stretch] = set()
        clear = True
        for index, selector in enumerate(selectors):
            where: Path = (*path, "from", index)
            if where not in self._checking.document.source.values:  # one selector, not in a list
                where = (*path, "from")
            match self._select(where, selector):
                case Stretch() as stretch:
                    stretches.add(stretch)
                case str(name):
                    names.add(name)
                case None:
                    clear = False
        chosen = {name: self._by_name[name] for name in names}
        for stretch in merged(stretches):
            chosen.update((node.name, node) for node in self._nodes(stretch))
        nodes = tuple(sorted(chosen.values(), key=lambda node: node.number))
        if clear:  # else the same problem is to be shown wherever it occurs
            self._chosen[selectors] = nodes
        return nodes

    def _nodes(self, stretch: Stretch) -> list[Node]:
        return self._by_group.get(stretch.group, [])[stretch.indices.start : stretch.indices.stop]

    def _select(self, path: Path, selector: str) -> str | Stretch | None:
        """What the selector means; None if it is wrong, or what it names is."""
        if not self._by_name or not self._checkable(selector):
            return None
        try:
            found = select(selector, self._members)
        except SelectorError as error:
            self._checking.value(path, str(error), error.hint)
            return None
        match found:
            case Stretch():
                first = next(iter(self._nodes(found)), None)  # a group's members are of one kind
            case str():
                first = self._by_name[found]
            case None:
                first = None
        if first is not None and self._cannot_publish(first):
            self._checking.value(
                path,
                f"{first.name} is {with_article(first.kind)}; only sensors publish",
                "choose sensors, or change its `kind`",
            )
            return None
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
