"""Prepares events shortly before their time, so that only the action itself is left to do in time.

Preparation takes long: it asks the keeper of hundreds of nodes, and writes the journal.
"""

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from testbed.backends.common.base import Backend, Ended
from testbed.backends.registry import Maker
from testbed.errors import NodeFailure, TestbedError
from testbed.keeper.client import Keeper
from testbed.lab.apply import apply
from testbed.lab.journal import Journal
from testbed.lab.links import LinkChanger
from testbed.links.scenario_orders import link_orders
from testbed.places import LabPlace, RunPlace
from testbed.plan import StepKind, batches, plan_up
from testbed.progress import Emit, ignore
from testbed.recording.actions import FAILED
from testbed.recording.script import Script
from testbed.records import LabRecord, locked
from testbed.scenario import TimedAction
from testbed.scenario.model import NUMBER
from testbed.topology.model import ActionEvent, ActionKind, Topology

# Commands that a scenario runs inside nodes.


@dataclass(frozen=True, slots=True)
class RunningCommand:
    """A command that has not ended yet."""

    node: str
    output: str  # in the run's folder
    ended: Ended


class Commands:
    """The commands of one scenario: starts them, and records how they ended."""

    def __init__(self, run: RunPlace, topology: Topology) -> None:
        self._run = run
        self._topology = topology
        self._running: list[RunningCommand] = []
        self._begun = 0

    def begin(self, action: TimedAction, backend: Backend) -> None:
        """Run the command in each node of the event; its output goes to files of the run folder."""
        self._run.outputs.mkdir(exist_ok=True)
        for name in action.nodes:
            self._begun += 1
            output = self._run.outputs / f"{self._begun}-{name}.txt"
            ended = backend.execute(self._topology.node(name), action.details["command"], output)
            self._running.append(RunningCommand(name, f"{output.parent.name}/{output.name}", ended))

    def ended(self, now_ns: int, *, over: bool = False) -> list[TimedAction]:
        """Mark events for the commands that have ended since the last call; `over`: also for those that still run."""
        marks = []
        for one in [*self._running]:
            code = one.ended()
            if code is None and not over:
                continue
            self._running.remove(one)
            how = "goes on" if code is None else f"ended with {code}"
            details = {"name": f"exec in {one.node} {how}", "node": one.node}
            more: dict[str, Any] = {"exit_code": code, "output": one.output}
            marks.append(TimedAction(now_ns, ActionKind.MARK, (), {**details, **more}))
        return marks

    def __bool__(self) -> bool:
        return bool(self._running)


# The lab's lock, shared by several threads of one command.


PATIENCE_S = 5.0  # for another command that changes the lab at the same moment


class SharedLock:
    """The lab's lock: the first user takes it, the last user releases it."""

    def __init__(self, lab: str) -> None:
        self._lab = lab
        self._guard = threading.Lock()
        self._users = 0
        self._lock: AbstractContextManager[None] | None = None

    @contextmanager
    def shared(self) -> Iterator[None]:
        """No other command changes the lab meanwhile; InputError if another one already does."""
        with self._guard:
            if self._users == 0:
                taken = locked(self._lab, patience_s=PATIENCE_S)
                taken.__enter__()
                self._lock = taken
            self._users += 1
        try:
            yield
        finally:
            with self._guard:
                self._users -= 1
                if self._users == 0 and self._lock is not None:
                    self._lock.__exit__(None, None, None)
                    self._lock = None


