"""Performs a scenario's actions in a real lab: processes end and start again, links are cut and change.

The manifest lists each action under `actions`, with the time from which it held.
"""

import json
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

from testbed.backends.registry import Maker, make_backend
from testbed.control import request_all, request_each
from testbed.errors import TestbedError, few
from testbed.lab.journal import Journal
from testbed.lab.links import RECORD as LINK_CHANGES
from testbed.lab.preparation import (
    AHEAD_S,
    Act,
    ActionPreparation,
    NodeStarts,
    Start,
    StartResult,
    prepare_start,
    sleep_until,
)
from testbed.lab.run_record import clock_offsets
from testbed.places import LabPlace
from testbed.progress import Emit, Incomplete, Warned, ignore
from testbed.recording.actions import ACTIONS, FAILED, action_entry
from testbed.records import LabRecord, extend_manifest
from testbed.scenario import Downtimes, Publication, TimedAction
from testbed.scenario.schedule import Schedule
from testbed.scenario.triggers import Reception, place_in_overlay, reception
from testbed.topology.model import ActionKind, NodeKind, Topology

# Triggers: new log lines of subscribers, and the positions of brokers in the overlay.


POLL_LOGS_S = 0.02  # how often logs are read
ASK_BROKERS_NS = 1_000_000_000  # how often brokers are asked
_MARK = b'"receive"'


class LabObserver:
    """Observes a lab for the triggers of one scenario. It ignores receptions that were logged before it was made."""

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
        """The receptions that were logged since the last call."""
        seen = (reception(line, start_ns) for line in self._new_lines())
        return [each for each in seen if each is not None]

    def time_to_ask(self, now_ns: int) -> bool:
        """Whether it is time to ask the brokers again; if so, the caller asks them now."""
        if self._asked_ns is not None and now_ns - self._asked_ns < ASK_BROKERS_NS:
            return False
        self._asked_ns = now_ns
        return True

    def overlay(self) -> Hashable:
        """The positions of all brokers that answer; None if none does. A broker that is down has no position."""
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
            whole = text[: text.rfind(b"\n") + 1]  # leave a half-written line for the next call
            self._read[name] += len(whole)
            for line in whole.splitlines():
                if _MARK in line:
                    with suppress(ValueError):  # torn by a crash
                        yield json.loads(line)


PREPARED_TOGETHER_S = 0.1  # prepare events that follow so closely together


