"""The times of an event, from `at`, `when`, `every`, `for` and `until` of the file."""

from dataclasses import dataclass

from testbed.topology.diagnostics.hints import with_article
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Node, NodeKind, Trigger, TriggerKind
from testbed.topology.publication_times import SECOND_NS, nanoseconds
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.selection import Selection
from testbed.topology.schema.sections import RawDelay, RawEvent, RawReceived, RawWhen
from testbed.topology.units import DURATION

LONGER = "lengthen the scenario's `duration`, or let the event {} earlier"


def check_beginning(checking: Checking, path: Path, at_s: float, duration_s: float) -> bool:
    """Whether the event at this path begins before the scenario ends."""
    begin, end = nanoseconds(at_s), nanoseconds(duration_s)
    if begin < end:
        return True
    message = f"the event begins at {written(begin)}, but {ends(end, begin)}"
    checking.value((*path, "at"), message, LONGER.format("begin"))
    return False


def ends(end: int, moment: int) -> str:
    """The scenario's end as a text; says that the end itself is excluded if `moment` is the end."""
    excluded = ", the end excluded" if moment == end else ""
    return f"the scenario ends at {written(end)}{excluded}"


def written(time_ns: int) -> str:
    """A time as the file would give it."""
    return DURATION.write(time_ns / SECOND_NS)


_SHORTEST_QUIET_S = 1.0  # brokers are asked about once a second


class TriggerReader:
    """Resolves `when` of events to triggers: a reception, a delay, or a stable overlay. Mistakes become problems."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._receivers = Selection(checking, nodes, _refuse_non_subscriber)

    def trigger(self, path: Path, raw: RawWhen) -> Trigger:
        """The trigger at this path."""
        given = [kind for kind in TriggerKind if getattr(raw, kind) is not None]
        if len(given) != 1 and self._checking.shaped.sound(*path):
            kinds = ", ".join(TriggerKind)
            message = (
                "the trigger is missing here" if not given else "an event waits for one trigger"
            )
            self._checking.key(path, message, f"give exactly one of {kinds}")
        if raw.quiet is not None and raw.stable is None:
            hint = "remove it, or wait for `stable: overlay`"
            self._checking.key((*path, "quiet"), "`quiet` belongs to `stable`", hint)
        self._check_times(path, raw)
        received, delay = raw.received, raw.delay
        if received is not None:
            receivers = self._receiver_names((*path, "received"), received)
            count = received.count or 1
            return Trigger(
                *(TriggerKind.RECEIVED, receivers, received.level, received.topic),
                count=count,
                within_s=raw.within,
            )
        if delay is not None:
            return Trigger(
                *(
                    TriggerKind.DELAY,
                    self._receiver_names((*path, "delay"), delay),
                    delay.level,
                    delay.topic,
                ),
                percentile=delay.percentile,
                above_s=delay.above,
                over_s=delay.over,
                within_s=raw.within,
            )
        quiet_s = Trigger(TriggerKind.STABLE).quiet_s if raw.quiet is None else raw.quiet
        return Trigger(TriggerKind.STABLE, quiet_s=quiet_s, within_s=raw.within)

    def _check_times(self, path: Path, raw: RawWhen) -> None:
        scenario = self._checking.file.scenario
        clear = self._checking.shaped.sound("scenario", "duration")
        end_s = scenario.duration if scenario is not None and clear else float("inf")
        if raw.within is not None and not 0 < raw.within <= end_s:
            message = "that is no time of the scenario"
            self._checking.value((*path, "within"), message, "from its start to its `duration`")
        if raw.quiet is not None and raw.quiet < _SHORTEST_QUIET_S:
            hint = "testbed polls brokers once a second: write it like 3s"
            self._checking.value((*path, "quiet"), "the time is too short", hint)
        if raw.delay is not None and raw.delay.over == 0:
            where = (*path, "delay", "over")
            self._checking.value(where, "the window must be longer than zero", "write it like 10s")

    def _receiver_names(self, path: Path, raw: RawReceived | RawDelay) -> tuple[str, ...]:
        if not raw.nodes:
            return ()
        nodes = self._receivers.of((*path, "nodes"), raw.nodes)
        return tuple(node.name for node in nodes)


def _refuse_non_subscriber(node: Node) -> tuple[str, str] | None:
    if node.kind is NodeKind.SUBSCRIBER:
        return None
    return (
        f"{node.name} is {with_article(node.kind)}; only subscribers receive",
        "choose subscribers",
    )


MAX_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Timing:
    """The moments at which an event begins, and how long it lasts each time; None: without an end.

    `clear`: no problem was found.
    """

    moments_s: tuple[float, ...]
    for_s: float | None = None
    clear: bool = True
    when: Trigger | None = None  # then the moments count from when the trigger fires


def timing(
    checking: Checking,
    path: Path,
    event: RawEvent,
    duration_s: float,
    trigger_reader: TriggerReader,
) -> Timing:
    """The timing of an event, as far as it is valid; mistakes become problems."""
    if event.when is not None:
        return _awaited(checking, path, event, trigger_reader.trigger((*path, "when"), event.when))
    begin_s = event.at or 0.0
    first = Timing((begin_s,), event.length, clear=False)
    if not _begins(checking, path, event, duration_s):
        return first
    begin, end = nanoseconds(begin_s), nanoseconds(duration_s)
    until = None if event.until is None else nanoseconds(event.until)
    length = None if event.length is None else nanoseconds(event.length)
    if until is not None and not begin < until <= end:
        if until <= begin:
            message, hint = f"the end is not after {written(begin)}", "choose a later end"
        else:
            message, hint = f"the time is too late: {ends(end, until)}", LONGER.format("end")
        checking.value((*path, "until"), message, hint)
        return first
    if length == 0:
        checking.value(
            (*path, "for"),
            "the duration must be greater than zero",
            "write it like 10s, or remove `for`",
        )
        return first
    if event.every is None:
        return _once(checking, path, begin, length, until, end)
    return _again(checking, path, nanoseconds(event.every), begin, length, until or end)


def _awaited(checking: Checking, path: Path, event: RawEvent, when: Trigger) -> Timing:
    for key, given in (("at", event.at), ("every", event.every), ("until", event.until)):
        if given is not None:
            message = f"`when` and `{key}` in one event: it begins once, when that has come"
            checking.key((*path, key), message, "keep one; `for` is the duration")
    after_s = event.when.after if event.when else 0.0
    return Timing((after_s,), event.length, _sound(checking, path), when)


def _begins(checking: Checking, path: Path, event: RawEvent, duration_s: float) -> bool:
    """Whether the beginning is valid, and before the scenario's end."""
    if event.at is None:
        if checking.shaped.sound(*path, "at"):
            checking.key(path, "`at` is missing here", "add `at: 0s`, or `when`")
        return False
    clear = checking.shaped.sound("scenario", "duration") and _sound(checking, path)
    return clear and check_beginning(checking, path, event.at, duration_s)


