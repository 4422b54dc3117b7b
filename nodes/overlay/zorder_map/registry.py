"""The interests that a broker knows of all others, because they may want what happens in its area.

What a broker says about an interest has a version that grows, also from one life of the broker to the next: the newest
counts, in whatever order words come. That an interest is wanted no more is remembered for a while, so that older words
do not bring it back. What is not said again and again is forgotten.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nodes.overlay.interests import Interest, parse
from nodes.overlay.zorder_map.ground import Ground
from nodes.overlay.zorder_map.spans import Spans
from nodes.overlay.zorder_map.words import Entry, Toward
from nodes.wire import Message

UNWANTED_S = 60.0  # so long it is remembered that something is wanted no more
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
        self._topics: dict[str, dict[tuple[int, str], _Known]] = {}
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
        those = self._topics.setdefault(interest.topic, {})
        those[entry.broker, entry.text] = _Known(entry, interest, until)
        return entry.wanted and (before is None or not before.entry.wanted)

    def merge(self, entries: Iterable[Entry], now: float) -> None:
        """What another broker knew."""
        for entry in entries:
            self.note(entry, now)

    def matching(self, message: Message, toward: Toward) -> list[int]:
        """The brokers that want this publication, each once: by interests with a box at its place, else by others."""
        boxed = toward is Toward.PLACE
        return sorted(
            {
                known.entry.broker
                for known in self._topics.get(message.topic, {}).values()
                if known.entry.wanted
                and (known.interest.box is not None) == boxed
                and known.interest.wants(message)
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
            kept = {name: known for name, known in those.items() if wanted(known)}
            if kept:
                self._topics[topic] = kept
            else:
                del self._topics[topic]
