"""A scenario in virtual time, from the first packet until what is under way has come."""

import json
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from nodes.runtime.lifecycle import HAND_OVER_S
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND, Timer
from testbed.backends.simulated.node import EPOCH_NS
from testbed.errors import NodeFailure, TestbedError, few
from testbed.recording.actions import FAILED, action_entry
from testbed.recording.deliveries import UnderWay
from testbed.recording.script import Script, compiled
from testbed.scenario import (
    Publication,
    TimedAction,
    expected_with_downtimes,
    unreachable_at_the_end,
    without_downtimes,
)
from testbed.scenario.schedule import Schedule
from testbed.scenario.triggers import Reception, place_in_overlay, reception
from testbed.topology.model import NodeKind

# Faults of a lab in virtual time: at their time, or when their trigger has come.


LOG_CHECK_INTERVAL = SECOND // 50  # how often logs are read, as in a real lab
OVERLAY_CHECK_INTERVAL = SECOND  # how often brokers are asked
_MARK = '"receive"'


class TimelinePlayer:
    """Applies faults, and records their outcomes."""

    def __init__(self, lab: SimulatedLab, start: int, schedule: Schedule, end: int) -> None:
        self._lab = lab
        self._start = start
        self._end = end
        self._schedule = schedule
        self._read = {name: len(node.log.lines) for name, node in lab.nodes.items()}
        self._asked = start - OVERLAY_CHECK_INTERVAL
        self.done: list[dict[str, Any]] = []
        self.missed: list[str] = []  # sentences on triggers that never came
        self.published: list[Publication] = []  # because of triggers
        self._timer = Timer(lab.loop, self._on_time)
        if schedule.triggers:
            lab.loop.at(start + LOG_CHECK_INTERVAL, self._on_check, None)
        self._wait()

    def give_up(self) -> None:
        """The scenario is over."""
        now_ns = self._lab.loop.now - self._start
        self.missed += self._schedule.give_up(now_ns, over=True)
        self._apply_due()
        for action in self._schedule.close(now_ns):
            self._apply(action)

    def _wait(self) -> None:
        """Set the timer to the next fault."""
        if (next_ns := self._schedule.next_ns) is not None:
            self._timer.set(max(self._lab.loop.now, self._start + next_ns))

    def _on_time(self) -> None:
        if self._lab.loop.now < self._end:
            self._apply_due()
            self._wait()

    def _apply_due(self) -> None:
        for action in self._schedule.due(self._lab.loop.now - self._start):
            self._apply(action)

    def _apply(self, action: TimedAction) -> None:
        """Apply it now; record the reason if it fails, and go on."""
        more = {}
        try:
            self._lab.apply(action)
        except TestbedError as error:
            more[FAILED] = error.message
        now = EPOCH_NS + self._lab.loop.now
        self.done.append(action_entry(action, EPOCH_NS + self._start, now, **more))

    def _on_check(self, _: None) -> None:
        """Check whether a trigger has come."""
        lab, schedule = self._lab, self._schedule
        now_ns = lab.loop.now - self._start
        more = schedule.on_receptions(self._receptions(), now_ns)
        if (
            schedule.triggers.watches_overlay
            and lab.loop.now - self._asked >= OVERLAY_CHECK_INTERVAL
        ):
            self._asked = lab.loop.now
            more += schedule.on_overlay(self._overlay(), now_ns)
        if more:
            self.published += more
            lab.play(more, self._start, more=True)
        self.missed += schedule.give_up(now_ns)
        self._on_time()
        if schedule.triggers and lab.loop.now + LOG_CHECK_INTERVAL < self._end:
            lab.loop.at(lab.loop.now + LOG_CHECK_INTERVAL, self._on_check, None)

    def _receptions(self) -> list[Reception]:
        found = []
        for node in self._lab.topology.of_kind(NodeKind.SUBSCRIBER):
            lines = self._lab.nodes[node.name].log.lines
            new, self._read[node.name] = lines[self._read[node.name] :], len(lines)
            records = (json.loads(line) for line in new if _MARK in line)
            seen = (reception(record, EPOCH_NS + self._start) for record in records)
            found += [each for each in seen if each is not None]
        return found

    def _overlay(self) -> Hashable:
        brokers = self._lab.topology.of_kind(NodeKind.BROKER)
        alive = [node.name for node in brokers if self._lab.nodes[node.name].alive]
        places = ((name, self._lab.nodes[name].core.describe()) for name in sorted(alive))
        return tuple((name, place_in_overlay(place)) for name, place in places) or None