def _once(
    checking: Checking, path: Path, begin: int, length: int | None, until: int | None, end: int
) -> Timing:
    clear = False
    if length is not None and until is not None:
        checking.key((*path, "until"), "`for` and `until` exclude each other", "keep one")
    elif length is not None and begin + length > end:
        over = begin + length
        message = f"the event goes on until {written(over)}, but {ends(end, over)}"
        checking.value((*path, "for"), message, LONGER.format("end"))
    else:
        clear, length = True, length if until is None else until - begin
    return Timing((begin / SECOND_NS,), None if length is None else length / SECOND_NS, clear)


def _again(
    checking: Checking, path: Path, every: int, begin: int, length: int | None, until: int
) -> Timing:
    for_s = None if length is None else length / SECOND_NS
    first = Timing((begin / SECOND_NS,), for_s, clear=False)
    if every == 0:
        checking.value((*path, "every"), "a time must be greater than zero", "write it like 10s")
        return first
    if length is not None and length >= every:
        message = "the event would repeat before it ends"
        checking.value((*path, "for"), message, f"less than {written(every)}")
        return first
    times = -(-(until - begin) // every)
    if times > MAX_TIMES:
        message = f"it would happen {times:,} times; at most {MAX_TIMES:,} are possible"
        checking.value((*path, "every"), message, "lengthen `every`, or set `until`")
        return first
    moments = tuple((begin + time * every) / SECOND_NS for time in range(times))
    return Timing(moments, for_s)


def _sound(checking: Checking, path: Path) -> bool:
    return all(checking.shaped.sound(*path, key) for key in ("at", "every", "for", "until"))
