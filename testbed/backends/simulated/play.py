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
from testbed.recording.actions import FAILED, entry
from testbed.recording.script import Script, compiled
from testbed.scenario import (
    Action,
    Incident,
    expected_despite,
    without_the_fallen,
)
from testbed.scenario.schedule import Agenda
from testbed.scenario.triggers import Reception, place_in_overlay, reception
from testbed.topology.model import NodeKind

# What happens in a lab in virtual time beside publications that are known: at its time, or when that has come.


LOOK = SECOND // 50  # how often logs are looked at, as in a real lab
ASK = SECOND  # how often brokers are asked
_MARK = '"receive"'


class Acting:
    """Lets incidents happen, and keeps what came of them."""

    def __init__(self, lab: SimulatedLab, start: int, agenda: Agenda, end: int) -> None:
        self._lab = lab
        self._start = start
        self._end = end
        self._agenda = agenda
        self._read = {name: len(node.log.lines) for name, node in lab.nodes.items()}
        self._asked = start - ASK
        self.done: list[dict[str, Any]] = []
        self.missed: list[str] = []  # sentences on what never came
        self.published: list[Action] = []  # because of what has come
        self._timer = Timer(lab.loop, self._on_time)
        if agenda.triggers:
            lab.loop.at(start + LOOK, self._look, None)
        self._wait()

    def give_up(self) -> None:
        """The scenario is over."""
        now_ns = self._lab.loop.now - self._start
        self.missed += self._agenda.give_up(now_ns, over=True)
        self._strike_due()
        for incident in self._agenda.close(now_ns):
            self._strike(incident)

    def _wait(self) -> None:
        """For the next incident."""
        if (next_ns := self._agenda.next_ns) is not None:
            self._timer.set(max(self._lab.loop.now, self._start + next_ns))

    def _on_time(self) -> None:
        if self._lab.loop.now < self._end:
            self._strike_due()
            self._wait()

    def _strike_due(self) -> None:
        for incident in self._agenda.due(self._lab.loop.now - self._start):
            self._strike(incident)

    def _strike(self, incident: Incident) -> None:
        """Now; one that cannot be done has its reason on record, and the scenario goes on."""
        more = {}
        try:
            self._lab.strike(incident)
        except TestbedError as error:
            more[FAILED] = error.message
        now = EPOCH_NS + self._lab.loop.now
        self.done.append(entry(incident, EPOCH_NS + self._start, now, **more))

    def _look(self, _: None) -> None:
        """Whether something has come that is waited for."""
        lab, agenda = self._lab, self._agenda
        now_ns = lab.loop.now - self._start
        more = agenda.on_receptions(self._receptions(), now_ns)
        if agenda.triggers.watches_overlay and lab.loop.now - self._asked >= ASK:
            self._asked = lab.loop.now
            more += agenda.on_overlay(self._overlay(), now_ns)
        if more:
            self.published += more
            lab.play(more, self._start, more=True)
        self.missed += agenda.give_up(now_ns)
        self._on_time()
        if agenda.triggers and lab.loop.now + LOOK < self._end:
            lab.loop.at(lab.loop.now + LOOK, self._look, None)

    def _receptions(self) -> list[Reception]:
        found = []
        for node in self._lab.topology.of_kind(NodeKind.SUBSCRIBER):
            lines = self._lab.nodes[node.name].log.lines
            new, self._read[node.name] = lines[self._read[node.name] :], len(lines)
            told = (json.loads(line) for line in new if _MARK in line)
            seen = (reception(line, EPOCH_NS + self._start) for line in told)
            found += [each for each in seen if each is not None]
        return found

    def _overlay(self) -> Hashable:
        brokers = self._lab.topology.of_kind(NodeKind.BROKER)
        alive = [node.name for node in brokers if self._lab.nodes[node.name].alive]
        places = ((name, self._lab.nodes[name].core.describe()) for name in sorted(alive))
        return tuple((name, place_in_overlay(told)) for name, told in places) or None


PATIENCE_S = 60  # for connecting
LOOK_NS = SECOND // 100  # how often it is looked whether all are connected
PAUSE_S = 1  # between the last node's readiness and the scenario
SLICE_S = 1  # how often it is told how far the time is

Tell = Callable[[float], None]  # seconds of the scenario that are over


@dataclass(frozen=True, slots=True)
class Played:
    """How it went; moments of the loop."""

    timeline: tuple[Action, ...]
    start: int
    end: int
    expected: int
    received: int
    actions: tuple[dict[str, Any], ...] = ()  # as they happened
    missed: tuple[str, ...] = ()  # what was waited for and never came

    @property
    def settled(self) -> bool:
        return self.received >= self.expected


def play(lab: SimulatedLab, tell: Tell, script: Script | None = None) -> Played:
    """Connect, publish, settle; NodeFailure if some cannot connect. `script`: instead of the topology's scenario."""
    script = script or compiled(lab.topology)
    _connect(lab)
    start = -(-lab.loop.now // SECOND) * SECOND + PAUSE_S * SECOND
    agenda = script.agenda(lab.topology)
    acting = Acting(lab, start, agenda, start + round(script.lasts_s * SECOND))
    lab.play(script.actions, start)
    _advance(lab, start, script.lasts_s, tell)
    acting.give_up()
    incidents = tuple(agenda.performed)
    timeline = without_the_fallen((*script.actions, *acting.published), incidents)
    expected = expected_despite(lab.topology, timeline, incidents)
    _settle(lab, expected)
    end = lab.loop.now
    _hand_over(lab)
    lab.stop()
    arrived = sum(min(lab.received(name), many) for name, many in expected.items())
    return Played(
        timeline, start, end, expected.total(), arrived, tuple(acting.done), tuple(acting.missed)
    )


def _connect(lab: SimulatedLab) -> None:
    lab.go()
    while (silent := lab.not_ready()) and lab.loop.now < PATIENCE_S * SECOND:
        lab.loop.run(lab.loop.now + LOOK_NS)
    if silent:
        raise NodeFailure(
            f"not connected after {PATIENCE_S} s of virtual time: {few(silent)}",
            "the line to it may be too slow or lose too much; `testbed validate` shows the file's values",
            silent,
        )


def _advance(lab: SimulatedLab, start: int, duration_s: float, tell: Tell) -> None:
    end = start + round(duration_s * SECOND)
    while lab.loop.now < end:
        lab.loop.run(min(end, max(lab.loop.now, start) + SLICE_S * SECOND))
        tell(max(0, lab.loop.now - start) / SECOND)


def _settle(lab: SimulatedLab, expected: Counter[str]) -> None:
    """Until all have what they should, at most so long as the scenario says."""
    waiting = {name for name, many in expected.items() if lab.received(name) < many}

    def on_received(name: str) -> None:
        if lab.received(name) >= expected[name]:
            waiting.discard(name)

    for name in sorted(waiting):
        lab.watch(name, lambda name=name: on_received(name))  # type: ignore[misc]
    if waiting:
        settle = round(lab.topology.scenario.settle_s * SECOND)
        lab.loop.run(lab.loop.now + settle, stop=lambda: not waiting)


def _hand_over(lab: SimulatedLab) -> None:
    """What is under way still comes, as while a real lab is taken down."""
    lab.loop.run(lab.loop.now + round(HAND_OVER_S * SECOND))
