"""Aggregation: publications to the same node wait for each other and leave as one message.

A bundle leaves when no other reading is expected, when its time is over, or when it is full. The time of a bundle is
that of its first publication, which has waited longest.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from math import floor

from nodes.overlay.collection.rules import LONGEST_PERIOD, Order, publisher_key
from nodes.overlay.topics.keys import Role, topic_key
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.topic import Topic
from nodes.protocol.joined import LENGTH, MOST_PARTS, join
from nodes.protocol.wire import Message, encode

MOST_BYTES = 16 * 1024

Expecting = Callable[[str, Container[int], float, float, float], bool]


@dataclass(slots=True)
class _Bundle:
    """The waiting publications of one topic to one node."""

    opened: float
    publications: list[Message] = field(default_factory=list)
    origins: set[int] = field(default_factory=set)
    size: int = 0


class Bundles:
    """The bundles of a node. `expecting` (topic, origins in a bundle, since, until, now): whether more is due."""

    def __init__(self, number: int, wait_s: float, expecting: Expecting) -> None:
        self._number = number
        self._wait_s = wait_s
        self._expecting = expecting
        self._open: dict[tuple[int, str], _Bundle] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, node: int, publication: Message, now: float) -> list[Message]:
        """Add a publication to this node. Return the messages that must leave at once, because the bundle is full."""
        out = []
        size = LENGTH.size + len(encode(publication))
        place = (node, publication.topic)
        bundle = self._open.get(place)
        if bundle is not None and (
            bundle.size + size > MOST_BYTES or len(bundle.publications) == MOST_PARTS
        ):
            out.append(self._pop(*place))
            bundle = None
        if size > MOST_BYTES:
            return [*out, publication]
        if bundle is None:
            bundle = self._open[place] = _Bundle(now)
        bundle.publications.append(publication)
        bundle.origins.add(publication.origin)
        bundle.size += size
        return out

    def leaving(self, now: float) -> list[tuple[int, Message]]:
        """The bundles that leave now, with their next nodes."""
        ready = []
        for (node, topic), bundle in self._open.items():
            until = bundle.opened + self._wait_s
            since = bundle.opened - self._wait_s
            if now >= until or not self._expecting(topic, bundle.origins, since, until, now):
                ready.append((node, topic))
        return [(node, self._pop(node, topic)) for node, topic in ready]

    def everything(self) -> list[tuple[int, Message]]:
        """Empty all bundles now."""
        return [(node, self._pop(node, topic)) for node, topic in list(self._open)]

    def give_back(self, node: int) -> list[Message]:
        """This node is gone: return the publications for it."""
        places = [place for place in self._open if place[0] == node]
        return [each for place in places for each in self._open.pop(place).publications]

    def next_deadline(self) -> float | None:
        return min((one.opened + self._wait_s for one in self._open.values()), default=None)

    def _pop(self, node: int, topic: str) -> Message:
        publications = self._open.pop((node, topic)).publications
        return publications[0] if len(publications) == 1 else join(publications, self._number)


# Schedules of sensors: the readings for which a node may wait before it forwards those it has.
#
# A sensor's period is the distance between its publications, on its own clock. Its next reading is expected one period
# after the last one arrived here, on the clock of this node. So clocks need not agree, and sensors need not publish at
# the same moment. A node does not wait for a sensor that has been silent for several periods.


SILENT_PERIODS = 3  # periods of silence
ALIKE = 0.1  # two distances that differ by no more than this part are one period
MOST_SENSORS = 4096
NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class _Sensor:
    """The last readings of one sensor."""

    published_ns: int
    came: float
    distances: tuple[float, ...] = ()  # the last two, seconds

    @property
    def period(self) -> float | None:
        """The shorter distance: a reading may have been lost between two others."""
        return min(self.distances, default=None)


class SensorSchedule:
    """Schedule of all sensors whose readings of a topic pass a node; those silent for longest are forgotten first."""

    def __init__(self) -> None:
        self._sensors: OrderedDict[int, _Sensor] = OrderedDict()

    def record(self, sensor: int, published_ns: int, now: float) -> None:
        """A reading of this sensor has arrived."""
        known = self._sensors.get(sensor)
        if known is None:
            self._sensors[sensor] = _Sensor(published_ns, now)
        elif published_ns > known.published_ns:
            distance = (published_ns - known.published_ns) / NANOSECONDS
            distances = (*known.distances[-1:], distance)
            self._sensors[sensor] = _Sensor(published_ns, now, distances)
        self._sensors.move_to_end(sensor)
        if len(self._sensors) > MOST_SENSORS:
            self._sensors.popitem(last=False)

    def steady_period(self, now: float) -> float | None:
        """The shortest period of all sensors that publish regularly; None: no such sensor is known."""
        periods = []
        for one in self._sensors.values():
            if len(one.distances) < 2 or _is_silent(one, now):
                continue
            if max(one.distances) - min(one.distances) <= ALIKE * max(one.distances):
                periods.append(min(one.distances))
        return min(periods, default=None)

    def expects(self, there: Container[int], since: float, until: float, now: float) -> bool:
        """Whether a reading of a sensor that is not `there` is due by `until`, or was due since `since` and is late."""
        for number, one in self._sensors.items():
            period = one.period
            if number in there or period is None or _is_silent(one, now):
                continue
            periods = max(1, floor((since - one.came) / period) + 1)
            if one.came + periods * period <= until:
                return True
        return False


def _is_silent(sensor: _Sensor, now: float) -> bool:
    period = sensor.period
    return period is not None and now - sensor.came > SILENT_PERIODS * period


MOST_PENDING = 64  # readings of a topic that wait for the collector's request
MILLISECONDS = 1000


@dataclass(slots=True)
class Stream(Topic):
    """A topic whose readings are collected, as one node knows it."""

    order: Order = Order.DESCENDING
    schedule: SensorSchedule = field(
        default_factory=SensorSchedule
    )  # of all readings that pass this node
    own: SensorSchedule = field(default_factory=SensorSchedule)  # of own clients
    period: int = LONGEST_PERIOD  # of own clients, in milliseconds, as it stands in the key
    collector: int | None = None  # the node to which readings go directly
    pending: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_PENDING))

    def key(self, role: Role, number: int) -> bytes:
        """The key of a node: publishers are ordered by their period."""
        if role is Role.SUBSCRIBER:
            return topic_key(self.name, role, number)
        return publisher_key(self.name, self.period, number, self.order)

    def learn_period(self, now: float) -> bool:
        """Learn the period of own clients; whether it differs from the period in the key."""
        steady = self.own.steady_period(now)
        if steady is None:
            return False
        period = min(max(1, round(steady * MILLISECONDS)), LONGEST_PERIOD)
        if abs(period - self.period) <= ALIKE * max(period, self.period):
            return False
        self.period = period
        return True

    def take_pending(self) -> list[Message]:
        """Take out the readings that wait here."""
        readings = list(self.pending)
        self.pending.clear()
        return readings


def stream_of(membership: Membership, topic: str) -> Stream | None:
    """The stream of this topic, if the node takes part in it."""
    found = membership.get(topic)
    return found if isinstance(found, Stream) else None


def streams_of(membership: Membership) -> list[Stream]:
    """All streams that the node takes part in."""
    return [topic for topic in membership if isinstance(topic, Stream)]