class Actions:
    """Performs the actions of a scenario beside its publications; the player's loop calls `perform_due`."""

    def __init__(
        self,
        record: LabRecord,
        topology: Topology,
        timeline: Sequence[Publication],
        schedule: Schedule,
        emit: Emit,
        make: Maker = make_backend,
    ) -> None:
        self._record = record
        self._topology = topology
        self.timeline = list(timeline)  # also the publications that triggers have added
        # Publications that were due while their node was being started again.
        self.skipped: set[Publication] = set()
        self.schedule = schedule
        self._observer = LabObserver(record, topology)
        self._emit = emit
        self._make = make
        self._place = LabPlace.of(record.name)
        self._preparation = ActionPreparation(record, topology, emit, make)
        self._starts = NodeStarts(self._prepare_start)
        self._warned_of_commands = False  # that their exit codes are unknown

    def expect_starts(self) -> None:
        """Prepare for nodes that are started again."""
        self._preparation.expect_starts()

    def wait_s(self, elapsed_s: float) -> float:
        """Seconds until the next event, or until the next check of the triggers."""
        next_ns = self.schedule.next_ns
        wait_s = float("inf") if next_ns is None else next_ns / 1e9 - elapsed_s - AHEAD_S
        looks = self.schedule.triggers or self._starts.nodes
        return min(wait_s, POLL_LOGS_S) if looks else wait_s

    def perform_due(self, start_ns: int) -> None:
        """Perform the events that are due. An event that fails is a warning, and the scenario goes on."""
        if self.schedule.triggers and time.time_ns() >= start_ns:
            self._check_triggers(start_ns)
        while (next_ns := self.schedule.next_ns) is not None:
            ahead_ns = time.time_ns() - start_ns + round(AHEAD_S * 1e9)
            if next_ns > ahead_ns:
                break
            self._perform_all(
                self.schedule.due(ahead_ns + round(PREPARED_TOGETHER_S * 1e9)), start_ns
            )
        self._collect(self._starts.finished(), start_ns)
        self._record_ended_commands(time.time_ns() - start_ns, start_ns)

    def _perform_all(self, due: Sequence[TimedAction], start_ns: int) -> None:
        """In their order, but start nodes in parallel; an event that concerns a starting node waits for that start."""
        together: list[TimedAction] = []
        for action in due:
            start, concerned = action.kind is ActionKind.START, set(action.nodes)
            under_way = not concerned.isdisjoint(self._starts.nodes)
            if under_way or (start and any(concerned.intersection(one.nodes) for one in together)):
                self._prepare_and_perform(together, start_ns)
                together = []
                self._collect(self._starts.finished(concerned), start_ns)
            if start:
                self._starts.begin(action, start_ns + action.at_ns)
            else:
                together.append(action)
        self._prepare_and_perform(together, start_ns)

    def _prepare_and_perform(self, actions: Sequence[TimedAction], start_ns: int) -> None:
        if actions:
            with self._preparation.prepare(actions) as acts:
                self._perform(actions, acts, start_ns)

    def _collect(self, started: Sequence[StartResult], start_ns: int) -> None:
        """Record finished starts, and hand out the remaining publications of their nodes."""
        done = []
        for one in started:
            failed = [one.more[FAILED]] if FAILED in one.more else []
            for text in [*one.warnings, *failed]:
                self._emit(Incomplete(f"{one.action.kind} of {few(one.action.nodes)}: {text}"))
            done.append(action_entry(one.action, start_ns, one.t_ns, **one.more))
            if not failed:
                self._hand_out_remaining(one.action, start_ns)
        if done:
            extend_manifest(self._record.run_place, **{ACTIONS: done})

    def end(self, start_ns: int) -> None:
        """End the scenario: warn of triggers that never fired, end what goes on, and record all of it."""
        now_ns = time.time_ns() - start_ns
        for sentence in self.schedule.give_up(now_ns, over=True):
            self._emit(Warned(sentence))
        self._perform_all(self.schedule.due(now_ns), start_ns)
        self._perform_all(self.schedule.close(now_ns), start_ns)
        self._collect(self._starts.finished(over=True), start_ns)
        self._record_ended_commands(now_ns, start_ns, over=True)
        self._preparation.end_scenario()

    def _record_ended_commands(self, now_ns: int, start_ns: int, *, over: bool = False) -> None:
        """Record the commands that have ended; warn if their exit codes are unknown."""
        try:
            ended = self._preparation.commands.ended(now_ns, over=over)
        except TestbedError as error:
            if over or not self._warned_of_commands:
                self._emit(Incomplete(f"how commands inside nodes ended: {error.message}"))
            self._warned_of_commands = True
            return
        self._perform_all(ended, start_ns)

    def _check_triggers(self, start_ns: int) -> None:
        """Fire the triggers whose condition holds."""
        seen = self._observer.receptions(start_ns)
        now_ns = time.time_ns() - start_ns
        more = self.schedule.on_receptions(seen, now_ns)
        if self.schedule.triggers.watches_overlay and self._observer.time_to_ask(now_ns):
            described = self._observer.overlay()
            more += self.schedule.on_overlay(described, time.time_ns() - start_ns)
        if more:
            self._publish(more, start_ns)
        for sentence in self.schedule.give_up(now_ns):
            self._emit(Warned(sentence))

    def _publish(self, more: Sequence[Publication], start_ns: int) -> None:
        """Hand out publications; a node that is down, or is being started, gets its part when it runs."""
        self.timeline += more
        times, now_ns = Downtimes(self.schedule.performed), time.time_ns() - start_ns
        up = [each for each in more if not times.down(each.node, now_ns)]
        try:
            hand_out(
                self._place,
                [each for each in up if each.node not in self._starts.nodes],
                start_ns,
                clock_offsets(self._record.run_place),
            )
        except TestbedError as error:
            self._emit(Incomplete(f"a triggered publication: {error.message}"))
        with self._record.run_place.planned.open("a") as file:
            file.writelines(json.dumps(asdict(publication)) + "\n" for publication in more)

    def _perform(self, actions: Sequence[TimedAction], acts: Sequence[Act], start_ns: int) -> None:
        """Perform each event at its time; record the outcomes when all are done."""
        done: list[dict[str, Any]] = []
        links: list[dict[str, Any]] = []
        for action, act in zip(actions, acts, strict=True):
            sleep_until(start_ns + action.at_ns)
            try:
                outcome = act()
                more = outcome.details
                links += outcome.links
            except TestbedError as error:
                more = {FAILED: error.message}
                self._emit(Incomplete(f"{action.kind} of {few(action.nodes)}: {error.message}"))
            done.append(action_entry(action, start_ns, time.time_ns(), **more))
        extend_manifest(self._record.run_place, **{ACTIONS: done, LINK_CHANGES: links})

    @contextmanager
    def _prepare_start(self, action: TimedAction) -> Iterator[Start]:
        """Prepare a start in parallel to other events. No other command changes the lab meanwhile."""
        run = self._record.run_place
        with self._preparation.lock.shared():
            backend = self._make(self._record.backend, self._place, run, self._topology, ignore)
            yield prepare_start(action.nodes, backend, self._topology, Journal(run.journal))

    def _hand_out_remaining(self, action: TimedAction, start_ns: int) -> None:
        """Give these nodes the publications that are still to come."""
        now_ns = time.time_ns() - start_ns
        rest: defaultdict[str, list[Publication]] = defaultdict(list)
        for publication in self.timeline:
            if publication.node not in action.nodes or publication.at_ns < action.at_ns:
                continue
            if publication.at_ns <= now_ns:
                self.skipped.add(publication)
            else:
                rest[publication.node].append(publication)
        for node, part in rest.items():
            try:
                hand_out(self._place, part, start_ns, clock_offsets(self._record.run_place))
            except TestbedError as error:  # the node did not start, or has ended again
                self.skipped.update(part)
                self._emit(Incomplete(f"remaining publications of {node}: {error.message}"))


def hand_out(
    place: LabPlace, timeline: Sequence[Publication], start_ns: int, ahead: Mapping[str, int]
) -> None:
    """Give every publisher its part; `ahead` says how far a node's own clock is ahead (ns)."""
    parts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for publication in timeline:
        part = asdict(publication)
        parts[part.pop("node")].append(part)
    orders = {
        place.node_control(node): {
            "do": "play",
            "start_ns": start_ns + ahead.get(node, 0),
            "actions": part,
        }
        for node, part in parts.items()
    }
    request_each(orders, timeout_s=30.0)
