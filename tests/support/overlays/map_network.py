"""Brokers of the Z-order map in virtual time, in a space of few points, and which broker serves each point.

Places lie on a grid of 8 by 8, so that events and areas often meet at the same point.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from nodes.overlay.zorder_map.curve import interleave
from nodes.protocol.interests import Interest, parse
from nodes.protocol.regions import Box, Spans
from nodes.protocol.wire import Kind, Message, message_id
from support.overlays.topic_network import FAREWELL_S, TopicNetwork

SIDE = 8
STEP = 1 << 29  # between two points of the grid
BITS = 32
Cell = tuple[int, int]
ALL_CELLS: tuple[Cell, ...] = tuple((x, y) for x in range(SIDE) for y in range(SIDE))


def place_of(cell: Cell) -> tuple[int, int]:
    """The coordinates of the cell on the wire."""
    return cell[0] * STEP, cell[1] * STEP


def point_of(cell: Cell) -> int:
    """The position of the cell on the curve."""
    return interleave(place_of(cell), BITS)


def box_of(low: Cell, high: Cell) -> Box:
    """The box between two cells, whichever corners they are."""
    least = min(low[0], high[0]), min(low[1], high[1])
    most = max(low[0], high[0]), max(low[1], high[1])
    return Box(place_of(least), place_of(most))


class MapNetwork(TopicNetwork):
    """Brokers by number; every broker joins through the others."""

    def __init__(self, seed: int, parameters: Mapping[str, Any] | None = None, **how: Any) -> None:
        super().__init__("zorder-map", seed, {"level_s": 0, **(parameters or {})}, **how)
        self.points = [point_of(cell) for cell in ALL_CELLS]
        self.most_servers = 0  # of one point at one moment
        self._leaving: set[int] = set()
        self._left_at: dict[int, float] = {}
        self._served: dict[int, Spans] = {}  # the spans of each broker at the last check

    def act(self, number: int, actions: Iterable[Any]) -> None:
        super().act(number, actions)
        served = self.nodes[number].holdings.served
        if self._served.get(number) != served:
            self._served[number] = served
            self.most_servers = max(self.most_servers, *map(len, self.servers().values()))
        if number in self._leaving and self.nodes[number].left:
            self._left_at.setdefault(number, self.now)

    def run(self, seconds: float) -> None:
        super().run(seconds)
        for number, left_at in list(self._left_at.items()):
            if left_at + FAREWELL_S < self.now:
                self._leaving.discard(number)
                del self._left_at[number]
                self.crash(number)

    def servers(self) -> dict[int, list[int]]:
        """The brokers that serve each point."""
        served = {number: node.holdings.served for number, node in self.nodes.items()}
        return {
            point: [number for number, spans in served.items() if point in spans]
            for point in self.points
        }

    def present(self) -> list[int]:
        """Brokers that run and are not about to leave."""
        return [number for number in self.nodes if number not in self._leaving]

    def join(self, number: int) -> None:
        self.start(number, sorted(self.present())[:3])

    def leave(self, number: int) -> None:
        """Let a broker leave in order. It still answers brokers that do not know so yet, and stops a while later."""
        self.subscribed = {entry for entry in self.subscribed if entry[0] != number}
        self._leaving.add(number)
        self.act(number, self.nodes[number].leave(self.now))

    def move(self, number: int, cell: Cell) -> None:
        self.act(number, self.nodes[number].move_to(point_of(cell), self.now))

    def publish_at(
        self, number: int, topic: str, cell: Cell | None, priority: int = 3, flags: int = 0
    ) -> Message:
        """Publish; `cell` is the place of the event, if it has one."""
        self._published += 1
        message = Message(
            Kind.PUBLISH,
            priority,
            0,
            flags,
            origin=number,
            message_id=message_id(number, self._published),
            topic=topic,
            place=() if cell is None else place_of(cell),
        )
        node = self.nodes[number]
        self.act(number, node.advertise(topic, self.now))
        self.act(number, node.publish(message, self.now))
        return message

    def wanting(self, message: Message) -> set[int]:
        """The brokers whose confirmed interests match, found by comparing all of them."""
        return {number for number, text in self.subscribed if parse(text).wants(message)}

    def unknown(self) -> list[tuple[int, str, int]]:
        """Confirmed interests that a server of one of their points does not know: broker, interest, point."""
        servers = self.servers()
        return [
            (broker, text, point)
            for broker, text in sorted(self.subscribed)
            for point in self._points_of(parse(text))
            for server in servers[point]
            if (broker, text) not in known_by(self.nodes[server])
        ]

    def _points_of(self, interest: Interest) -> list[int]:
        if interest.box is None:
            return []
        places = [place_of(cell) for cell in ALL_CELLS]
        return [interleave(place, BITS) for place in places if interest.box.contains(place)]


def known_by(node: Any) -> set[tuple[int, str]]:
    """The interests in the registry of a broker: whose they are, and which."""
    everywhere = node.registry.meeting(node.holdings.concerned())
    return {(entry.broker, entry.text) for entry in everywhere if entry.wanted}
