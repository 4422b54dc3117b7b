"""A script from messages that were captured elsewhere: which sensor publishes for which origin, at which level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodes.protocol.interests import is_plain
from nodes.protocol.wire import HIGHEST_PRIORITY, LOWEST_PRIORITY, MAX_PAYLOAD_BYTES
from testbed.errors import InputError, few
from testbed.recording.script import Script, lengthened
from testbed.scenario import Publication
from testbed.topology.model import NodeKind, Topology
from testbed.topology.names import topic_problem

BY_QOS = {0: 1, 1: 3, 2: 5}  # unless --priority overrides it
QOS = {f"qos{qos}": qos for qos in BY_QOS}


class CapturedMessage(Protocol):
    """A captured message (`analysis.protocols.application_messages`)."""

    @property
    def at_ns(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def qos(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Priorities:
    """The level of a message: by its topic, else its own, else by its QoS."""

    topics: tuple[tuple[str, int], ...] = ()  # MQTT topic filters: alerts/#, +/tilt
    by_qos: Mapping[int, int] = field(default_factory=lambda: BY_QOS)

    def of(self, message: CapturedMessage) -> int:
        for topic_filter, level in self.topics:
            if matches(topic_filter, message.topic):
                return level
        if message.priority is not None:
            return message.priority
        return self.by_qos[message.qos or 0]


def read_priorities(texts: Sequence[str]) -> Priorities:
    """`alerts/#=5`, `qos1=4`; InputError for anything else."""
    topics, by_qos = [], dict(BY_QOS)
    for text in texts:
        name, _, number = text.rpartition("=")
        level = int(number) if number.isdecimal() and len(number) < 3 else 0
        if not name or not LOWEST_PRIORITY <= level <= HIGHEST_PRIORITY:
            raise InputError(
                f"--priority {text!r} is not a topic with a level from 1 to 5",
                "write it like --priority alerts/#=5, or qos1=4",
            )
        if name in QOS:
            by_qos[QOS[name]] = level
        else:
            topics.append((name, level))
    return Priorities(tuple(topics), by_qos)


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a topic matches an MQTT topic filter: + is one level, # all that follow (MQTT 4.7)."""
    levels, parts = topic_filter.split("/"), topic.split("/")
    for index, level in enumerate(levels):
        if level == "#":
            return True
        if index >= len(parts) or level not in ("+", parts[index]):
            return False
    return len(levels) == len(parts)


def script_from_capture(
    messages: Sequence[CapturedMessage], topology: Topology, priorities: Priorities
) -> tuple[Script, list[str]]:
    """The script of the lab's sensors, with the first message at its start; and notes for the user, as sentences.

    An origin with the name of a sensor is published by this sensor. The sensors publish for all other origins in turn,
    each origin always by the same sensor.
    """
    sensors = [node.name for node in topology.of_kind(NodeKind.SENSOR)]
    if not sensors:
        raise InputError(
            f"{topology.name} has no sensors that could publish", "choose another file with --on"
        )
    usable = [one for one in messages if _problem(one) is None]
    if not usable:
        raise InputError(
            "the captures hold no message that a lab could publish", _why_not(messages)
        )
    origins = dict.fromkeys(one.origin for one in usable)
    unknown = [name for name in origins if name not in sensors]
    publisher_of = {name: name for name in origins if name in sensors}
    publisher_of |= {name: sensors[index % len(sensors)] for index, name in enumerate(unknown)}
    start_ns = usable[0].at_ns
    publications = tuple(
        Publication(
            one.at_ns - start_ns,
            publisher_of[one.origin],
            one.topic,
            priorities.of(one),
            one.size,
            topology.place(publisher_of[one.origin], {}),
        )
        for one in usable
    )
    notes = _notes(unknown, publisher_of, messages, usable, topology, publications)
    return lengthened(Script(publications, (), 0.0)), notes


def _problem(message: CapturedMessage) -> str | None:
    """The reason why a lab cannot publish this message."""
    if not message.topic or topic_problem(message.topic) or not is_plain(message.topic):
        return "its topic cannot be one of ours"
    return "it is too big" if message.size > MAX_PAYLOAD_BYTES else None


def _why_not(messages: Sequence[CapturedMessage]) -> str:
    if not messages:
        return "are they of links on which our nodes, or MQTT without TLS, spoke?"
    return f"of the first, {_problem(messages[0])}"


def _notes(
    unknown: list[str],
    publisher_of: Mapping[str, str],
    messages: Sequence[CapturedMessage],
    usable: Sequence[CapturedMessage],
    topology: Topology,
    publications: Sequence[Publication],
) -> list[str]:
    notes = []
    if unknown:
        pairs = [f"{publisher_of[name]} for {name}" for name in unknown]
        notes.append(
            f"sensors of the lab publish in turn for publishers that it does not have: {few(pairs)}"
        )
    if left_out := len(messages) - len(usable):
        notes.append(f"{left_out} messages are left out: their topic or size cannot be ours")
    if any(one.priority is None for one in usable):
        notes.append("MQTT has no priorities: levels are by --priority, else by QoS")
    unsubscribed = dict.fromkeys(
        one.topic
        for one in publications
        if not topology.receivers(one.topic, one.priority, one.place)
    )
    if unsubscribed:
        notes.append(f"nobody in the lab wants {few([*unsubscribed])}")
    return notes
