"""Messages of a run by time and kind, and whether every publication came to those it was owed to."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nodes.overlay.skipgraph.codec import FORMS
from nodes.overlay.skipgraph.messages import Carry, Multicast, Tell
from nodes.wire import Kind, Message
from testbed.protocol_runs.plan import Stopping

PUBLICATION, WORD, CONTROL = "publication", "word", "control"
KINDS = (PUBLICATION, WORD, CONTROL)
NEVER = float("inf")
STAY_MS = (
    900  # a part that was sent to one who has just left must find its way: up to 620 ms were seen
)
_WORDS = {number for number, (kind, _) in FORMS.items() if kind in (Carry, Tell, Multicast)}


def kind_of(message: Message) -> str:
    """A publication; a word about a topic (stop, go, join, leave, questions after them); or the graph's own care."""
    if message.kind is Kind.PUBLISH:
        return PUBLICATION
    return WORD if message.payload[0] in _WORDS else CONTROL


@dataclass(slots=True)
class _Publication:
    made: float
    receivers: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Record:
    """What is noted while it runs; times in ms from the beginning."""

    plan: Stopping
    messages: Counter[tuple[int, str]] = field(default_factory=Counter)
    publications: dict[int, _Publication] = field(default_factory=dict)
    withheld: set[int] = field(default_factory=set)
    stays: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # confirmed, left

    def sent(self, kind: str, at_ms: float, messages: int = 1) -> None:
        self.messages[int(at_ms // self.plan.bin_ms), kind] += messages

    def made(self, identity: int, at_ms: float) -> None:
        self.publications[identity] = _Publication(at_ms)

    def confirmed(self, subscriber: int, at_ms: float) -> None:
        self.stays.setdefault(subscriber, []).append((at_ms, NEVER))

    def left(self, subscriber: int, at_ms: float) -> None:
        """It may leave before it was confirmed."""
        if (stays := self.stays.get(subscriber)) and stays[-1][1] == NEVER:
            stays[-1] = stays[-1][0], at_ms

    def owed_and_lost(self) -> tuple[int, int]:
        """Deliveries to subscribers that were confirmed before it was made, and stayed long enough to get it."""
        owed = lost = 0
        for publication in self.publications.values():
            until = publication.made + STAY_MS
            for subscriber, stays in self.stays.items():
                if any(begin <= publication.made and until < end for begin, end in stays):
                    owed += 1
                    lost += subscriber not in publication.receivers
        return owed, lost

    def rows(self, method: str) -> Iterator[dict[str, Any]]:
        """A row for each kind and bin, empty ones too."""
        plan = self.plan
        for kind in KINDS:
            for place in range(plan.end_ms // plan.bin_ms):
                yield {
                    "method": method,
                    "publishers": plan.publishers,
                    "nodes": plan.nodes,
                    "trial": plan.trial,
                    "kind": kind,
                    "t_ms": place * plan.bin_ms,
                    "messages": self.messages[place, kind],
                }

    def totals(self, method: str) -> dict[str, Any]:
        """One row for the run."""
        owed, lost = self.owed_and_lost()
        return {
            "method": method,
            "publishers": self.plan.publishers,
            "nodes": self.plan.nodes,
            "trial": self.plan.trial,
            "publications": len(self.publications),
            "withheld": len(self.withheld),
            "owed": owed,
            "lost": lost,
        }
