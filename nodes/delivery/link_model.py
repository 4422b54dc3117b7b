"""When the link is free, estimated from the bytes in the kernel: keep the link busy, and the kernel's queue short.

The kernel reports how many bytes are not acknowledged. On a link with delay, an acknowledgement comes a round trip
after its bytes have passed the link, and a packet at a time. So a mere cap on those bytes would leave the link idle or
fill a queue. Instead this module models the link: its rate, and when the last byte handed over will have passed it. The
next chunk may follow `lead` before that.

Acknowledgements correct the model. Bytes that a sample finds acknowledged passed the link a round trip before, and not
before the previous sample, which had not found them yet:

    the model's time is in between     the model is right
    ... is later                       the link is faster: the rate grows, by little at once, because after a pause
                                       some links let a few packets pass at full speed. At the beginning, and after a
                                       cut up to the rate known before, it doubles
    ... is earlier                     the link is slower: the rate falls, at most to a half. If the next
                                       acknowledgement is early again, jitter was the reason: from then on the model
                                       tolerates so much lateness

On a link that is not busy, acknowledgements seem early by up to `lead`, so a rate that is too low does not stay.
Whatever the model estimates, the sender hands nothing over while the kernel holds more than rate x (round trip + slack)
and a packet: so a cut link stops the sender.

On a fast link with jitter, single acknowledgements carry no information about the rate. There the model limits the
bytes in flight instead (`FastLinkModel`).

Tested on a simulated link (tests/unit/nodes/delivery/test_link_model.py): with enough to send, the link is busy for at
least 95 %, and the bytes in front of a new message take at most the time of one piece, 15 % of a packet's time and 5
ms. The shortest round trip must be right: if the delay grows while the connection lives, each piece waits for the
difference.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from statistics import median

# Jitter: how much later than the earliest ones acknowledgements come, while the rate of the link stays the same.
#
# On a busy link acknowledgements follow each other at its rate. If the link becomes slower, they come later and later;
# if it becomes faster, earlier and earlier. Only jitter makes them later for a while. Its measure is the smaller of two
# values: how far lateness rises, and how far it falls again.


LOOKED_BACK, GRAINS = 2.0, 8  # window, in jitters; parts of a jitter that merge acknowledgements
LEAST = 8  # acknowledgements in the window
REMEMBERED, TELLING, USUAL = 64, 6, 0.9  # nine of ten were at most so high
TIMES = 1.5  # a bump seldom has the largest lateness that is possible

Point = tuple[float, float]  # bytes acknowledged in all, when


@dataclass(slots=True)
class _Grain:
    """Acknowledgements of about the same time."""

    at: float
    least: Point  # the least late
    most: Point


class Jitter:
    """Estimates the lateness of acknowledgements to tolerate, `span_s`."""

    def __init__(self) -> None:
        self.span_s = 0.0
        self._grains: deque[_Grain] = deque()
        self._bumps: deque[float] = deque(maxlen=REMEMBERED)

    def on_pause(self) -> None:
        """The link was idle: later acknowledgements cannot be compared with earlier ones."""
        self._grains.clear()

    def on_acknowledged(self, position: float, earliest: float, latest: float, rate: float) -> None:
        """So many bytes in all are acknowledged since some moment between these two."""

        def late(point: Point) -> float:
            return point[1] - point[0] / rate

        least, most = (position, latest), (position, earliest)
        new = not self._grains or latest - self._grains[-1].at >= self.span_s / GRAINS
        if new:
            self._grains.append(_Grain(latest, least, most))
        else:
            last = self._grains[-1]
            last.least = min(last.least, least, key=late)
            last.most = max(last.most, most, key=late)
        while len(self._grains) > LEAST and self._grains[0].at < latest - LOOKED_BACK * self.span_s:
            self._grains.popleft()
        mosts = [late(grain.most) for grain in self._grains]
        top = mosts.index(max(mosts))
        risen_from = min(
            (late(grain.least) for grain in islice(self._grains, top)), default=mosts[top]
        )
        self._remember(max(0.0, mosts[top] - max(risen_from, late(least))), new)

    def _remember(self, bump: float, new: bool) -> None:
        if new or not self._bumps:
            self._bumps.append(bump)
        else:
            self._bumps[-1] = max(self._bumps[-1], bump)
        if len(self._bumps) >= TELLING:
            self.span_s = TIMES * sorted(self._bumps)[int(USUAL * len(self._bumps))]


# Fast links, on which a packet takes less time than the jitter: the bytes in flight are limited to those that the link
# delivers in a round trip.
#
# There a single acknowledgement carries no information about the link, but many together do. The model measures rate
# and round trip over intervals that are long compared with the jitter, and takes the best of the last ones.
# Periodically it allows a little more, to see whether the link carries it, and then a little less, to see the round
# trip without a queue. (BBR does so with the shortest round trip. Here it is the mean one, because the link should be
# busy whatever the jitter is.)


MOST_PACKET_S = 0.024  # on a slower link each packet gives a better estimate
HOLDS, STILL_HOLDS = 1.0, 0.5  # jitter, in packet times
PAUSE_S = 0.005  # plus the jitter: a longer pause interrupts a measurement
RATES, TRIPS = 8, 10  # measurements that count
GAINS = (1.25, 0.75, *(1.0,) * 6)  # in turn
FIRST_GAIN, BETTER, PATIENCE = 2.0, 1.15, 3  # until so many in a row are not better by this factor
LEAST_JITTERS, LEAST_PACKETS = 2.0, 4.0  # for a measurement


class FastLinkModel:
    """Measures a link; `holds`: whether the estimate applies."""

    def __init__(self) -> None:
        self.holds = False
        self._jitter = Jitter()
        self._rates: deque[float] = deque(maxlen=RATES)
        self._trips: deque[float] = deque(maxlen=TRIPS)
        self._no_better = 0
        self._measured = 0
        self._restart(None)

    def _restart(self, since: tuple[float, float] | None) -> None:
        self._since = since  # position and time
        self._sum_s, self._looks = 0.0, 0

    def on_pause(self, seconds: float) -> None:
        """The link was idle for so long, by the model."""
        if seconds > PAUSE_S + self._jitter.span_s:
            self._restart(None)
            self._jitter.on_pause()

    @property
    def rate(self) -> float:
        """Bytes a second, headers included."""
        return max(self._rates)

    @property
    def look_s(self) -> float:
        """Seconds until the next sample."""
        return self._jitter.span_s / 16

    def most_under_way(self) -> float:
        """The limit for bytes in flight, headers included."""
        growing = self._no_better < PATIENCE
        gain = FIRST_GAIN if growing else GAINS[self._measured % len(GAINS)]
        return gain * self.rate * min(self._trips)

    def on_acknowledged(
        self,
        position: float,
        looks: tuple[float, float],
        trip_s: float,
        rate: float,
        packet_bytes: int,
    ) -> None:
        """So many bytes in all were acknowledged between two samples, the last ones after such a round trip."""
        self._jitter.on_acknowledged(position, *looks, rate)
        self._measure(position, looks[1], trip_s, packet_bytes / rate)
        held, self.holds = self.holds, self._is_one(packet_bytes)
        if self.holds != held:
            self._restart((position, looks[1]))

    def _is_one(self, packet_bytes: int) -> bool:
        if not self._rates:
            return False
        packet_s = packet_bytes / median(self._rates)
        least = packet_s * (STILL_HOLDS if self.holds else HOLDS)
        return packet_s < MOST_PACKET_S and self._jitter.span_s > least

    def _measure(self, position: float, now: float, trip_s: float, packet_s: float) -> None:
        if self._since is None:
            self._restart((position, now))
            return
        self._sum_s += trip_s
        self._looks += 1
        took = now - self._since[1]
        usual_s = self._sum_s / self._looks
        least = max(LEAST_JITTERS * self._jitter.span_s, LEAST_PACKETS * packet_s)
        if took < max(least, min(self._trips, default=0.0)):
            return
        measured = (position - self._since[0]) / took
        if self.holds:
            better = measured > BETTER * self.rate and self._no_better < PATIENCE
            self._no_better = 0 if better else self._no_better + 1
            self._measured += 1
        self._rates.append(measured)
        self._trips.append(usual_s)
        self._restart((position, now))


PACKET_BYTES = 66  # Ethernet, IPv4 and TCP with time stamps, around each packet
FRAME_BYTES = 4  # in front of each chunk: the WebSocket header (unmasked, 126 to 65,535 bytes)

LEAD_S, LEAD_PART = (
    0.003,
    0.05,
)  # so long before the link is free, at least; or this part of a packet's time
SLACK_S = 0.005
LEAST_TRIP_S = 0.02  # round trip of a link that may have much jitter
LOOK_S, LOOK_PART = 0.001, 0.025  # minimum time between two samples; the part is of a packet's time
LOOK_EARLY_PART = 0.1  # of a packet's time before its expected acknowledgement
LONGEST_LOOK_S = 0.25
TELLING_LOOKS = 4  # a packet that takes longer than so many samples suffices to know the rate

FIRST_GROWTH, GROWTH, LEAST_GROWTH = 2.0, 1.1, 0.02
FIRST_WINDOW = 10  # packets
PLAUSIBLE = 4  # times the rate that was seen
CLEARLY = 0.2  # of the modelled time: so much earlier
MEMORY_S = 0.02  # or a quarter of the round trip
MOST_JITTER_S, JITTER_FADES = 0.1, 0.98
KNOWN_FADES = 0.9  # with each late acknowledgement
LOWEST_RATE, HIGHEST_RATE = 50.0, 1e10  # bytes a second


def _frame_bytes(size: int) -> int:
    """The header size of a frame of so many bytes, unmasked (RFC 6455, 5.2)."""
    return 2 if size < 126 else FRAME_BYTES if size < 1 << 16 else 10


@dataclass(slots=True)
class _Handed:
    left: int  # bytes not acknowledged
    cost: float  # bytes on the link for each of them, headers included
    at: float


@dataclass(frozen=True, slots=True)
class _Acknowledgement:
    """Bytes that were found acknowledged, and when they passed the link."""

    through: float  # by the model
    since: float  # when the link began with them
    cost: float
    paused: bool  # before that the link was idle
    handed_at: float
    earliest: float  # by the samples of the kernel
    latest: float


class KernelLinkModel:
    """A model of the link; all its times are those of `now`."""

    def __init__(self) -> None:
        self.rate: float | None = None  # bytes a second, headers included
        self._begin(0, 0.0)

    def _begin(self, packet_payload: int, now: float) -> None:
        self.rate = None
        self._packet = packet_payload + FRAME_BYTES
        self._unit = self._packet  # the unit of acknowledgement: a packet, or a shorter chunk
        self._under_way: deque[_Handed] = deque()
        self._unsent = 0  # the sum of all `left`
        self._through = now  # when the last acknowledged byte had passed the link
        self._free_at = now  # when the last byte handed over will have passed it
        self._looked = now
        self._round_trip_s: float | None = None
        self._starting = True
        self._arrived = 0  # packets acknowledged while starting
        self._doubled_at = now
        self._jitter_s = 0.0  # tolerated lateness of acknowledgements
        self._was_late = False
        self._known_rate = 0.0  # the last rate at which the model was right
        self._fast = FastLinkModel()
        self._position = 0.0  # bytes acknowledged, headers included

    def on_up(self, packet_payload: int, now: float) -> None:
        self._begin(packet_payload, now)

    @property
    def sure_rate(self) -> float | None:
        """The rate that the link has confirmed; None at the beginning."""
        if self._starting or self.rate is None or not self._known_rate:
            return None
        return min(self.rate, self._known_rate)

    @property
    def within_first_window(self) -> bool:
        """Whether less is in flight than TCP would send without knowing the link (RFC 6928)."""
        return self._unsent < FIRST_WINDOW * self._packet

    def on_ack(self, number: int, now: float) -> None:
        pass

    def free(self, now: float) -> bool:
        if not self._under_way:
            return True
        if self.rate is None:
            return False
        if self._fast.holds:
            most = self._fast.most_under_way() * self._unit / (self._unit + PACKET_BYTES)
            return self._unsent + self._unit / 2 <= most
        return now >= self._free_at - self._lead() and self._unsent <= self._most_unsent()

    def on_handed(self, size: int, at: float) -> None:
        size += _frame_bytes(size)
        packets = -(-size // self._packet)
        self._unit = min(size, self._packet)
        cost = 1 + PACKET_BYTES * packets / size
        self._under_way.append(_Handed(size, cost, at))
        self._unsent += size
        if self.rate is not None:
            self._free_at = max(self._free_at, at) + size * cost / self.rate

    def on_unsent(self, unsent_bytes: int, now: float, round_trip_s: float | None) -> None:
        if round_trip_s is not None:
            self._round_trip_s = min(round_trip_s, self._round_trip_s or round_trip_s)
        if (acknowledged := self._unsent - unsent_bytes) > 0:
            self._learn(acknowledged, now)
        self._looked = now

    def look_at(self, waiting: bool) -> float | None:
        if not self._under_way or not (waiting or self.rate is None):
            return None
        if self.rate is None:
            return self._looked + self._pause(self._looked - self._under_way[0].at)
        if self._fast.holds:
            return self._looked + max(LOOK_S, self._fast.look_s)
        unit_s = self._unit_s()
        first = self._under_way[0]
        expected = max(self._through, first.at) + min(first.left * first.cost / self.rate, unit_s)
        expected += self._round_trip_s or 0.0
        look = max(
            expected - LOOK_EARLY_PART * unit_s,
            self._looked + max(self._pause(self._looked - expected - unit_s), LOOK_PART * unit_s),
        )
        ready = self._free_at - self._lead()
        if ready > self._looked:
            look = min(look, ready)
        return min(max(look, self._looked + LOOK_S), self._looked + LONGEST_LOOK_S)

    def _learn(self, acknowledged: int, now: float) -> None:
        """Learn from bytes that were acknowledged since the last sample."""
        through, since, cost = self._through, self._through, 0.0
        handed_at, paused = now, False
        self._unsent -= acknowledged
        while acknowledged > 0:
            handed = self._under_way[0]
            part = min(acknowledged, handed.left)
            if handed.at > through:  # the link was idle
                self._fast.on_pause(handed.at - through)
                through, since, cost, paused = handed.at, handed.at, 0.0, True
            cost += part * handed.cost
            self._position += part * handed.cost
            through += part * handed.cost / (self.rate or HIGHEST_RATE)
            handed_at = handed.at
            acknowledged -= part
            handed.left -= part
            if handed.left == 0:
                self._under_way.popleft()
        delay = self._round_trip_s or 0.0
        if self.rate is None:
            self._through = now - delay
            took = max(now - handed_at - delay, (now - handed_at) / 4, LOOK_S)
            self._set_rate(cost / took)
        else:
            seen = _Acknowledgement(
                through, since, cost, paused, handed_at, self._looked - delay, now - delay
            )
            self._follow_fast_line(now, now - handed_at)
            self._through = seen.latest if self._fast.holds else self._corrected(seen, now)
        self._arrived += 1
        self._foresee()

    def _follow_fast_line(self, now: float, trip_s: float) -> None:
        """Measure the link as a fast one, and decide anew with each acknowledgement whether it is one."""
        assert self.rate is not None
        if (self._round_trip_s or 0.0) < LEAST_TRIP_S and not self._fast.holds:
            return  # the seeming jitter comes from a token bucket, or from the machine
        looks = (self._looked, now)
        packet = self._packet + PACKET_BYTES
        self._fast.on_acknowledged(self._position, looks, trip_s, self.rate, packet)
        if self._fast.holds:
            self._starting = False
            self._set_rate(self._fast.rate)
            self._known_rate = self._fast.rate

    def _corrected(self, seen: _Acknowledgement, now: float) -> float:
        """When the bytes passed the link; corrects the rate."""
        assert self.rate is not None
        was_late, self._was_late = self._was_late, False
        self._jitter_s *= JITTER_FADES
        if seen.through > seen.latest:
            if was_late and not seen.paused:
                self._jitter_s = min(self._jitter_s + seen.through - seen.latest, MOST_JITTER_S)
            self._grow(seen, now)
            return seen.latest
        earliest = seen.earliest - self._jitter_s
        if seen.through >= earliest:
            if self._unit_s() > TELLING_LOOKS * LOOK_S:
                self._starting = False
            if not seen.paused:
                self._known_rate = self.rate
            return seen.through
        self._was_late = True
        if self._starting:
            self._starting = False
            self._set_rate(seen.cost / max(earliest - seen.since, LOOK_S))
            return earliest
        through = max((seen.through + earliest) / 2, earliest - self._unit_s() / 4)
        rate = self._seen_rate(seen.cost, through - seen.since)
        self._set_rate(max((self.rate + rate) / 2, self.rate / 2))
        self._known_rate = max(self._known_rate * KNOWN_FADES, self.rate)
        return through

    def _grow(self, seen: _Acknowledgement, now: float) -> None:
        """The link is faster: raise the rate to the one that was seen, or by a little if the link was idle."""
        assert self.rate is not None
        took = seen.latest - seen.since
        if self.rate > PLAUSIBLE * seen.cost / max(took, LOOK_S):
            return  # the rate is beyond what the samples can show
        growth = min(self._seen_rate(seen.cost, took) / self.rate, GROWTH)
        if self._starting or self.rate < self._known_rate:
            clearly = seen.through - seen.latest > CLEARLY * (seen.through - seen.since)
            if self._starting:
                growth = 1.0
            if clearly and seen.handed_at >= self._doubled_at:  # by bytes that left at this rate
                growth, self._doubled_at = FIRST_GROWTH, now
        self._set_rate(self.rate * max(growth, 1 + LEAST_GROWTH * min(1.0, took / self._memory())))

    def _seen_rate(self, cost: float, took: float) -> float:
        """The rate of a few packets in a short time is uncertain: the known rate counts for the rest of the time."""
        assert self.rate is not None
        took = max(took, LOOK_S)
        rest = 0.0 if self._starting else max(0.0, self._memory() - took)
        return (cost + self.rate * rest) / (took + rest)

    def _memory(self) -> float:
        return max(MEMORY_S, (self._round_trip_s or 0.0) / 4)

    def _foresee(self) -> None:
        """Compute when the link will have transmitted all bytes in flight."""
        assert self.rate is not None
        free_at = self._through
        for handed in self._under_way:
            free_at = max(free_at, handed.at) + handed.left * handed.cost / self.rate
        self._free_at = free_at

    def _set_rate(self, rate: float) -> None:
        self.rate = min(max(rate, LOWEST_RATE), HIGHEST_RATE)

    def _unit_s(self) -> float:
        assert self.rate is not None
        return (self._unit + PACKET_BYTES) / self.rate

    def _lead(self) -> float:
        return max(LEAD_S, LEAD_PART * self._unit_s())

    def _most_unsent(self) -> float:
        """Bytes that the kernel may hold when a chunk is handed over."""
        assert self.rate is not None
        most = self.rate * ((self._round_trip_s or 0.0) + self._lead() + SLACK_S + self._jitter_s)
        most += self._packet
        return min(most, self._packet * self._arrived - 1) if self._starting else most

    @staticmethod
    def _pause(late: float) -> float:
        """Seconds until the next sample, when an acknowledgement is so late: the later, the less often."""
        return min(max(LOOK_S, late / 10), LONGEST_LOOK_S)
