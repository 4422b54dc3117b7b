"""The trees of Scribe as one node has them: for each topic its children, and the parent that the way to the root names.

A node is in a tree if it subscribes or has children. It asks its parent to be taken in (Join), again each time it
renews; a child that is not heard of for long is forgotten. Joined goes down when the branch stands as far as the root.
A node that is in the tree already passes no Join on. With neither subscription nor children it leaves.

Another parent: the old one is left when the new one has confirmed. Tickets grow, so that a late Leave does not undo
a newer Join.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodes.overlay.topics.scribe.routing import Bearing
from nodes.protocol.scribe_messages import Join, Joined, Leave, ScribeWord


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
    told: bool = False  # that the subscription stands
    stands: bool = False
    parent: int | None = None  # who has confirmed; None: nobody, or this node is the root
    asked: int | None = None  # who is to be the parent
    ticket: int = 0  # of the Join to `asked`
    children: dict[int, Child] = field(default_factory=dict)


class Branches:
    """All of a node. `heading` tells the next node to a topic's root, `confirm` hears of subscriptions that stand,
    `welcome` of new children.
    """

    def __init__(
        self,
        heading: Callable[[str], int | Bearing],
        tell: Callable[[int, ScribeWord], None],
        ticket: Callable[[], int],
        confirm: Callable[[str], None],
        welcome: Callable[[int, str], None],
        forget_s: float,
    ) -> None:
        self._heading = heading
        self._tell = tell
        self._ticket = ticket
        self._confirm = confirm
        self._welcome = welcome
        self._forget_s = forget_s
        self._branches: dict[str, Branch] = {}

    def __bool__(self) -> bool:
        return bool(self._branches)

    def get(self, topic: str) -> Branch | None:
        return self._branches.get(topic)

    def subscribed(self) -> list[str]:
        """The topics that this node wants for itself."""
        return [topic for topic, branch in self._branches.items() if branch.subscribed]

    def subscribe(self, topic: str) -> None:
        branch = self._grown(topic)
        branch.subscribed, branch.told = True, False
        self._steer(branch)
        if branch.stands:
            self._stand(branch)

    def unsubscribe(self, topic: str) -> None:
        branch = self._branches.get(topic)
        if branch is not None:
            branch.subscribed = False
            self._prune(branch)

    def leave(self) -> None:
        """The node goes: parents forget it, and children have to look for another way."""
        for branch in list(self._branches.values()):
            branch.subscribed = False
            branch.children.clear()
            self._prune(branch)

    def on_join(self, node: int, join: Join, now: float) -> None:
        branch = self._grown(join.topic)
        child = branch.children.get(node)
        if child is not None and child.ticket > join.ticket:
            return
        branch.children[node] = Child(join.ticket, now + self._forget_s)
        self._steer(branch)
        if branch.stands:
            self._stand(branch)
        if child is None:
            self._welcome(node, join.topic)

    def on_joined(self, node: int, joined: Joined) -> None:
        branch = self._branches.get(joined.topic)
        if branch is None or (node, joined.ticket) != (branch.asked, branch.ticket):
            return
        if branch.parent not in (None, node):
            self._leave(branch.parent, branch)
        branch.parent = node
        self._stand(branch)

    def on_leave(self, node: int, leave: Leave) -> None:
        branch = self._branches.get(leave.topic)
        child = None if branch is None else branch.children.get(node)
        if branch is not None and child is not None and child.ticket <= leave.ticket:
            del branch.children[node]
            self._prune(branch)

    def refuse(self, node: int, topic: str) -> None:
        """It sends a topic that this node has no branch of."""
        self._tell(node, Leave(self._ticket(), topic))

    def forget_node(self, number: int) -> None:
        """It is dead. Another parent is asked for at the next tick: the graph needs a moment."""
        for branch in list(self._branches.values()):
            branch.children.pop(number, None)
            if number in (branch.parent, branch.asked):
                branch.parent = branch.asked = None
                branch.stands = False
            self._prune(branch)

    def look(self) -> None:
        """Ways may have become known or others."""
        for branch in list(self._branches.values()):
            self._steer(branch)

    def tick(self, renew: bool, now: float) -> None:
        """Forget who was not heard of, ask again who has not confirmed; everybody, if it is time to renew."""
        for branch in list(self._branches.values()):
            branch.children = {
                node: child for node, child in branch.children.items() if child.until >= now
            }
            self._prune(branch)
            if branch.topic in self._branches:
                self._steer(branch, again=renew or branch.parent != branch.asked)

    def _grown(self, topic: str) -> Branch:
        return self._branches.setdefault(topic, Branch(topic))

    def _steer(self, branch: Branch, again: bool = False) -> None:
        """Hold on to the node that the way names."""
        heading = self._heading(branch.topic)
        if heading is Bearing.UNKNOWN:
            return
        toward = None if isinstance(heading, Bearing) else heading
        if toward != branch.asked:
            if branch.asked != branch.parent:
                self._leave(branch.asked, branch)
            branch.asked, branch.ticket, again = toward, self._ticket(), True
        if toward is not None:
            if again:
                self._tell(toward, Join(branch.ticket, branch.topic))
            return
        self._leave(branch.parent, branch)
        branch.parent = None
        if not branch.stands:
            self._stand(branch)

    def _stand(self, branch: Branch) -> None:
        branch.stands = True
        if branch.subscribed and not branch.told:
            branch.told = True
            self._confirm(branch.topic)
        for node, child in branch.children.items():
            if child.waits:
                child.waits = False
                self._tell(node, Joined(child.ticket, branch.topic))

    def _prune(self, branch: Branch) -> None:
        if branch.subscribed or branch.children:
            return
        del self._branches[branch.topic]
        for node in {branch.parent, branch.asked}:
            self._leave(node, branch)

    def _leave(self, node: int | None, branch: Branch) -> None:
        if node is not None:
            self._tell(node, Leave(branch.ticket, branch.topic))
