"""The actions and publications to come while a scenario is played: at their times, or when a trigger fires.

Pure: the caller passes the time and the observations, and performs the actions that are returned.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from testbed.scenario.actions.faults import ENDS, PendingActions
from testbed.scenario.compile import publications_of
from testbed.scenario.model import NUMBER, Publication, TimedAction, played_ns, scenario_ns
from testbed.scenario.triggers import Reception, Triggers
from testbed.topology.model import ActionEvent, ActionKind, PublishEvent, Topology, Trigger
from testbed.topology.publication_times import nanoseconds

FIRED, MISSED = "fired", "missed"  # trigger states in the details of a mark


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """An event that waits for a trigger."""

    index: int  # among the publish events, or the action events, of the scenario
    event: PublishEvent | ActionEvent
    trigger: Trigger


def waiting_events(topology: Topology) -> tuple[WaitingEvent, ...]:
    """All events that wait for a trigger."""
    rows: tuple[Sequence[PublishEvent | ActionEvent], ...] = (
        topology.scenario.publish,
        topology.scenario.actions,
    )
    return tuple(
        WaitingEvent(index, event, event.when)
        for row in rows
        for index, event in enumerate(row)
        if event.when is not None
    )


class Schedule:
    """Actions to come, and publications that triggers add. Times are nanoseconds since the start, as played."""

    def __init__(self, topology: Topology, actions: Sequence[TimedAction] | None = None) -> None:
        """`actions`: all actions, known beforehand; then no trigger is waited for."""
        self._topology = topology
        self._known = list(actions or ())
        self._pending = PendingActions(topology)
        scenario = topology.scenario
        self._end_ns = played_ns(nanoseconds(scenario.duration_s), scenario.speed)
        self._waiting_events = waiting_events(topology) if actions is None else ()
        if actions is None:
            for index, event in enumerate(topology.scenario.actions):
                if event.when is None:
                    self._pending.add(index, event)
        waited_for = {number: each.trigger for number, each in enumerate(self._waiting_events)}
        self.triggers = Triggers(waited_for, topology.scenario.speed)
        self.performed: list[TimedAction] = []  # actions that were due until now

    @property
    def next_ns(self) -> int | None:
        """The time of the next known action; None: there is none."""
        coming = [self._known[0].at_ns] if self._known else []
        if (pending := self._pending.next_ns) is not None:
            coming.append(pending)
        return min(coming, default=None)

    def due(self, now_ns: int) -> list[TimedAction]:
        """The actions to perform now, in the order of time."""
        found = []
        while self._known and self._known[0].at_ns <= now_ns:
            found.append(self._known.pop(0))
        found += self._pending.due(now_ns)
        found.sort(key=lambda each: each.at_ns)
        self.performed += found
        return found

    def on_receptions(self, seen: Sequence[Reception], now_ns: int) -> tuple[Publication, ...]:
        """Messages were received: the publications that triggers add. Actions that they add become due."""
        return self._begin(self.triggers.on_receptions(seen), now_ns)

    def on_overlay(self, described: Hashable, now_ns: int) -> tuple[Publication, ...]:
        """The same for the brokers' descriptions of their places in the overlay."""
        return self._begin(self.triggers.on_overlay(described, now_ns), now_ns)

    def close(self, now_ns: int) -> list[TimedAction]:
        """The scenario is over: the ends of actions that last; in a replay, also the actions recorded after the end."""
        begun = {each.details.get(NUMBER) for each in self.performed if each.kind in ENDS}
        ends = [
            replace(each, at_ns=now_ns)
            for each in self._known
            if now_ns >= self._end_ns
            or (each.kind in ENDS.values() and each.details.get(NUMBER) in begun)
        ]
        self._known.clear()
        ends += self._pending.closing(now_ns)
        self.performed += ends
        return ends

    def give_up(self, now_ns: int, *, over: bool = False) -> list[str]:
        """Warnings about triggers that missed their deadline, or, when the scenario is over, that never fired."""
        numbers = self.triggers.left() if over else self.triggers.missed(now_ns)
        for number in numbers:
            self._mark(number, MISSED, now_ns)
        return [
            f"did not fire: {self._waiting_events[number].trigger.describe()}" for number in numbers
        ]

    def _begin(self, numbers: Sequence[int], now_ns: int) -> tuple[Publication, ...]:
        publications: list[Publication] = []
        from_ns = scenario_ns(now_ns, self._topology.scenario.speed)
        for number in numbers:
            self._mark(number, FIRED, now_ns)
            one = self._waiting_events[number]
            if isinstance(one.event, ActionEvent):
                self._pending.add(one.index, one.event, from_ns)
            else:
                begun = replace(one.event, at_s=from_ns / 1e9 + one.event.at_s, when=None)
                publications += publications_of(self._topology, one.index, begun)
        return tuple(publications)

    def _mark(self, number: int, what: str, now_ns: int) -> None:
        details = {
            "name": f"{what}: {self._waiting_events[number].trigger.describe()}",
            "trigger": what,
        }
        self._known.append(TimedAction(now_ns, ActionKind.MARK, (), details))
        self._known.sort(key=lambda each: each.at_ns)
