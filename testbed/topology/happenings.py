"""The scenario of the file to what is published: publishers looked up, times and amounts checked."""

from nodes.wire import MAX_PAYLOAD_BYTES
from testbed.topology.checking import Checking
from testbed.topology.model import Node, Publish, Scenario
from testbed.topology.publishers import Publishers
from testbed.topology.raw import RawEvent, RawPublish
from testbed.topology.source_map import Path
from testbed.topology.units import DURATION, SIZE
from testbed.topology.volume import (
    MAX_PUBLICATIONS,
    SECOND_NS,
    Rhythm,
    most_publications,
    nanoseconds,
    rhythm,
)

_LONGER = "lengthen the scenario's `duration`, or let the event {} earlier"


def scenario(checking: Checking, nodes: tuple[Node, ...]) -> Scenario:
    """What happens; whatever is wrong with it goes to the problems."""
    raw = checking.file.scenario
    if raw is None:
        return Scenario()
    publishers = Publishers(checking, nodes)
    events: list[Publish] = []
    volume = 0
    for place, event in zip(checking.shaped.events, raw.events, strict=True):
        path: Path = ("scenario", "events", place)
        _check_repetition(checking, (*path, "publish"), event.publish)
        named = publishers.of((*path, "publish"), event.publish)
        publish = _publish(event, named)
        _check_times(checking, path, event, publish, raw.duration)
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
    return Scenario(raw.duration, raw.settle, tuple(events))


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
    checking: Checking, path: Path, event: RawEvent, publish: Publish, duration_s: float
) -> None:
    """Nothing may be cut off silently by the scenario's end, and every event must publish something."""
    if not checking.shaped.sound("scenario", "duration") or not checking.shaped.sound(*path):
        return
    raw = event.publish
    inner = (*path, "publish")
    beat = rhythm(publish, duration_s)
    begin, end, spread = beat.begin_ns, nanoseconds(duration_s), nanoseconds(raw.spread)
    length = None if raw.length is None else nanoseconds(raw.length)
    most_spread = end - begin if length is None else length
    if begin >= end:
        message = f"the event begins at {_written(begin)}, but {_ends(end, begin)}"
        checking.value((*path, "at"), message, _LONGER.format("begin"))
    elif length == 0:
        hint = "write it like 10s, or remove the event"
        checking.value((*inner, "for"), "an event of no length publishes nothing", hint)
    elif length is not None and begin + length > end:
        until = begin + length
        message = f"the event goes on until {_written(until)}, but {_ends(end, until)}"
        checking.value((*inner, "for"), message, _LONGER.format("end"))
    elif spread > most_spread:
        checking.value(
            (*inner, "spread"),
            f"a spread of {_written(spread)} is longer than the event itself",
            f"at most {_written(most_spread)}",
        )
    elif length is None and (last := _last_moment(beat, spread)) >= end:
        message = f"the last message would be published at {_written(last)}, but {_ends(end, last)}"
        checking.value((*inner, "count"), message, _LONGER.format("end"))


def _last_moment(beat: Rhythm, spread_ns: int) -> int:
    """When the last of the messages that were counted may be published; without a count, the first one."""
    latest_start = max(0, spread_ns - 1)  # a spread's end is excluded, too
    return beat.moment((beat.most or 1) - 1, latest_start)


def _ends(end: int, moment: int) -> str:
    excluded = ", the end excluded" if moment == end else ""
    return f"the scenario ends at {_written(end)}{excluded}"


def _written(time_ns: int) -> str:
    return DURATION.write(time_ns / SECOND_NS)


def _publish(event: RawEvent, nodes: tuple[str, ...]) -> Publish:
    raw = event.publish
    period_s, per_period = raw.period or None, 1
    if period_s is None and raw.rate is not None:
        period_s, per_period = float(raw.rate.numerator), raw.rate.denominator
    return Publish(
        at_s=event.at,
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
    )
