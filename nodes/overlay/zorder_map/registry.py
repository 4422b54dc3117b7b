"""The registry: interests of all brokers that match publications in this broker's area.

Each registration of an interest has a version that grows, also from one incarnation of its broker to the next: the
newest counts, in whatever order the messages come. A cancelled interest is remembered for a while, so that older
messages do not bring it back. An interest that is not refreshed is forgotten.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from nodes.overlay.zorder_map.curve import Cell, cells, interleave
from nodes.overlay.zorder_map.keys import COORDINATE_BITS, CurveSpace
from nodes.protocol.interests import Interest, parse
from nodes.protocol.regions import Box, Point, Spans
from nodes.protocol.wire import Message
from nodes.protocol.zorder_map_messages import Entry, Toward

# Matching: the boxes that contain a point. Subscriptions are stored by the Z-order cells that they cover.
#
# A few cells that do not overlap cover a box. A point lies in one cell of each size, so matching takes one table lookup
# for each size, and finds no box twice. Boxes that fill such a cell contain the point. Boxes that only overlap the cell
# are compared one by one, in all dimensions with one addition: it subtracts the low corner from the point and the point
# from the high corner. Each coordinate has a spare bit, which stays set if the subtraction did not borrow it.


# More cells of a box take memory, fewer cause more comparisons. A box is cut into at most so many cells,
MOST_CELLS = 32
# and only while a cell has more foreign points than the box has points, or than this share of the space.
FOREIGN_SHARE = 2**-11

Subscriber = TypeVar("Subscriber", bound=Hashable)


class _Table(NamedTuple, Generic[Subscriber]):
    """Cells of one size, by prefix: subscribers whose box fills a cell, or overlaps it (with the box's corners)."""

    filling: dict[int, dict[Subscriber, None]]
    reaching: dict[int, dict[Subscriber, int]]


class Matching(Generic[Subscriber]):
    """The boxes of all subscribers, one each."""

    def __init__(self, dimensions: int, bits: int, most_cells: int = MOST_CELLS) -> None:
        self._dimensions = dimensions
        self._bits = bits
        self._most_cells = most_cells
        self._spare = int(FOREIGN_SHARE * 2 ** (dimensions * bits))
        self._width = (bits + 1) * dimensions
        self._spares = sum(1 << (bits + 1) * each + bits for each in range(dimensions))
        self._boxes: dict[Subscriber, Box] = {}
        self._tables: dict[int, _Table[Subscriber]] = {}  # shift ->

    @property
    def boxes(self) -> Mapping[Subscriber, Box]:
        """All subscriptions."""
        return MappingProxyType(self._boxes)

    @property
    def cells(self) -> int:
        """The number of occupied cells, to which the memory of the index is proportional."""
        return sum(len(table) for tables in self._tables.values() for table in tables)

    def add(self, subscriber: Subscriber, box: Box) -> None:
        """Subscribe to a box, instead of the subscriber's former one."""
        corners = (self._packed(box.high) | self._spares) - (self._packed(box.low) << self._width)
        covered = self._covered(box)
        if subscriber in self._boxes:
            self.remove(subscriber)
        self._boxes[subscriber] = box
        for shift, prefix, inside in covered:
            table = self._tables.get(shift) or self._tables.setdefault(shift, _Table({}, {}))
            if inside:
                table.filling.setdefault(prefix, {})[subscriber] = None
            else:
                table.reaching.setdefault(prefix, {})[subscriber] = corners

    def remove(self, subscriber: Subscriber) -> None:
        """End the subscription; KeyError if there is none."""
        for shift, prefix, inside in self._covered(self._boxes.pop(subscriber)):
            table = self._tables[shift]
            by_prefix = table.filling if inside else table.reaching
            del by_prefix[prefix][subscriber]
            if not by_prefix[prefix]:
                del by_prefix[prefix]
            if not (table.filling or table.reaching):
                del self._tables[shift]

    def match(self, point: Point) -> list[Subscriber]:
        """The subscribers whose boxes contain the point: each once, in no order."""
        z = interleave(point, self._bits)
        here = self._packed(point)
        around = ((here | self._spares) << self._width) - here
        spares = self._spares << self._width | self._spares
        found: list[Subscriber] = []
        for shift, (filling, reaching) in self._tables.items():
            prefix = z >> shift
            if prefix in filling:
                found += filling[prefix]
            if prefix in reaching:
                near = reaching[prefix].items()
                found += [
                    subscriber
                    for subscriber, corners in near
                    if (around + corners) & spares == spares
                ]
        return found

    def _covered(self, box: Box) -> list[Cell]:
        return cells(box, self._bits, self._most_cells, min(self._spare, box.size))

    def _packed(self, point: Point) -> int:
        """The coordinates side by side, with a spare bit in front of each."""
        if len(point) != self._dimensions:
            raise ValueError(
                f"{point} is of another space: this one has {self._dimensions} dimensions"
            )
        packed = 0
        for coordinate in point:
            packed = packed << self._bits + 1 | coordinate
        return packed


UNWANTED_S = 60.0  # for so long the registry remembers a cancelled interest
_Name = tuple[int, str]  # of an interest: its broker and its text
INCARNATION_BITS = 32  # low bits of a version; the bits above them are the broker's incarnation


@dataclass(slots=True)
class _Known:
    """An entry with its expiry time."""

    entry: Entry
    interest: Interest
    until: float


class Registry:
    """The registry of one broker; an interest that is not refreshed is forgotten after `keep_s` seconds."""

    def __init__(self, space: CurveSpace, keep_s: float) -> None:
        self._space = space
        self._keep_s = keep_s
        self._topics: dict[str, dict[_Name, _Known]] = {}
        self._boxes: dict[tuple[str, int], Matching[_Name]] = {}  # by topic and dimensions
        self._lives: dict[int, int] = {}  # broker -> incarnation

    def __len__(self) -> int:
        """The number of interests that are not cancelled."""
        return sum(known.entry.wanted for known in self._all())

    def _all(self) -> list[_Known]:
        return [known for those in self._topics.values() for known in those.values()]

    def note(self, entry: Entry, now: float) -> bool:
        """Record an entry; whether the interest is new. WireError if the text is no valid interest."""
        interest = parse(entry.text)
        incarnation = entry.version >> INCARNATION_BITS
        if incarnation > self._lives.get(entry.broker, -1):
            self._lives[entry.broker] = incarnation
            self.forget_before(entry.broker, incarnation << INCARNATION_BITS)
        before = self._topics.get(interest.topic, {}).get((entry.broker, entry.text))
        newer = before is not None and before.entry.version > entry.version
        if newer or incarnation < self._lives[entry.broker]:
            return False
        until = now + (self._keep_s if entry.wanted else UNWANTED_S)
        name = entry.broker, entry.text
        self._topics.setdefault(interest.topic, {})[name] = _Known(entry, interest, until)
        self._index(name, interest, entry.wanted)
        return entry.wanted and (before is None or not before.entry.wanted)

    def merge(self, entries: Iterable[Entry], now: float) -> None:
        """Record the entries of another broker's registry."""
        for entry in entries:
            self.note(entry, now)

    def matching(self, message: Message, toward: Toward) -> list[int]:
        """The brokers that want this publication, each once: by interests with a box at its place, or without a box."""
        those = self._topics.get(message.topic, {})
        if toward is Toward.PLACE:
            boxes = self._boxes.get((message.topic, len(message.place)))
            found = [] if boxes is None else [those[name] for name in boxes.match(message.place)]
        else:
            found = [known for known in those.values() if known.interest.box is None]
        return sorted(
            {
                known.entry.broker
                for known in found
                if known.entry.wanted and known.interest.wants(message)
            }
        )

    def meeting(self, spans: Spans) -> tuple[Entry, ...]:
        """The entries that must be known at these points."""
        return tuple(
            known.entry for known in self._all() if self._space.spans(known.interest).meets(spans)
        )

    def forget(self, broker: int) -> None:
        """Forget the entries of a dead broker."""
        self._keep(lambda known: known.entry.broker != broker)

    def forget_before(self, broker: int, version: int) -> None:
        """Forget this broker's entries before that version."""
        self._keep(lambda known: known.entry.broker != broker or known.entry.version >= version)

    def tidy(self, spans: Spans, now: float) -> None:
        """Forget expired entries, and those that need not be known at any of these points."""
        self._keep(
            lambda known: known.until > now and self._space.spans(known.interest).meets(spans)
        )

    def _keep(self, wanted: Callable[[_Known], bool]) -> None:
        for topic, those in list(self._topics.items()):
            for name in [name for name, known in those.items() if not wanted(known)]:
                self._index(name, those.pop(name).interest, wanted=False)
            if not those:
                del self._topics[topic]

    def _index(self, name: _Name, interest: Interest, wanted: bool) -> None:
        """Add the box of an interest to the index, or remove it if the interest is not wanted."""
        if interest.box is None:
            return
        of = interest.topic, len(interest.box.low)
        boxes = self._boxes.get(of) or Matching(of[1], COORDINATE_BITS)
        if wanted:
            boxes.add(name, interest.box)
        elif name in boxes.boxes:
            boxes.remove(name)
        if boxes.boxes:
            self._boxes[of] = boxes
        else:
            self._boxes.pop(of, None)