PATIENCE_S = 60  # for connecting
CONNECT_CHECK_INTERVAL = SECOND // 100  # how often it checks whether all are connected
PAUSE_S = 1  # between the last node's readiness and the scenario
SLICE_S = 1  # how often the progress is reported

NOTHING = UnderWay()

ReportProgress = Callable[[float], None]  # seconds of the scenario that are over


@dataclass(frozen=True, slots=True)
class PlayResult:
    """How it went; moments of the loop."""

    timeline: tuple[Publication, ...]
    start: int
    end: int
    expected: int
    received: int
    actions: tuple[dict[str, Any], ...] = ()  # as they happened
    missed: tuple[str, ...] = ()  # triggers that never came
    under_way: UnderWay = NOTHING  # at the end
    gone: frozenset[str] = frozenset()  # nodes that were down, or cut off, at the end

    @property
    def settled(self) -> bool:
        return self.received >= self.expected


def play(lab: SimulatedLab, report: ReportProgress, script: Script | None = None) -> PlayResult:
    """Connect, publish, settle; NodeFailure if some cannot connect. `script`: instead of the topology's scenario."""
    script = script or compiled(lab.topology)
    _connect(lab)
    start = -(-lab.loop.now // SECOND) * SECOND + PAUSE_S * SECOND
    schedule = script.schedule(lab.topology)
    player = TimelinePlayer(lab, start, schedule, start + round(script.lasts_s * SECOND))
    lab.play(script.publications, start)
    _advance(lab, start, script.lasts_s, report)
    player.give_up()
    actions = tuple(schedule.performed)
    timeline = without_downtimes((*script.publications, *player.published), actions)
    expected = expected_with_downtimes(lab.topology, timeline, actions)
    _settle(lab, expected)
    end = lab.loop.now
    _hand_over(lab)
    gone = unreachable_at_the_end(actions)
    under_way = UnderWay(*lab.under_way(without=gone))
    lab.stop()
    arrived = sum(min(lab.received(name), count) for name, count in expected.items())
    return PlayResult(
        timeline,
        start,
        end,
        expected.total(),
        arrived,
        tuple(player.done),
        tuple(player.missed),
        under_way,
        gone,
    )


def _connect(lab: SimulatedLab) -> None:
    lab.go()
    while (silent := lab.not_ready()) and lab.loop.now < PATIENCE_S * SECOND:
        lab.loop.run(lab.loop.now + CONNECT_CHECK_INTERVAL)
    if silent:
        raise NodeFailure(
            f"not connected after {PATIENCE_S} s of virtual time: {few(silent)}",
            "the link to it may be too slow or lose too much; `testbed validate` shows the file's values",
            silent,
        )


def _advance(lab: SimulatedLab, start: int, duration_s: float, report: ReportProgress) -> None:
    end = start + round(duration_s * SECOND)
    while lab.loop.now < end:
        lab.loop.run(min(end, max(lab.loop.now, start) + SLICE_S * SECOND))
        report(max(0, lab.loop.now - start) / SECOND)


def _settle(lab: SimulatedLab, expected: Counter[str]) -> None:
    """Until all have what they should, at most so long as the scenario says."""
    waiting = {name for name, count in expected.items() if lab.received(name) < count}

    def on_received(name: str) -> None:
        if lab.received(name) >= expected[name]:
            waiting.discard(name)

    for name in sorted(waiting):
        lab.watch(name, lambda name=name: on_received(name))  # type: ignore[misc]
    if waiting:
        settle = round(lab.topology.scenario.settle_s * SECOND)
        lab.loop.run(lab.loop.now + settle, stop=lambda: not waiting)


def _hand_over(lab: SimulatedLab) -> None:
    """Let messages in flight arrive, as while a real lab is taken down."""
    lab.loop.run(lab.loop.now + round(HAND_OVER_S * SECOND))
