"""A scenario in virtual time, from the first packet until what is under way has come."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodes.runtime.lifecycle import HAND_OVER_S
from testbed.backends.simulated.acting import Acting
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND
from testbed.errors import NodeFailure, few
from testbed.recording.script import Script, compiled
from testbed.scenario import (
    Action,
    expected_despite,
    without_the_fallen,
)

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