AHEAD_S = 0.25
SIGNALS = {ActionKind.CRASH: signal.SIGKILL, ActionKind.STOP: signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The manifest's part of an action: entries of the links that it changed, and further details."""

    links: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


Act = Callable[[], Outcome]


class ActionPreparation:
    """Prepares the events of one lab."""

    def __init__(self, record: LabRecord, topology: Topology, emit: Emit, make: Maker) -> None:
        self._record, self._topology = record, topology
        self.lock = SharedLock(record.name)
        self._emit, self._make = emit, make
        self._place = LabPlace.of(record.name)
        self.commands = Commands(record.run_place, topology)

    @contextmanager
    def prepare(self, events: Sequence[TimedAction]) -> Iterator[list[Act]]:
        """A function for each event that performs it. No other command changes the lab's links meanwhile."""
        with ExitStack() as held:
            changer: LinkChanger | None = None
            acts = []
            for action in events:
                try:
                    if action.kind.of_links and changer is None:
                        held.enter_context(self.lock.shared())
                        changer = self._changer()
                    acts.append(self._act(action, changer))
                except TestbedError as error:
                    acts.append(_failing(error))
            yield acts

    def expect_starts(self) -> None:
        """Prepare for nodes that are started again; without preparation a start takes longer."""
        with suppress(TestbedError):
            self._backend().expect_starts()

    def end_scenario(self) -> None:
        """Tell the keeper that the scenario is over."""
        with suppress(TestbedError):
            Keeper(self._place).end_scenario()

    def _changer(self) -> LinkChanger:
        return LinkChanger(self._record, self._topology, self._backend())

    def _backend(self) -> Backend:
        run = self._record.run_place
        return self._make(self._record.backend, self._place, run, self._topology, self._emit)

    def _act(self, action: TimedAction, changer: LinkChanger | None) -> Act:
        if changer is not None and action.kind.of_links:
            orders = link_orders(action, self._topology)
            changes = [changer.prepare(names, order) for order, names in orders]
            return lambda: Outcome([change() for change in changes if change is not None])
        if (number := SIGNALS.get(action.kind)) is not None:
            end = self._backend()
            return lambda: _signalled(end, action, number)
        if action.kind is ActionKind.MARK:
            return Outcome
        backend = self._backend()
        if action.kind is ActionKind.LOAD:
            backend.expect_load()
        return lambda: self._perform(action, backend)

    def _perform(self, action: TimedAction, backend: Backend) -> Outcome:
        """Perform an event that lasts for a while, or runs a command."""
        details = action.details
        match action.kind:
            case ActionKind.PARTITION:
                backend.partition(details[NUMBER], details["sides"])
            case ActionKind.HEAL:
                backend.heal(details[NUMBER])
            case ActionKind.LOAD:
                to, rate_bps, size = details["to"], details["rate_bps"], details["size"]
                backend.load(details[NUMBER], action.nodes, to, rate_bps, size)
            case ActionKind.UNLOAD:
                return Outcome(details=dict(backend.unload(details[NUMBER])))
            case ActionKind.EXEC:
                self.commands.begin(action, backend)
        return Outcome()


def _signalled(backend: Backend, action: TimedAction, number: int) -> Outcome:
    backend.signal(action.nodes, number)
    return Outcome()


def sleep_until(t_ns: int) -> None:
    """Sleep until this time (ns since 1970); return at once if it has passed."""
    while (rest_ns := t_ns - time.time_ns()) > 0:
        time.sleep(rest_ns / 1e9)


def _failing(error: TestbedError) -> Act:
    def fail() -> Outcome:
        raise error

    return fail


# Nodes that a scenario starts again: they are created before their time, and their gates open in time.


MAX_STARTS_AT_ONCE = 4  # starts that are prepared in parallel
SEEN_BY_OTHERS = (StepKind.CAPTURE, StepKind.START)  # a link that comes up, a gate that opens

Start = Callable[[], list[str]]  # opens the gates; sentences on what went wrong
PrepareStart = Callable[[TimedAction], AbstractContextManager[Start]]


def may_start(script: Script, topology: Topology) -> bool:
    """Whether this script may start nodes again."""
    if script.awaits:  # triggers decide which node is down, and when
        return any(_starts(event) for event in topology.scenario.actions)
    return any(action.kind is ActionKind.START for action in script.actions)


def _starts(event: ActionEvent) -> bool:
    if event.kind in (ActionKind.CRASH, ActionKind.STOP):
        return event.for_s is not None
    return event.kind in (ActionKind.START, ActionKind.CHURN)


def prepare_start(
    names: Sequence[str], backend: Backend, topology: Topology, journal: Journal
) -> Start:
    """Create these nodes up to their closed gates, which no other node notices; return what starts them."""
    actual = backend.inspect(names)
    if late := sorted(actual.created.intersection(names)):  # they are still stopping
        backend.stop([topology.node(name) for name in late], lambda _: None)
        actual = backend.inspect(names)
    steps = [step for step in plan_up(topology, actual) if step.target in names]
    ahead = tuple(step for step in steps if step.kind not in SEEN_BY_OTHERS)
    failures = apply(ahead, backend, topology, journal, ignore)
    failed = {name for failure in failures for name in failure.nodes}
    left = [s for s in steps if s.kind in SEEN_BY_OTHERS and s.target not in failed]
    orders = [(kind, [step.target for step in batch]) for kind, batch in batches(tuple(left))]
    for kind, targets in orders:
        journal.write(step=kind, targets=targets)

    def start() -> list[str]:
        calls = {StepKind.CAPTURE: backend.capture, StepKind.START: backend.start}
        for kind, targets in orders:
            try:
                calls[kind]([topology.node(name) for name in targets], lambda _: None)
            except NodeFailure as failure:
                failures.append(failure)
        return [failure.message for failure in failures]

    return start


@dataclass(frozen=True, slots=True)
class StartResult:
    """The outcome of one start."""

    action: TimedAction
    t_ns: int
    more: dict[str, Any]  # for the record
    warnings: list[str]


class NodeStarts:
    """Starts of nodes, in threads of their own."""

    def __init__(self, prepare: PrepareStart) -> None:
        self._prepare = prepare
        self._workers = ThreadPoolExecutor(max_workers=MAX_STARTS_AT_ONCE)
        self._under_way: list[tuple[TimedAction, Future[StartResult]]] = []

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that are being started."""
        return frozenset(name for action, _ in self._under_way for name in action.nodes)

    def begin(self, action: TimedAction, due_ns: int) -> None:
        """Prepare a start; perform it at this time (ns since 1970), or as soon as it is prepared."""
        self._under_way.append((action, self._workers.submit(self._do, action, due_ns)))

    def finished(self, nodes: Collection[str] = (), *, over: bool = False) -> list[StartResult]:
        """Finished starts. Wait for those of these nodes, or for all of them if the scenario is over."""
        done = []
        for one in [*self._under_way]:
            action, future = one
            if future.done() or over or not set(nodes).isdisjoint(action.nodes):
                self._under_way.remove(one)
                done.append(future.result())
        if over:
            self._workers.shutdown()
        return done

    def _do(self, action: TimedAction, due_ns: int) -> StartResult:
        try:
            with self._prepare(action) as start:
                sleep_until(due_ns)
                warnings = start()
                return StartResult(action, time.time_ns(), {}, warnings)
        except TestbedError as error:
            sleep_until(due_ns)
            return StartResult(action, time.time_ns(), {FAILED: error.message}, [])
