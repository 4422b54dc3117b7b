"""Publications on their way through one broker: to the owner of their place and of their topic's home, and from there
straight to every broker that wants them, once.

A publication that no node is known for, or whose point is owned here but not served yet, waits; of those without
custody the oldest are forgotten when there are too many. Of those that wait, the most urgent go first.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from nodes.overlay.reliability.dedup import Seen
from nodes.overlay.topics.base import Action, Deliver, Duplicate, Send
from nodes.overlay.zorder_map.keys import Ground
from nodes.overlay.zorder_map.ownership import Areas, Holdings
from nodes.overlay.zorder_map.registration import Registering
from nodes.overlay.zorder_map.registry import Registry
from nodes.protocol.wire import CUSTODY, Message
from nodes.protocol.zorder_map_messages import Course, Toward, course_of

MOST_WAITING = 256  # without custody


class _Waiting(NamedTuple):
    """A publication, and where it goes."""

    message: Message
    course: Course


class Traffic:
    """A broker's part in it. `attempt` makes numbers, `served` is told of what is matched, and where."""

    def __init__(
        self,
        number: int,
        ground: Ground,
        areas: Areas,
        holdings: Holdings,
        registry: Registry,
        own: Registering,
        attempt: Callable[[], int],
        served: Callable[[int], None],
        out: Callable[[Action], None],
    ) -> None:
        self._number = number
        self._ground = ground
        self._areas = areas
        self._holdings = holdings
        self._registry = registry
        self._own = own
        self._attempt = attempt
        self._served = served
        self._out = out
        self._seen = Seen()
        self._published = Seen()
        self._waiting: list[_Waiting] = []

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._waiting)

    def holds(self, message_id: int) -> bool:
        return any(waiting.message.message_id == message_id for waiting in self._waiting)

    def publish(self, message: Message) -> None:
        """One of this broker's own."""
        attempt = 0 if self._published.add(message.message_id) else self._attempt()
        if message.place:
            self._go(message, Course(Toward.PLACE, 0, attempt))
        self._go(message, Course(Toward.HOME, 0, attempt))

    def on_publication(self, message: Message) -> bool:
        """One has come; False: nobody here wants it. WireError if it does not say where it goes."""
        course = course_of(message)
        unsent = replace(message, routing=b"")
        if course.toward is Toward.SUBSCRIBER:
            return self._deliver(unsent)
        if course.toward is Toward.HOME or message.place:
            self._go(unsent, course)
        return True

    def serve_again(self, message: Message) -> None:
        """It was sent to a node that is dead: by another way. A subscriber that is dead needs it no more."""
        course = course_of(message)
        if course.toward is not Toward.SUBSCRIBER:
            unsent = replace(message, routing=b"", hops=max(message.hops - 1, 0))
            self._go(unsent, Course(course.toward, 0, self._attempt()))

    def go_on(self) -> None:
        """With what waits: the map may have changed."""
        waiting, self._waiting = self._waiting, []
        for each in sorted(waiting, key=lambda each: -each.message.priority):
            self._go(each.message, each.course)

    def _go(self, message: Message, course: Course) -> None:
        point = self._ground.point(message, course.toward)
        if point in self._holdings.served:
            self._serve(message, course.toward, point)
            return
        hop = self._areas.hop_to(point, course.hops)
        if hop is None:
            self._wait(message, course._replace(hops=0))
        else:
            node, hops = hop
            self._send(node, message, course._replace(hops=hops))

    def _serve(self, message: Message, toward: Toward, point: int) -> None:
        self._served(point)
        for broker in self._registry.matching(message, toward):
            if broker == self._number:
                self._deliver(message)
            else:
                self._send(broker, message, Course(Toward.SUBSCRIBER))

    def _deliver(self, message: Message) -> bool:
        if not self._own.wants(message):
            return False
        new = self._seen.add(message.message_id)
        self._out(Deliver(message) if new else Duplicate(message))
        return True

    def _send(self, node: int, message: Message, course: Course) -> None:
        self._out(Send(node, replace(message.forwarded(), routing=course.written())))

    def _wait(self, message: Message, course: Course) -> None:
        self._waiting.append(_Waiting(message, course))
        plain = [each for each in self._waiting if not each.message.flags & CUSTODY]
        if len(plain) > MOST_WAITING:
            self._waiting.remove(plain[0])
