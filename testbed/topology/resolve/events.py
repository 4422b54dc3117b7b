"""The events of a scenario: publications or an action each."""

from dataclasses import replace

from nodes.protocol.wire import MAX_PAYLOAD_BYTES
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Arrivals, Node, PublishEvent, Scenario
from testbed.topology.publication_times import (
    MAX_PUBLICATIONS,
    PublicationSchedule,
    most_publications,
    nanoseconds,
    publication_schedule,
)
from testbed.topology.resolve.actions import KINDS, Actions
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.interests import check_values
from testbed.topology.resolve.links import LinkProfiles
from testbed.topology.resolve.selection import Publishers
from testbed.topology.resolve.timing import LONGER, Timing, TriggerReader, ends, timing, written
from testbed.topology.schema.sections import RawEvent, RawPublish
from testbed.topology.units import SIZE


class Publications:
    """Collects the publish events of one file, and checks their times and sizes."""

    def __init__(
        self, checking: Checking, nodes: tuple[Node, ...], trigger_reader: TriggerReader
    ) -> None:
        self._checking = checking
        self._trigger_reader = trigger_reader
        self._publishers = Publishers(checking, nodes)
        self.found: list[PublishEvent] = []
        self._volume = 0

    def add(self, path: Path, event: RawEvent, raw: RawPublish, duration_s: float) -> bool:
        """Resolve this event; False if the scenario would publish too many messages."""
        checking, inner = self._checking, (*path, "publish")
        when = timing(checking, path, event, duration_s, self._trigger_reader)
        named = self._publishers.of(inner, raw)
        raw = _with_length(checking, path, raw, when)
        _check_repetition(checking, inner, raw)
        check_values(checking, inner, raw.values)
        for index, moment in enumerate(when.moments_s):
            publish = replace(_publish(moment, raw, named), when=when.when)
            if index == 0 and when.clear:
                _check_times(checking, path, raw, publish, duration_s)
            self.found.append(publish)
            # Every selected node counts, also of an invalid event: checks take time, too.
            self._volume += max(len(named), most_publications(publish, duration_s))
            if self._volume > MAX_PUBLICATIONS:
                if checking.shaped.sound("scenario", "duration"):
                    checking.key(
                        inner,
                        f"up to here the scenario publishes more than {MAX_PUBLICATIONS:,} messages",
                        "lengthen `period` or lower `rate`, shorten `for`, or lower `count`",
                    )
                return False
        return True


def _with_length(checking: Checking, path: Path, raw: RawPublish, when: Timing) -> RawPublish:
    """Set the duration of the repetition from `for` or `until` of the event."""
    if when.for_s is None:
        return raw
    if raw.length is not None:
        checking.key((*path, "publish", "for"), "`for` is given twice", "keep that of the event")
        return raw
    return raw.model_copy(update={"length": when.for_s})


def _check_repetition(checking: Checking, path: Path, raw: RawPublish) -> None:
    if raw.period is not None and raw.rate is not None:
        checking.key((*path, "rate"), "`period` and `rate` exclude each other", "keep one")
    if raw.period == 0:
        checking.value((*path, "period"), "a period must be greater than zero", "write it like 1s")
    if raw.period is None and raw.rate is None and checking.shaped.sound(*path):
        given = (("for", raw.length), ("count", raw.count), ("arrivals", raw.arrivals))
        for key in (key for key, value in given if value is not None):
            frequency = "rate: 2/min" if key == "arrivals" else "period: 1s"
            checking.key(
                (*path, key),
                f"`{key}` without `period` or `rate`: the frequency is missing",
                f"add `{frequency}`, or remove `{key}`",
            )
    if raw.size > MAX_PAYLOAD_BYTES:
        most = SIZE.write(MAX_PAYLOAD_BYTES)
        checking.value((*path, "size"), f"a message has at most {most}", "send several")


def _check_times(
    checking: Checking, path: Path, raw: RawPublish, publish: PublishEvent, duration_s: float
) -> None:
    """Refuse events that the scenario's end would cut off, and events that publish nothing."""
    if not checking.shaped.sound("scenario", "duration") or not checking.shaped.sound(*path):
        return
    inner = (*path, "publish")
    schedule = publication_schedule(publish, duration_s)
    begin, end, spread = schedule.begin_ns, nanoseconds(duration_s), nanoseconds(raw.spread)
    length = None if raw.length is None else nanoseconds(raw.length)
    most_spread = end - begin if length is None else length
    if length == 0:
        hint = "write it like 10s, or remove the event"
        checking.value((*inner, "for"), "an event with a duration of zero publishes nothing", hint)
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
    elif length is None and (last := _last_moment(schedule, spread)) >= end:
        message = f"the last message would be published at {written(last)}, but {ends(end, last)}"
        checking.value((*inner, "count"), message, LONGER.format("end"))


def _last_moment(schedule: PublicationSchedule, spread_ns: int) -> int:
    """The latest time of the last message by `count`; without a count, of the first one.

    Of Poisson arrivals the latest start: no time is known of their messages.
    """
    latest_start = max(0, spread_ns - 1)  # the end of a spread is excluded
    if schedule.poisson:
        return schedule.begin_ns + latest_start
    return schedule.moment((schedule.most or 1) - 1, latest_start)


def _publish(at_s: float, raw: RawPublish, nodes: tuple[str, ...]) -> PublishEvent:
    period_s, per_period = raw.period or None, 1
    if period_s is None and raw.rate is not None:
        period_s, per_period = float(raw.rate.numerator), raw.rate.denominator
    return PublishEvent(
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
        share=1.0 if raw.share is None else raw.share,
        values=tuple(sorted(raw.values.items())),
        arrivals=Arrivals(raw.arrivals or Arrivals.PERIODIC),
    )


EVENT_KINDS = ("publish", *KINDS)


def scenario(checking: Checking, nodes: tuple[Node, ...], profiles: LinkProfiles) -> Scenario:
    """Resolve the scenario's events; mistakes become problems."""
    raw = checking.file.scenario
    if raw is None:
        return Scenario()
    trigger_reader = TriggerReader(checking, nodes)
    publications = Publications(checking, nodes, trigger_reader)
    actions = Actions(checking, nodes, profiles, trigger_reader)
    for index, event in zip(checking.shaped.events, raw.events, strict=True):
        path: Path = ("scenario", "events", index)
        if not _has_one_kind(checking, path, event):
            continue
        if event.publish is None:
            actions.add(path, event, raw.duration)
        elif not publications.add(path, event, event.publish, raw.duration):
            break
    return Scenario(
        raw.duration, raw.settle, tuple(publications.found), actions.in_order(), raw.speed
    )


def _has_one_kind(checking: Checking, path: Path, event: RawEvent) -> bool:
    """Whether the event has exactly one kind, so that the order of actions is clear."""
    written = [name for name in EVENT_KINDS if getattr(event, name) is not None]
    if len(written) == 1:
        return True
    if not written and checking.shaped.sound(*path):
        checking.value(path, "the event has no action", f"add one of {', '.join(EVENT_KINDS)}")
    for name in written[1:]:
        checking.key(
            (*path, name), f"`{written[0]}` and `{name}` in one event", "make two events of them"
        )
    return False
