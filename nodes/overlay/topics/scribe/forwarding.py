"""Publications of Scribe on their way through one node: up to the topic's root, and down its tree.

Whatever comes is served once: delivered, and passed on to the children. What somebody is responsible for (custody) is
remembered for a while, so that crashes cost nobody a publication:
- a child that joins meanwhile gets it, too: so those below a dead node get it when they have found another parent;
- a node that took itself for the root, and finds that it is not, passes it on up;
- what was sent up to a node that is dead goes up by another way, past those who have it already. Each such attempt
  has a number, so that nobody passes one on twice.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from nodes.overlay.reliability.dedup import Seen
from nodes.overlay.topics.base import Action, Deliver, Duplicate, Send
from nodes.overlay.topics.scribe.routing import Bearing
from nodes.overlay.topics.scribe.tree import Branches
from nodes.protocol.scribe_messages import Course, Toward, course_of
from nodes.protocol.wire import CUSTODY, Message

MOST_KEPT = 256  # publications; the oldest are forgotten


@dataclass(slots=True)
class _Kept:
    """A publication that was served here, and whether it went no farther up."""

    until: float
    message: Message
    topmost: bool = False


class Traffic:
    """A node's part in it.

    `climb` takes what goes up from here, `heading` tells the next node to a topic's root, `attempt` makes numbers,
    `out` takes what is to be done.
    """

    def __init__(
        self,
        branches: Branches,
        climb: Callable[[Message], None],
        heading: Callable[[str], int | Bearing],
        attempt: Callable[[], int],
        out: Callable[[Action], None],
        keep_s: float,
    ) -> None:
        self._branches = branches
        self._climb = climb
        self._heading = heading
        self._attempt = attempt
        self._out = out
        self._keep_s = keep_s
        self._seen = Seen()
        self._attempts = Seen()
        self._kept: deque[_Kept] = deque(maxlen=MOST_KEPT)
        self._lost: dict[int, float] = {}  # ids of what a dead child had; held until then

    def __bool__(self) -> bool:
        """Whether something is remembered."""
        return bool(self._kept or self._lost)

    def holds(self, message_id: int) -> bool:
        """Whether those below a dead child may still have to find their way to it."""
        return message_id in self._lost

    def publish(self, root: int, own: int, message: Message, now: float) -> None:
        """A publication of the node `own` itself, whose root is known."""
        if root == own:
            self._serve(message, now)
            self._climb(replace(message, routing=Course(Toward.ROOT).written()))
        else:
            self.send(root, message, Course(Toward.ROOT))

    def on_publication(self, sender: int, message: Message, now: float) -> None:
        """One has come; WireError if it does not say where it goes."""
        course = course_of(message)
        new = self._serve(replace(message, routing=b""), now)
        if course.toward is Toward.ROOT:
            if self._attempts.add(course.attempt) if course.attempt else new:
                self._climb(message)
        elif self._branches.get(message.topic) is None:
            self._branches.refuse(sender, message.topic)

    def send(self, node: int, message: Message, course: Course) -> None:
        self._out(Send(node, replace(message.forwarded(), routing=course.written())))

    def on_top(self, message: Message) -> None:
        """It goes no farther up: this node takes itself for the root."""
        for kept in self._kept:
            if kept.message.message_id == message.message_id:
                kept.topmost = True

    def welcome(self, child: int, topic: str) -> None:
        """A new child gets what is remembered."""
        for kept in self._kept:
            if kept.message.topic == topic:
                self.send(child, kept.message, Course(Toward.LEAVES))

    def serve_again(self, message: Message, now: float) -> None:
        """It was sent to a node that is dead."""
        course = course_of(message)
        unsent = replace(message, routing=b"", hops=message.hops - 1)
        if course.toward is Toward.ROOT:
            self._serve(unsent, now)  # this node itself may be the root now
        if all(kept.message.message_id != message.message_id for kept in self._kept):
            self._kept.append(_Kept(now + self._keep_s, unsent))
        if course.toward is Toward.ROOT:
            self._climb_again(unsent)
        else:
            self._lost[message.message_id] = now + self._keep_s / 2

    def tick(self, now: float) -> None:
        """Forget what is old; pass on up what went no farther, if there is a way now."""
        self._lost = {identity: until for identity, until in self._lost.items() if until >= now}
        while self._kept and self._kept[0].until < now:
            self._kept.popleft()
        for kept in list(self._kept):
            if kept.topmost and isinstance(self._heading(kept.message.topic), int):
                kept.topmost = False
                self._climb_again(kept.message)

    def _climb_again(self, message: Message) -> None:
        course = Course(Toward.ROOT, self._attempt())
        self._climb(replace(message, routing=course.written()))

    def _serve(self, message: Message, now: float) -> bool:
        """Deliver, and pass on to the children, what comes for the first time; whether it does."""
        if not self._seen.add(message.message_id):
            self._out(Duplicate(message))
            return False
        if message.flags & CUSTODY:
            self._kept.append(_Kept(now + self._keep_s, message))
        branch = self._branches.get(message.topic)
        if branch is not None:
            if branch.subscribed:
                self._out(Deliver(message))
            for child in branch.children:
                self.send(child, message, Course(Toward.LEAVES))
        return True
