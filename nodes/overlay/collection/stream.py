"""A topic whose readings are collected, at one node."""

from collections import deque
from dataclasses import dataclass, field

from nodes.overlay.collection.keys import LONGEST_PERIOD
from nodes.overlay.collection.rhythm import ALIKE, Rhythm
from nodes.overlay.tbps.sg import Flow
from nodes.wire import Message

MOST_KEPT = 64  # readings of a topic that wait for the collector's question
MILLISECONDS = 1000


@dataclass(slots=True)
class Stream(Flow):
    """What a node knows of it."""

    rhythm: Rhythm = field(default_factory=Rhythm)  # of all that comes through here
    own: Rhythm = field(default_factory=Rhythm)  # of own guests
    period: int = LONGEST_PERIOD  # of own guests, in milliseconds, as it stands in the key
    collector: int | None = None  # to whom readings go directly
    kept: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))

    def learn_period(self, now: float) -> bool:
        """Whether own guests publish with another period than the key says."""
        steady = self.own.steady_period(now)
        if steady is None:
            return False
        period = min(max(1, round(steady * MILLISECONDS)), LONGEST_PERIOD)
        if abs(period - self.period) <= ALIKE * max(period, self.period):
            return False
        self.period = period
        return True
