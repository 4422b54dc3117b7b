"""Who publishes in an event: its selectors looked up, and its topic tried on the nodes found."""

from testbed.topology.checking import Checking
from testbed.topology.hints import with_article
from testbed.topology.model import Node, NodeKind
from testbed.topology.names import filled, topic_problem
from testbed.topology.raw import RawPublish
from testbed.topology.source_map import Path
from testbed.topology.targets import Targets


class Publishers:
    """The sensors that the events of one file can mean."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._targets = Targets(checking, nodes, cannot_publish)

    def of(self, path: Path, publish: RawPublish) -> tuple[str, ...]:
        """The names of the nodes meant, each once, in file order."""
        nodes = self._targets.of(path, publish, "from")
        check_topic(self._checking, (*path, "topic"), publish.topic, nodes)
        return tuple(node.name for node in nodes)


def check_topic(checking: Checking, path: Path, template: str, nodes: tuple[Node, ...]) -> None:
    """The template itself is right; with the nodes' names in it, it may mean nothing or be too long."""
    if "{" not in template or not nodes:
        return
    if "{group}" in template:
        for node in nodes:
            if node.group is None:
                message = f"{{group}} means nothing for {node.name}, which is in no group"
                checking.value(path, message, "use {node}")
                return
    longest = max((filled(template, node.name, node.group) for node in nodes), key=len)
    if problem := topic_problem(longest):
        checking.value(path, *problem)


def cannot_publish(node: Node) -> tuple[str, str] | None:
    """Why this node publishes nothing, if it does not: message and hint."""
    if node.kind is NodeKind.SENSOR:
        return None
    return (
        f"{node.name} is {with_article(node.kind)}; only sensors publish",
        "choose sensors, or change its `kind`",
    )
