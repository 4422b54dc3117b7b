"""What happens while a scenario is played in a real lab: processes end and begin again, links are cut and change.

Each action is in the manifest under `actions`, with the moment from which on it held.
"""

import json
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

from testbed.backends.registry import Maker, make_backend
from testbed.control import request_all, tell_each
from testbed.errors import TestbedError, few
from testbed.lab.journal import Journal
from testbed.lab.links import RECORD as LINK_CHANGES
from testbed.lab.preparation import (
    AHEAD_S,
    Act,
    Readying,
    Start,
    Started,
    Starting,
    made_ready,
    sleep_until,
)
from testbed.lab.run_record import shifts
from testbed.places import LabPlace
from testbed.progress import Emit, Warned, ignore
from testbed.recording.actions import ACTIONS, FAILED, entry
from testbed.records import LabRecord, extend_manifest
from testbed.scenario import Action, Downtimes, Incident
from testbed.scenario.schedule import Agenda
from testbed.scenario.triggers import Reception, place_in_overlay, reception
from testbed.topology.model import ActionKind, NodeKind, Topology

# What a scenario that waits for something sees of a real lab: logs as they grow, and the places of brokers.


LOOK_S = 0.02  # how often logs are looked at
ASK_NS = 1_000_000_000  # how often brokers are asked
_MARK = b'"receive"'


class Senses:
    """Eyes and ears of one scenario. What was logged before the first look counts only from the scenario's start on."""

    def __init__(self, record: LabRecord, topology: Topology) -> None:
        place = LabPlace.of(record.name)
        self._logs = {
            node.name: record.run_place.log(node.name)
            for node in topology.of_kind(NodeKind.SUBSCRIBER)
        }
        self._brokers = {
            node.name: place.node_control(node.name) for node in topology.of_kind(NodeKind.BROKER)
        }
        self._read = {
            name: path.stat().st_size if path.exists() else 0 for name, path in self._logs.items()
        }
        self._asked_ns: int | None = None

    def receptions(self, start_ns: int) -> list[Reception]:
        """Those since the last look."""
        seen = (reception(line, start_ns) for line in self._new_lines())
        return [each for each in seen if each is not None]

    def time_to_ask(self, now_ns: int) -> bool:
        """Whether the brokers were not asked lately; they are then."""
        if self._asked_ns is not None and now_ns - self._asked_ns < ASK_NS:
            return False
        self._asked_ns = now_ns
        return True

    def overlay(self) -> Hashable:
        """Where the brokers are, all together; None if nobody answers. Who is down has no place."""
        answers = request_all(self._brokers, {"do": "overlay"})
        places = ((name, place_in_overlay(answers[name]["overlay"])) for name in sorted(answers))
        return tuple(places) or None

    def _new_lines(self) -> Iterator[dict[str, Any]]:
        for name, path in self._logs.items():
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if size <= self._read[name]:
                continue
            with path.open("rb") as file:
                file.seek(self._read[name])
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]  # a line that is half written waits
            self._read[name] += len(whole)
            for line in whole.splitlines():
                if _MARK in line:
                    with suppress(ValueError):  # torn by a crash
                        yield json.loads(line)


TOGETHER_S = 0.1  # what follows so closely is made ready with what comes before


