"""Forwarding of publications through one broker.

A publication goes to the owners of its place and of its topic's point, and from there directly to every broker with a
matching interest, once.

A publication waits if no next node is known, or if its point is owned here but not served yet. If too many without
custody wait, the oldest are dropped. When the map changes, the most urgent go first.
"""

from dataclasses import replace
from typing import NamedTuple

from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.topics.base import Deliver, Duplicate, Send
from nodes.overlay.topics.topic_graph import Context
from nodes.overlay.zorder_map.keys import CurveSpace
from nodes.overlay.zorder_map.levelling import Levelling
from nodes.overlay.zorder_map.member import Member
from nodes.overlay.zorder_map.ownership import Areas, Holdings
from nodes.overlay.zorder_map.registration import OwnInterests
from nodes.overlay.zorder_map.registry import Registry
from nodes.protocol.wire import CUSTODY, Message
from nodes.protocol.zorder_map_messages import RoutingSection, Toward, routing_section

MOST_WAITING = 256  # without custody


class _Waiting(NamedTuple):
    """A publication with its routing section."""

    message: Message
    section: RoutingSection


class Traffic:
    """The publications at one broker."""

    def __init__(
        self,
        member: Member,
        space: CurveSpace,
        areas: Areas,
        holdings: Holdings,
        registry: Registry,
        own: OwnInterests,
        levelling: Levelling,
    ) -> None:
        self._member = member
        self._space = space
        self._areas = areas
        self._holdings = holdings
        self._registry = registry
        self._own = own
        self._levelling = levelling
        self._dedup_window = DedupWindow()
        self._published = DedupWindow()
        self._waiting: list[_Waiting] = []

    def __bool__(self) -> bool:
        """Whether publications wait."""
        return bool(self._waiting)

    def holds(self, message_id: int) -> bool:
        return any(waiting.message.message_id == message_id for waiting in self._waiting)

    def publish(self, message: Message, context: Context) -> None:
        """Send a publication of this broker."""
        attempt = 0 if self._published.add(message.message_id) else self._attempt()
        if message.place:
            self._go(message, RoutingSection(Toward.PLACE, 0, attempt), context)
        self._go(message, RoutingSection(Toward.HOME, 0, attempt), context)

    def on_publication(self, message: Message, context: Context) -> bool:
        """A publication has arrived; False: no interest here matches it. WireError if its routing section is wrong."""
        section = routing_section(message)
        unsent = replace(message, routing=b"")
        if section.toward is Toward.SUBSCRIBER:
            return self._deliver(unsent, context)
        if section.toward is Toward.HOME or message.place:
            self._go(unsent, section, context)
        return True

    def serve_again(self, message: Message, context: Context) -> None:
        """The node to which this was sent is dead: use another route. A dead subscriber needs no publication."""
        section = routing_section(message)
        if section.toward is not Toward.SUBSCRIBER:
            unsent = replace(message, routing=b"", hops=max(message.hops - 1, 0))
            self._go(unsent, RoutingSection(section.toward, 0, self._attempt()), context)

    def _attempt(self) -> int:
        return self._member.next_number() & 0xFFFFFFFF

    def go_on(self, context: Context) -> None:
        """Send the publications that wait: the map may have changed."""
        waiting, self._waiting = self._waiting, []
        for each in sorted(waiting, key=lambda each: -each.message.priority):
            self._go(each.message, each.section, context)

    def _go(self, message: Message, section: RoutingSection, context: Context) -> None:
        point = self._space.point(message, section.toward)
        if point in self._holdings.served:
            self._serve(message, section.toward, point, context)
            return
        hop = self._areas.hop_to(point, section.hops)
        if hop is None:
            self._wait(message, section._replace(hops=0))
        else:
            node, hops = hop
            self._send(node, message, section._replace(hops=hops), context)

    def _serve(self, message: Message, toward: Toward, point: int, context: Context) -> None:
        self._levelling.served(point, context.now)
        for broker in self._registry.matching(message, toward):
            if broker == self._member.number:
                self._deliver(message, context)
            else:
                self._send(broker, message, RoutingSection(Toward.SUBSCRIBER), context)

    def _deliver(self, message: Message, context: Context) -> bool:
        if not self._own.wants(message):
            return False
        new = self._dedup_window.add(message.message_id)
        context.do(Deliver(message) if new else Duplicate(message))
        return True

    def _send(self, node: int, message: Message, section: RoutingSection, context: Context) -> None:
        context.do(Send(node, replace(message.forwarded(), routing=section.written())))

    def _wait(self, message: Message, section: RoutingSection) -> None:
        self._waiting.append(_Waiting(message, section))
        plain = [each for each in self._waiting if not each.message.flags & CUSTODY]
        if len(plain) > MOST_WAITING:
            self._waiting.remove(plain[0])
