"""The trees of Scribe at one node: for each topic its children, and its parent, the next hop to the root.

A node is in a tree if it subscribes or has children. It sends its parent Join, again at each refresh; children without
a Join for long are forgotten. Joined goes down when the branch reaches the root. A node that is in the tree already
forwards no Join. Without subscription and children it leaves.

Change of parent: the node leaves the old parent when the new one has confirmed. Tickets grow, so that a late Leave does
not undo a newer Join.
"""

from dataclasses import dataclass, field

from nodes.overlay.topics.base import Subscribed
from nodes.overlay.topics.scribe.routing import NoHop, Routing
from nodes.overlay.topics.topic_graph import Context
from nodes.protocol.scribe_messages import Join, Joined, Leave


@dataclass(slots=True)
class Child:
    """A node that gets the topic from this one."""

    ticket: int
    until: float
    waits: bool = True  # for Joined


@dataclass(slots=True)
class Branch:
    """This node's place in the tree of a topic."""

    topic: str
    subscribed: bool = False
    confirmed: bool = False  # the subscription was confirmed to the layer above
    stands: bool = False
    parent: int | None = None  # the confirmed parent; None: there is none, or this node is the root
    asked: int | None = None  # the node that was sent Join
    ticket: int = 0  # of the Join to `asked`
    children: dict[int, Child] = field(default_factory=dict)


class Tree:
    """A node's branches in the trees of all topics. Children are forgotten after `forget_s` seconds without a Join."""

    def __init__(self, routing: Routing, forget_s: float) -> None:
        self._routing = routing
        self._forget_s = forget_s
        self._children: dict[str, Branch] = {}

    def __bool__(self) -> bool:
        return bool(self._children)

    def get(self, topic: str) -> Branch | None:
        return self._children.get(topic)

    def subscribed(self) -> list[str]:
        """The topics to which this node itself subscribes."""
        return [topic for topic, branch in self._children.items() if branch.subscribed]

    def subscribe(self, topic: str, context: Context) -> None:
        branch = self._grown(topic)
        branch.subscribed, branch.confirmed = True, False
        self._steer(branch, context)
        if branch.stands:
            self._stand(branch, context)

    def unsubscribe(self, topic: str, context: Context) -> None:
        branch = self._children.get(topic)
        if branch is not None:
            branch.subscribed = False
            self._prune(branch, context)

    def leave(self, context: Context) -> None:
        """Leave all trees: parents forget this node, and children have to find another parent."""
        for branch in list(self._children.values()):
            branch.subscribed = False
            branch.children.clear()
            self._prune(branch, context)

    def on_join(self, node: int, join: Join, context: Context) -> bool:
        """A node asks to be a child; whether it is a new one."""
        branch = self._grown(join.topic)
        child = branch.children.get(node)
        if child is not None and child.ticket > join.ticket:
            return False
        branch.children[node] = Child(join.ticket, context.now + self._forget_s)
        self._steer(branch, context)
        if branch.stands:
            self._stand(branch, context)
        return child is None

    def on_joined(self, node: int, joined: Joined, context: Context) -> None:
        branch = self._children.get(joined.topic)
        if branch is None or (node, joined.ticket) != (branch.asked, branch.ticket):
            return
        if branch.parent not in (None, node):
            self._leave(branch.parent, branch, context)
        branch.parent = node
        self._stand(branch, context)

    def on_leave(self, node: int, leave: Leave, context: Context) -> None:
        branch = self._children.get(leave.topic)
        child = None if branch is None else branch.children.get(node)
        if branch is not None and child is not None and child.ticket <= leave.ticket:
            del branch.children[node]
            self._prune(branch, context)

    def refuse(self, node: int, topic: str, context: Context) -> None:
        """The node sends a topic in whose tree this node is not: leave it."""
        self._routing.notify(node, Leave(self._routing.ticket(), topic), context)

    def forget_node(self, number: int, context: Context) -> None:
        """The node is dead. Ask for another parent at the next tick: the graph needs a moment."""
        for branch in list(self._children.values()):
            branch.children.pop(number, None)
            if number in (branch.parent, branch.asked):
                branch.parent = branch.asked = None
                branch.stands = False
            self._prune(branch, context)

    def look(self, context: Context) -> None:
        """Routes may have become known, or may have changed."""
        for branch in list(self._children.values()):
            self._steer(branch, context)

    def tick(self, refresh: bool, context: Context) -> None:
        """Forget children without a Join; repeat Joins without confirmation, all of them if a refresh is due."""
        for branch in list(self._children.values()):
            branch.children = {
                node: child for node, child in branch.children.items() if child.until >= context.now
            }
            self._prune(branch, context)
            if branch.topic in self._children:
                self._steer(branch, context, again=refresh or branch.parent != branch.asked)

    def _grown(self, topic: str) -> Branch:
        return self._children.setdefault(topic, Branch(topic))

    def _steer(self, branch: Branch, context: Context, again: bool = False) -> None:
        """Make the next hop to the root the parent."""
        hop = self._routing.next_hop(branch.topic, context)
        if hop is NoHop.UNKNOWN:
            return
        toward = None if isinstance(hop, NoHop) else hop
        if toward != branch.asked:
            if branch.asked != branch.parent:
                self._leave(branch.asked, branch, context)
            branch.asked, branch.ticket, again = toward, self._routing.ticket(), True
        if toward is not None:
            if again:
                self._routing.notify(toward, Join(branch.ticket, branch.topic), context)
            return
        self._leave(branch.parent, branch, context)
        branch.parent = None
        if not branch.stands:
            self._stand(branch, context)

    def _stand(self, branch: Branch, context: Context) -> None:
        branch.stands = True
        if branch.subscribed and not branch.confirmed:
            branch.confirmed = True
            context.do(Subscribed(branch.topic))
        for node, child in branch.children.items():
            if child.waits:
                child.waits = False
                self._routing.notify(node, Joined(child.ticket, branch.topic), context)

    def _prune(self, branch: Branch, context: Context) -> None:
        if branch.subscribed or branch.children:
            return
        del self._children[branch.topic]
        for node in {branch.parent, branch.asked}:
            self._leave(node, branch, context)

    def _leave(self, node: int | None, branch: Branch, context: Context) -> None:
        if node is not None:
            self._routing.notify(node, Leave(branch.ticket, branch.topic), context)
