"""The interests that a broker knows of all others, because they may want what happens in its area.

What a broker says about an interest has a version that grows, also from one life of the broker to the next: the newest
counts, in whatever order words come. That an interest is wanted no more is remembered for a while, so that older words
do not bring it back. What is not said again and again is forgotten.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nodes.overlay.interests import Interest, parse
from nodes.overlay.zorder_map.ground import Ground
from nodes.overlay.zorder_map.keys import COORDINATE_BITS
from nodes.overlay.zorder_map.matching import Matching
from nodes.overlay.zorder_map.spans import Spans
from nodes.overlay.zorder_map.words import Entry, Toward
from nodes.wire import Message

UNWANTED_S = 60.0  # so long it is remembered that something is wanted no more
_Name = tuple[int, str]  # of an interest: its broker and its text
LIFE_BITS = 32  # of a version: those of one life of a broker; above them stands the life


@dataclass(slots=True)
class _Known:
    """An entry, and until when it counts."""

    entry: Entry
    interest: Interest
    until: float


class Registry:
    """Of one broker; an interest that is not renewed is forgotten after `keep_s` seconds."""

    def __init__(self, ground: Ground, keep_s: float) -> None:
        self._ground = ground
        self._keep_s = keep_s
        self._topics: dict[str, dict[_Name, _Known]] = {}
        self._boxes: dict[tuple[str, int], Matching[_Name]] = {}  # of a topic, with so many sides
        self._lives: dict[int, int] = {}  # of brokers

    def __len__(self) -> int:
        """How many interests are wanted."""
        return sum(known.entry.wanted for known in self._all())

    def _all(self) -> list[_Known]:
        return [known for those in self._topics.values() for known in those.values()]

    def note(self, entry: Entry, now: float) -> bool:
        """Whether it is news that the interest is wanted; WireError if there is no such interest."""
        interest = parse(entry.text)
        life = entry.version >> LIFE_BITS
        if life > self._lives.get(entry.broker, -1):
            self._lives[entry.broker] = life
            self.forget_before(entry.broker, life << LIFE_BITS)
        before = self._topics.get(interest.topic, {}).get((entry.broker, entry.text))
        newer = before is not None and before.entry.version > entry.version
        if newer or life < self._lives[entry.broker]:
            return False
        until = now + (self._keep_s if entry.wanted else UNWANTED_S)
        name = entry.broker, entry.text
        self._topics.setdefault(interest.topic, {})[name] = _Known(entry, interest, until)
        self._index(name, interest, entry.wanted)
        return entry.wanted and (before is None or not before.entry.wanted)

    def merge(self, entries: Iterable[Entry], now: float) -> None:
        """What another broker knew."""
        for entry in entries:
            self.note(entry, now)

    def matching(self, message: Message, toward: Toward) -> list[int]:
        """The brokers that want this publication, each once: by interests with a box at its place, else by others."""
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
        """What must be known at these points."""
        return tuple(
            known.entry for known in self._all() if self._ground.spans(known.interest).meets(spans)
        )

    def forget(self, broker: int) -> None:
        """It is dead."""
        self._keep(lambda known: known.entry.broker != broker)

    def forget_before(self, broker: int, version: int) -> None:
        """What this broker said before that version."""
        self._keep(lambda known: known.entry.broker != broker or known.entry.version >= version)

    def tidy(self, spans: Spans, now: float) -> None:
        """Forget what is old, and what need not be known at any of these points."""
        self._keep(
            lambda known: known.until > now and self._ground.spans(known.interest).meets(spans)
        )

    def _keep(self, wanted: Callable[[_Known], bool]) -> None:
        for topic, those in list(self._topics.items()):
            for name in [name for name, known in those.items() if not wanted(known)]:
                self._index(name, those.pop(name).interest, wanted=False)
            if not those:
                del self._topics[topic]

    def _index(self, name: _Name, interest: Interest, wanted: bool) -> None:
        """Have the box of an interest among those that are searched, if it is wanted, or not have it there."""
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
