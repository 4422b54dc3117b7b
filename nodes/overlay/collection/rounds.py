"""What a node does with a collector's question: it passes it on, waits for answers, and answers with all of them.

asked -> open, until all to whom it was passed on have answered or the time is over -> closed
         what comes later goes on to the asker by itself, at once
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from nodes.overlay.collection.courses import Answer
from nodes.wire import Message

MOST_ROUNDS = 256  # the oldest are forgotten


@dataclass(slots=True)
class Round:
    """One question at one node."""

    asker: int
    topic: str
    until: float
    waiting: set[int] = field(default_factory=set)  # nodes to whom the question was passed on
    readings: list[Message] = field(default_factory=list)
    closed: bool = False


class Rounds:
    """All of a node."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._rounds: OrderedDict[Answer, Round] = OrderedDict()

    def asked(
        self, question: Answer, asker: int, topic: str, own: Iterable[Message], now: float
    ) -> None:
        """The question has come from this node; `own` is what there is to answer here."""
        known = self._rounds.get(question)
        if known is not None:  # one part of the question came before another
            known.readings += own
            known.closed = False
            return
        self._rounds[question] = Round(asker, topic, now + self._wait_s, readings=list(own))
        if len(self._rounds) > MOST_ROUNDS:
            self._rounds.popitem(last=False)

    def passed_on(self, question: Answer, node: int) -> None:
        if (one := self._rounds.get(question)) is not None and not one.closed:
            one.waiting.add(node)

    def answered(self, question: Answer, node: int, readings: Iterable[Message]) -> int | None:
        """A node has answered; who is to get that at once, if the question is answered here already.

        None: it waits for the others. KeyError: nobody has asked here.
        """
        one = self._rounds[question]
        if one.closed:
            return one.asker
        one.waiting.discard(node)
        one.readings += readings
        return None

    def lost(self, node: int) -> None:
        """This node answers no more."""
        for one in self._rounds.values():
            one.waiting.discard(node)

    def complete(self, now: float) -> list[tuple[Answer, Round]]:
        """Questions to answer now; they are closed."""
        ready = [
            (question, one)
            for question, one in self._rounds.items()
            if not one.closed and (not one.waiting or now >= one.until)
        ]
        for _, one in ready:
            one.closed = True
        return ready

    def next_deadline(self) -> float | None:
        return min((one.until for one in self._rounds.values() if not one.closed), default=None)