class Actions:
    """What happens beside the publications that were handed out; whoever watches the clock calls `strike`."""

    def __init__(
        self,
        record: LabRecord,
        topology: Topology,
        timeline: Sequence[Action],
        agenda: Agenda,
        emit: Emit,
        make: Maker = make_backend,
    ) -> None:
        self._record = record
        self._topology = topology
        self.timeline = list(timeline)  # also what triggers have added
        self.skipped: set[Action] = set()  # what was due while a node was being started again
        self.agenda = agenda
        self._senses = Senses(record, topology)
        self._emit = emit
        self._make = make
        self._place = LabPlace.of(record.name)
        self._readying = Readying(record, topology, emit, make)
        self._starting = Starting(self._ready_to_start)
        self._silent_commands = False  # whether it was told that nobody says how they ended

    def expect_starts(self) -> None:
        """Nodes may be started again."""
        self._readying.expect_starts()

    def wait_s(self, elapsed_s: float) -> float:
        """How long until the next one, or until it must be looked whether something has come that is waited for."""
        next_ns = self.agenda.next_ns
        wait_s = float("inf") if next_ns is None else next_ns / 1e9 - elapsed_s - AHEAD_S
        looks = self.agenda.triggers or self._starting.nodes
        return min(wait_s, LOOK_S) if looks else wait_s

    def strike(self, start_ns: int) -> None:
        """Let happen what is due; one that cannot be done is a warning, and the scenario goes on."""
        if self.agenda.triggers and time.time_ns() >= start_ns:
            self._look(start_ns)
        while (next_ns := self.agenda.next_ns) is not None:
            ahead_ns = time.time_ns() - start_ns + round(AHEAD_S * 1e9)
            if next_ns > ahead_ns:
                break
            self._strike_all(self.agenda.due(ahead_ns + round(TOGETHER_S * 1e9)), start_ns)
        self._collect(self._starting.finished(), start_ns)
        self._tell_of_commands(time.time_ns() - start_ns, start_ns)

    def _strike_all(self, due: Sequence[Incident], start_ns: int) -> None:
        """In their order, but starts beside the others; who is being started is waited for by what concerns it."""
        together: list[Incident] = []
        for incident in due:
            start, concerned = incident.kind is ActionKind.START, set(incident.nodes)
            under_way = not concerned.isdisjoint(self._starting.nodes)
            if under_way or (start and any(concerned.intersection(one.nodes) for one in together)):
                self._make_and_strike(together, start_ns)
                together = []
                self._collect(self._starting.finished(concerned), start_ns)
            if start:
                self._starting.begin(incident, start_ns + incident.at_ns)
            else:
                together.append(incident)
        self._make_and_strike(together, start_ns)

    def _make_and_strike(self, incidents: Sequence[Incident], start_ns: int) -> None:
        if incidents:
            with self._readying.ready(incidents) as acts:
                self._strike(incidents, acts, start_ns)

    def _collect(self, started: Sequence[Started], start_ns: int) -> None:
        """Nodes that have been started: what they are still to publish is theirs, and that is on record."""
        done = []
        for one in started:
            failed = [one.more[FAILED]] if FAILED in one.more else []
            for text in [*one.warnings, *failed]:
                self._emit(Warned(f"{one.incident.kind} of {few(one.incident.nodes)}: {text}"))
            done.append(entry(one.incident, start_ns, one.t_ns, **one.more))
            if not failed:
                self._hand_out_the_rest(one.incident, start_ns)
        if done:
            extend_manifest(self._record.run_place, **{ACTIONS: done})

    def end(self, start_ns: int) -> None:
        """The scenario is over: what never came is told, what goes on ends, and all is on record."""
        now_ns = time.time_ns() - start_ns
        for sentence in self.agenda.give_up(now_ns, over=True):
            self._emit(Warned(sentence))
        self._strike_all(self.agenda.due(now_ns), start_ns)
        self._strike_all(self.agenda.close(now_ns), start_ns)
        self._collect(self._starting.finished(over=True), start_ns)
        self._tell_of_commands(now_ns, start_ns, over=True)
        self._readying.calm()

    def _tell_of_commands(self, now_ns: int, start_ns: int, *, over: bool = False) -> None:
        """Those that have ended; if nobody can say, that is a warning."""
        try:
            ended = self._readying.commands.ended(now_ns, over=over)
        except TestbedError as error:
            if over or not self._silent_commands:
                self._emit(Warned(f"how commands inside nodes ended: {error.message}"))
            self._silent_commands = True
            return
        self._strike_all(ended, start_ns)

    def _look(self, start_ns: int) -> None:
        """Whether something has come that is waited for."""
        seen = self._senses.receptions(start_ns)
        now_ns = time.time_ns() - start_ns
        more = self.agenda.on_receptions(seen, now_ns)
        if self.agenda.triggers.watches_overlay and self._senses.time_to_ask(now_ns):
            described = self._senses.overlay()
            more += self.agenda.on_overlay(described, time.time_ns() - start_ns)
        if more:
            self._publish(more, start_ns)
        for sentence in self.agenda.give_up(now_ns):
            self._emit(Warned(sentence))

    def _publish(self, more: Sequence[Action], start_ns: int) -> None:
        """Who is down, or being started, gets its part when it runs."""
        self.timeline += more
        times, now_ns = Downtimes(self.agenda.performed), time.time_ns() - start_ns
        up = [each for each in more if not times.down(each.node, now_ns)]
        try:
            hand_out(
                self._place,
                [each for each in up if each.node not in self._starting.nodes],
                start_ns,
                shifts(self._record.run_place),
            )
        except TestbedError as error:
            self._emit(Warned(f"a publication that was waited for: {error.message}"))
        with self._record.run_place.actions.open("a") as file:
            file.writelines(json.dumps(asdict(action)) + "\n" for action in more)

    def _strike(self, incidents: Sequence[Incident], acts: Sequence[Act], start_ns: int) -> None:
        """Each at its time; what came of them is on record when all are done."""
        done: list[dict[str, Any]] = []
        links: list[dict[str, Any]] = []
        for incident, act in zip(incidents, acts, strict=True):
            sleep_until(start_ns + incident.at_ns)
            try:
                outcome = act()
                more = outcome.details
                links += outcome.links
            except TestbedError as error:
                more = {FAILED: error.message}
                self._emit(Warned(f"{incident.kind} of {few(incident.nodes)}: {error.message}"))
            done.append(entry(incident, start_ns, time.time_ns(), **more))
        extend_manifest(self._record.run_place, **{ACTIONS: done, LINK_CHANGES: links})

    @contextmanager
    def _ready_to_start(self, incident: Incident) -> Iterator[Start]:
        """Beside everything else. Nobody else changes the lab meanwhile."""
        run = self._record.run_place
        with self._readying.hold.shared():
            backend = self._make(self._record.backend, self._place, run, self._topology, ignore)
            yield made_ready(incident.nodes, backend, self._topology, Journal(run.journal))

    def _hand_out_the_rest(self, incident: Incident, start_ns: int) -> None:
        """What these nodes are still to publish."""
        now_ns = time.time_ns() - start_ns
        rest: defaultdict[str, list[Action]] = defaultdict(list)
        for action in self.timeline:
            if action.node not in incident.nodes or action.at_ns < incident.at_ns:
                continue
            if action.at_ns <= now_ns:
                self.skipped.add(action)
            else:
                rest[action.node].append(action)
        for node, part in rest.items():
            try:
                hand_out(self._place, part, start_ns, shifts(self._record.run_place))
            except TestbedError as error:  # one that did not start, or is gone again
                self.skipped.update(part)
                self._emit(Warned(f"what {node} was still to publish: {error.message}"))


def hand_out(
    place: LabPlace, timeline: Sequence[Action], start_ns: int, ahead: Mapping[str, int]
) -> None:
    """Every publisher gets its part; who has a clock of its own that is so far `ahead`, by that."""
    parts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for action in timeline:
        part = asdict(action)
        parts[part.pop("node")].append(part)
    orders = {
        place.node_control(node): {
            "do": "play",
            "start_ns": start_ns + ahead.get(node, 0),
            "actions": part,
        }
        for node, part in parts.items()
    }
    tell_each(orders, timeout_s=30.0)
