"""What a node does with a collector's question: it passes it on, waits for answers, and answers with all of them.

heard -> open, until all to whom it was passed on have answered or the time is over -> closed
         what comes later goes on to the asker by itself, at once

Whoever brought the question first is answered, also if it only passed through here, and is for this node later or
never: each has heard of it before those whose answers it waits for, so that no answer goes in circles.
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
    until: float
    waiting: set[int] = field(default_factory=set)  # nodes to whom the question was passed on
    readings: list[Message] = field(default_factory=list)
    closed: bool = False


class Rounds:
    """All of a node."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._rounds: OrderedDict[Answer, Round] = OrderedDict()

    def heard(self, question: Answer, asker: int, now: float) -> None:
        """The question has come from this node, for this one or on its way to others."""
        if question not in self._rounds:
            self._rounds[question] = Round(asker, now + self._wait_s)
            if len(self._rounds) > MOST_ROUNDS:
                self._rounds.popitem(last=False)

    def asked(self, question: Answer, own: Iterable[Message]) -> None:
        """It was heard, and is for this node, too; `own` is what there is to answer here."""
        one = self._rounds[question]
        one.readings += own
        one.closed = False  # one part of the question may have come before another

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
