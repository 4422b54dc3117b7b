"""The scenario of the file to what happens in it: who publishes what, what fails; times and amounts checked."""

from nodes.wire import MAX_PAYLOAD_BYTES
from testbed.topology.areas import check_values
from testbed.topology.checking import Checking
from testbed.topology.ends import LONGER, check_beginning, ends, written
from testbed.topology.faults import Faults
from testbed.topology.model import FaultKind, Node, Publish, Scenario
from testbed.topology.publishers import Publishers
from testbed.topology.raw import RawEvent, RawPublish
from testbed.topology.source_map import Path
from testbed.topology.units import SIZE
from testbed.topology.volume import (
    MAX_PUBLICATIONS,
    Rhythm,
    most_publications,
    nanoseconds,
    rhythm,
)

THINGS = ("publish", *FaultKind)


def scenario(checking: Checking, nodes: tuple[Node, ...]) -> Scenario:
    """What happens; whatever is wrong with it goes to the problems."""
    raw = checking.file.scenario
    if raw is None:
        return Scenario()
    publishers = Publishers(checking, nodes)
    faults = Faults(checking, nodes)
    events: list[Publish] = []
    volume = 0
    for place, event in zip(checking.shaped.events, raw.events, strict=True):
        path: Path = ("scenario", "events", place)
        if not _is_one_thing(checking, path, event):
            continue
        if event.publish is None:
            faults.add(path, event, raw.duration)
            continue
        _check_repetition(checking, (*path, "publish"), event.publish)
        named = publishers.of((*path, "publish"), event.publish)
        check_values(checking, (*path, "publish"), event.publish.values)
        publish = _publish(event.at, event.publish, named)
        _check_times(checking, path, event.publish, publish, raw.duration)
        events.append(publish)
        # Every selected node counts, also where an event is too broken to publish: checking takes time, too.
        volume += max(len(named), most_publications(publish, raw.duration))
        if volume > MAX_PUBLICATIONS:
            if checking.shaped.sound("scenario", "duration"):
                checking.key(
                    (*path, "publish"),
                    f"up to here the scenario publishes more than {MAX_PUBLICATIONS:,} messages",
                    "lengthen `period`, shorten `for`, or lower `count`",
                )
            break
    return Scenario(raw.duration, raw.settle, tuple(events), faults.in_order(), raw.speed)


def _is_one_thing(checking: Checking, path: Path, event: RawEvent) -> bool:
    """Each event is about one thing, so that it is clear what comes first."""
    written = [name for name in THINGS if getattr(event, name) is not None]
    if len(written) == 1:
        return True
    if not written and checking.shaped.sound(*path):
        checking.value(path, "nothing happens here", f"add one of {', '.join(THINGS)}")
    for name in written[1:]:
        checking.key(
            (*path, name), f"`{written[0]}` and `{name}` in one event", "make two events of them"
        )
    return False


def _check_repetition(checking: Checking, path: Path, raw: RawPublish) -> None:
    if raw.period is not None and raw.rate is not None:
        checking.key((*path, "rate"), "`period` and `rate` say the same thing twice", "keep one")
    if raw.period == 0:
        checking.value((*path, "period"), "a period of zero never ends", "write it like 1s")
    if raw.period is None and raw.rate is None and checking.shaped.sound(*path):
        for key, given in (("for", raw.length), ("count", raw.count)):
            if given is not None:
                checking.key(
                    (*path, key),
                    f"`{key}` without `period` or `rate`: how often is not said",
                    f"add `period: 1s`, or remove `{key}`",
                )
    if raw.size > MAX_PAYLOAD_BYTES:
        most = SIZE.write(MAX_PAYLOAD_BYTES)
        checking.value((*path, "size"), f"a message has at most {most}", "send several")


def _check_times(
    checking: Checking, path: Path, raw: RawPublish, publish: Publish, duration_s: float
) -> None:
    """Nothing may be cut off silently by the scenario's end, and every event must publish something."""
    if not checking.shaped.sound("scenario", "duration") or not checking.shaped.sound(*path):
        return
    inner = (*path, "publish")
    beat = rhythm(publish, duration_s)
    begin, end, spread = beat.begin_ns, nanoseconds(duration_s), nanoseconds(raw.spread)
    length = None if raw.length is None else nanoseconds(raw.length)
    most_spread = end - begin if length is None else length
    if begin >= end:
        check_beginning(checking, path, publish.at_s, duration_s)
    elif length == 0:
        hint = "write it like 10s, or remove the event"
        checking.value((*inner, "for"), "an event of no length publishes nothing", hint)
    elif length is not None and begin + length > end:
        until = begin + length
        message = f"the event goes on until {written(until)}, but {ends(end, until)}"
        checking.value((*inner, "for"), message, LONGER.format("end"))
    elif spread > most_spread:
        checking.value(
            (*inner, "spread"),
            f"a spread of {written(spread)} is longer than the event itself",
            f"at most {written(most_spread)}",
        )
    elif length is None and (last := _last_moment(beat, spread)) >= end:
        message = f"the last message would be published at {written(last)}, but {ends(end, last)}"
        checking.value((*inner, "count"), message, LONGER.format("end"))


def _last_moment(beat: Rhythm, spread_ns: int) -> int:
    """When the last of the messages that were counted may be published; without a count, the first one."""
    latest_start = max(0, spread_ns - 1)  # a spread's end is excluded, too
    return beat.moment((beat.most or 1) - 1, latest_start)


def _publish(at_s: float, raw: RawPublish, nodes: tuple[str, ...]) -> Publish:
    period_s, per_period = raw.period or None, 1
    if period_s is None and raw.rate is not None:
        period_s, per_period = float(raw.rate.numerator), raw.rate.denominator
    return Publish(
        at_s=at_s,
        nodes=nodes,
        topic=raw.topic,
        priority=raw.priority,
        size=raw.size,
        period_s=period_s,
        for_s=raw.length,
        count=raw.count,
        probability=raw.probability,
        spread_s=raw.spread,
        per_period=per_period,
        values=tuple(sorted(raw.values.items())),
    )
