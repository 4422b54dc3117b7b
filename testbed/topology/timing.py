"""When an event happens, how often, and how long it lasts: `at` or `when`, `every`, `for` and `until` of the file."""

from dataclasses import dataclass

from testbed.topology.checking import Checking
from testbed.topology.ends import LONGER, check_beginning, ends, written
from testbed.topology.model import Trigger
from testbed.topology.raw import RawEvent
from testbed.topology.source_map import Path
from testbed.topology.volume import SECOND_NS, nanoseconds
from testbed.topology.waits import Waits

MAX_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Timing:
    """The moments at which it begins, and how long it lasts each time; None: nothing ends it.

    `clear`: nothing was wrong with it.
    """

    moments_s: tuple[float, ...]
    for_s: float | None = None
    clear: bool = True
    when: Trigger | None = None  # then the moment counts from when that has come


def timing(
    checking: Checking, path: Path, event: RawEvent, duration_s: float, waits: Waits
) -> Timing:
    """As far as it is clear; whatever is wrong with it goes to the problems."""
    if event.when is not None:
        return _awaited(checking, path, event, waits.trigger((*path, "when"), event.when))
    begin_s = event.at or 0.0
    first = Timing((begin_s,), event.length, clear=False)
    if not _begins(checking, path, event, duration_s):
        return first
    begin, end = nanoseconds(begin_s), nanoseconds(duration_s)
    until = None if event.until is None else nanoseconds(event.until)
    length = None if event.length is None else nanoseconds(event.length)
    if until is not None and not begin < until <= end:
        if until <= begin:
            message, hint = f"that is not after {written(begin)}", "let it end after it begins"
        else:
            message, hint = f"that is late: {ends(end, until)}", LONGER.format("end")
        checking.value((*path, "until"), message, hint)
        return first
    if length == 0:
        checking.value((*path, "for"), "no time at all", "write it like 10s, or remove `for`")
        return first
    if event.every is None:
        return _once(checking, path, begin, length, until, end)
    return _again(checking, path, nanoseconds(event.every), begin, length, until or end)


def _awaited(checking: Checking, path: Path, event: RawEvent, when: Trigger) -> Timing:
    for key, given in (("at", event.at), ("every", event.every), ("until", event.until)):
        if given is not None:
            message = f"`when` and `{key}` in one event: it begins once, when that has come"
            checking.key((*path, key), message, "keep one; `for` says how long it lasts")
    after_s = event.when.after if event.when else 0.0
    return Timing((after_s,), event.length, _sound(checking, path), when)


def _begins(checking: Checking, path: Path, event: RawEvent, duration_s: float) -> bool:
    """Whether it is clear when, and that is before the scenario ends."""
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
        checking.key((*path, "until"), "`for` and `until` say the same thing twice", "keep one")
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
        checking.value((*path, "every"), "a time of zero never ends", "write it like 10s")
        return first
    if length is not None and length >= every:
        message = "it would begin again before it is over"
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
