"""Triggers, for which events of a scenario wait: observations in, triggers that fire out.

Pure, and the same for real labs and virtual time: all times are nanoseconds since the scenario's start, as played.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from testbed.scenario.model import played_ns
from testbed.topology.model import Trigger, TriggerKind
from testbed.topology.publication_times import nanoseconds

_CHANGES_ALWAYS = (
    "load",
    "interests",
)  # keys of a broker's description that change without a change of its place


@dataclass(frozen=True, slots=True)
class Reception:
    """A message was handed to the application of this node."""

    at_ns: int
    node: str
    level: int
    topic: str
    delay_ns: int


def reception(line: Mapping[str, Any], start_ns: int) -> Reception | None:
    """The reception that a line of a node's log records; None for other lines, and before the scenario's start."""
    if line.get("event") != "receive" or line["t"] < start_ns:
        return None
    at_ns = int(line["t"])
    return Reception(
        at_ns - start_ns,
        line["node"],
        line["priority"],
        line["topic"],
        at_ns - int(line["published_ns"]),
    )


def place_in_overlay(description: Mapping[str, Any]) -> Hashable:
    """A broker's description of its neighbours, in a form that can be compared."""
    graph = description.get("graph", description)
    return repr({key: graph[key] for key in sorted(graph) if key not in _CHANGES_ALWAYS})


class _PendingTrigger:
    """One trigger that has not fired."""

    def __init__(self, trigger: Trigger, speed: float) -> None:
        self.trigger = trigger
        within_s = trigger.within_s
        self.deadline_ns = None if within_s is None else played_ns(nanoseconds(within_s), speed)
        self._over_ns = max(1, played_ns(nanoseconds(trigger.over_s), speed))
        self._quiet_ns = max(1, played_ns(nanoseconds(trigger.quiet_s), speed))
        self._above_ns = nanoseconds(trigger.above_s)  # delays are not divided by the speed
        self._count = 0
        self._recent: deque[tuple[int, int]] = deque()  # (time, delay)
        self._delays: list[int] = []  # the same delays, sorted
        self._overlay: Hashable = None
        self._since_ns = 0

    def on_reception(self, seen: Reception) -> bool:
        """Whether the trigger fires with this reception."""
        trigger = self.trigger
        if (
            (trigger.nodes and seen.node not in trigger.nodes)
            or seen.level < trigger.level
            or trigger.topic not in (None, seen.topic)
        ):
            return False
        if trigger.kind is TriggerKind.RECEIVED:
            self._count += 1
            return self._count >= trigger.count
        return trigger.kind is TriggerKind.DELAY and self._too_slow(seen)

    def _too_slow(self, seen: Reception) -> bool:
        """Whether the percentile (nearest rank) of the recent delays is above the limit."""
        self._recent.append((seen.at_ns, seen.delay_ns))
        insort(self._delays, seen.delay_ns)
        while self._recent[0][0] <= seen.at_ns - self._over_ns:
            _, gone = self._recent.popleft()
            del self._delays[bisect_left(self._delays, gone)]
        rank = max(1, ceil(self.trigger.percentile / 100 * len(self._delays)))
        return self._delays[rank - 1] > self._above_ns

    def on_overlay(self, described: Hashable, now_ns: int) -> bool:
        """Whether no broker's place has changed for long enough."""
        if self.trigger.kind is not TriggerKind.STABLE:
            return False
        if described != self._overlay:
            self._overlay, self._since_ns = described, now_ns
        return described is not None and now_ns - self._since_ns >= self._quiet_ns


class Triggers:
    """All triggers that have neither fired nor missed their deadline, by the number of the event."""

    def __init__(self, awaited: Mapping[int, Trigger], speed: float) -> None:
        self._waiting = {number: _PendingTrigger(each, speed) for number, each in awaited.items()}

    def __bool__(self) -> bool:
        """Whether a trigger is left."""
        return bool(self._waiting)

    @property
    def watches_overlay(self) -> bool:
        """Whether a trigger needs the brokers' descriptions."""
        return any(one.trigger.kind is TriggerKind.STABLE for one in self._waiting.values())

    def on_receptions(self, seen: Sequence[Reception]) -> list[int]:
        """The events whose triggers fire with these receptions, in the order of time."""
        ordered = sorted(seen, key=lambda each: (each.at_ns, each.node))
        return [number for each in ordered for number in self._fired("on_reception", each)]

    def on_overlay(self, described: Hashable, now_ns: int) -> list[int]:
        """The events whose triggers fire with these places of all brokers; None: a broker did not answer."""
        return self._fired("on_overlay", described, now_ns)

    def missed(self, now_ns: int) -> list[int]:
        """Remove and return the events whose deadline has passed."""
        late = [
            number
            for number, one in self._waiting.items()
            if one.deadline_ns is not None and one.deadline_ns <= now_ns
        ]
        for number in late:
            del self._waiting[number]
        return late

    def left(self) -> list[int]:
        """Remove and return the events whose triggers never fired."""
        numbers = list(self._waiting)
        self._waiting.clear()
        return numbers

    def _fired(self, method: str, *seen: Any) -> list[int]:
        found = [number for number, one in self._waiting.items() if getattr(one, method)(*seen)]
        for number in found:
            del self._waiting[number]
        return found
