"""How many brokers an overlay needs: a star exactly one, the others at least one."""

from nodes.overlay.promises import STAR
from testbed.topology.checking import Checking
from testbed.topology.model import Node, NodeKind, Topology


def check_brokers(checking: Checking, nodes: tuple[Node, ...]) -> None:
    """Nothing to say while it is unclear which nodes there are, or of a lab of other people's programs."""
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


def doubts(topology: Topology) -> tuple[str, ...]:
    """An overlay between brokers, and nothing to be between."""
    method = topology.overlay.method
    if method == STAR or len(topology.of_kind(NodeKind.BROKER)) != 1:
        return ()
    return (
        f"overlay {method} is for several brokers, and there is only one; "
        "its publications cross no overlay, and nobody takes over if it fails",
    )
