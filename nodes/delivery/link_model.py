"""When the link is free, from what the kernel holds: no idle link, and as little as possible that waits below us.

The kernel tells how many bytes are not acknowledged. On a link with delay an acknowledgement comes a round trip after
its bytes were through, and a packet at a time; a mere cap on those bytes would idle the link or fill a queue. So the
link is modelled: its rate, and when the last byte handed over will be through. The next chunk may go `lead` before.

Acknowledgements correct the model. Bytes that are found acknowledged were through a round trip ago, and not before the
look that had not found them yet:

    the model says a time in between   it is right
    ... a later time                   the link is faster: the rate goes up, by little at once, because after a pause
                                       some links let a few packets pass at full speed; at the beginning, and after a
                                       cut up to the rate known before, it doubles
    ... an earlier time                the link is slower: the rate goes down, at most to a half. If the next
                                       acknowledgement is early again it was not the link: so much lateness is
                                       forgiven from then on

A link that is not kept busy looks early by up to `lead`, so a rate that is too low does not stay. Whatever the model
says, nothing is handed over while the kernel holds more than rate x (round trip + slack) and a packet: a link that is
cut stops us.

On a fast link with jitter single acknowledgements tell nothing; there the bytes under way are bounded instead
(`FastLinkModel`).

Kept on a simulated link (tests/unit/nodes/delivery/test_link_model.py): with enough to send the link is busy for at
least 95 %, and what is in front of a new message takes at most the time of one piece, 15 % of a packet's time and 5 ms.
The shortest round trip must be right: if the delay grows while the connection lives, each piece waits for the
difference.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from statistics import median

# How much later than the earliest ones acknowledgements come, though the link is as fast as ever.
#
# On a busy link acknowledgements follow each other at its rate. A link that becomes slower makes them later and later,
# one that becomes faster earlier and earlier. Only jitter makes them later for a while: what counts is how high
# lateness rises and how deep it falls again, the smaller of both.


LOOKED_BACK, GRAINS = 2.0, 8  # jitters; parts of one in which acknowledgements are one
LEAST = 8  # acknowledgements to look back at
REMEMBERED, TELLING, USUAL = 64, 6, 0.9  # nine of ten were at most so high
TIMES = 1.5  # seldom is it the latest there can be between two of the earliest

Point = tuple[float, float]  # bytes acknowledged in all, when


@dataclass(slots=True)
class _Grain:
    """Acknowledgements of about the same time."""

    at: float
    least: Point  # the least late
    most: Point


class Jitter:
    """What to forgive."""

    def __init__(self) -> None:
        self.span_s = 0.0
        self._grains: deque[_Grain] = deque()
        self._bumps: deque[float] = deque(maxlen=REMEMBERED)

    def on_pause(self) -> None:
        """The link had nothing to do: what comes cannot be compared with what was."""
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


# A link on which a packet takes less time than the jitter: as much may be under way as it delivers in a round trip.
#
# There single acknowledgements tell nothing of the link, but many together do. Rate and round trip are measured over
# times that are long against the jitter; of the last ones the best count. Now and then a little more is sent, to see
# whether the link carries it, and then a little less, to see the round trip without waiting. (BBR does so, with the
# shortest round trip; here it is the usual one, because the link should be busy whatever the jitter is.)


MOST_PACKET_S = 0.024  # a slower link is better known by each packet
HOLDS, STILL_HOLDS = 1.0, 0.5  # jitter, in packets' times
PAUSE_S = 0.005  # and the jitter
RATES, TRIPS = 8, 10  # measurements that count
GAINS = (1.25, 0.75, *(1.0,) * 6)  # by turns
FIRST_GAIN, BETTER, PATIENCE = 2.0, 1.15, 3  # until so many in turn are not better by so much
LEAST_JITTERS, LEAST_PACKETS = 2.0, 4.0  # for a measurement


class FastLinkModel:
    """Measures a link; `holds` says whether to go by it."""

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
        """The link had nothing to do, as far as one can tell."""
        if seconds > PAUSE_S + self._jitter.span_s:
            self._restart(None)
            self._jitter.on_pause()

    @property
    def rate(self) -> float:
        """Bytes a second, headers included."""
        return max(self._rates)

    @property
    def look_s(self) -> float:
        """Until the next look."""
        return self._jitter.span_s / 16

    def most_under_way(self) -> float:
        """Bytes, headers included."""
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
        """So many bytes in all were found to be acknowledged between two looks, the last ones after such a trip."""
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
LEAST_TRIP_S = 0.02  # of a link that may have much jitter
LOOK_S, LOOK_PART = 0.001, 0.025  # at most so often
LOOK_EARLY_PART = 0.1  # of a packet's time before its acknowledgement is expected
LONGEST_LOOK_S = 0.25
TELLING_LOOKS = 4  # a packet that takes longer than so many looks tells the rate alone

FIRST_GROWTH, GROWTH, LEAST_GROWTH = 2.0, 1.1, 0.02
FIRST_WINDOW = 10  # packets
PLAUSIBLE = 4  # times what was seen
CLEARLY = 0.2  # of the time that the model gives: so much earlier
MEMORY_S = 0.02  # or a quarter of the round trip
MOST_JITTER_S, JITTER_FADES = 0.1, 0.98
KNOWN_FADES = 0.9  # with each late acknowledgement
LOWEST_RATE, HIGHEST_RATE = 50.0, 1e10  # bytes a second


def _frame_bytes(size: int) -> int:
    """The head of a frame of so many bytes, unmasked (RFC 6455, 5.2)."""
    return 2 if size < 126 else FRAME_BYTES if size < 1 << 16 else 10


@dataclass(slots=True)
class _Handed:
    left: int  # bytes not acknowledged
    cost: float  # bytes on the link for each of them, headers included
    at: float


@dataclass(frozen=True, slots=True)
class _Acknowledgement:
    """Bytes that were found acknowledged, and when they were through the link."""

    through: float  # as the model says
    since: float  # when the link began with them
    cost: float
    paused: bool  # before that the link had nothing to do
    handed_at: float
    earliest: float  # as the looks at the kernel say
    latest: float


class KernelLinkModel:
    """A model of the link; all its times are those of `now`."""

    def __init__(self) -> None:
        self.rate: float | None = None  # bytes a second, headers included
        self._begin(0, 0.0)

    def _begin(self, packet_payload: int, now: float) -> None:
        self.rate = None
        self._packet = packet_payload + FRAME_BYTES
        self._unit = self._packet  # what is acknowledged at once: a packet, or a shorter chunk
        self._under_way: deque[_Handed] = deque()
        self._unsent = 0  # the sum of all that is left
        self._through = now  # when the last acknowledged byte was through the link
        self._free_at = now  # when the last byte handed over will be
        self._looked = now
        self._round_trip_s: float | None = None
        self._starting = True
        self._arrived = 0  # packets acknowledged while starting
        self._doubled_at = now
        self._jitter_s = 0.0  # acknowledgements may be so late, and the link is as fast as before
        self._was_late = False
        self._known_rate = 0.0  # the last at which the model was right
        self._fast = FastLinkModel()
        self._position = 0.0  # bytes acknowledged, headers included

    def on_up(self, packet_payload: int, now: float) -> None:
        self._begin(packet_payload, now)

    @property
    def sure_rate(self) -> float | None:
        """The rate, as far as the link has kept to it; None at the beginning."""
        if self._starting or self.rate is None or not self._known_rate:
            return None
        return min(self.rate, self._known_rate)

    @property
    def within_first_window(self) -> bool:
        """Less is under way than what TCP would send on trust, knowing nothing of the link (RFC 6928)."""
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
        """Bytes were acknowledged since the last look."""
        through, since, cost = self._through, self._through, 0.0
        handed_at, paused = now, False
        self._unsent -= acknowledged
        while acknowledged > 0:
            handed = self._under_way[0]
            part = min(acknowledged, handed.left)
            if handed.at > through:  # the link had nothing to do
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
        """Whether it is one is found out anew with each acknowledgement."""
        assert self.rate is not None
        if (self._round_trip_s or 0.0) < LEAST_TRIP_S and not self._fast.holds:
            return  # what looks like jitter is a token bucket, or the machine
        looks = (self._looked, now)
        packet = self._packet + PACKET_BYTES
        self._fast.on_acknowledged(self._position, looks, trip_s, self.rate, packet)
        if self._fast.holds:
            self._starting = False
            self._set_rate(self._fast.rate)
            self._known_rate = self._fast.rate

    def _corrected(self, seen: _Acknowledgement, now: float) -> float:
        """When it was through; and a better rate."""
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
        """The link is faster: by how much we see, or by a little if we kept it idle."""
        assert self.rate is not None
        took = seen.latest - seen.since
        if self.rate > PLAUSIBLE * seen.cost / max(took, LOOK_S):
            return  # it was faster than can be seen
        growth = min(self._seen_rate(seen.cost, took) / self.rate, GROWTH)
        if self._starting or self.rate < self._known_rate:
            clearly = seen.through - seen.latest > CLEARLY * (seen.through - seen.since)
            if self._starting:
                growth = 1.0
            if clearly and seen.handed_at >= self._doubled_at:  # by bytes that left at this rate
                growth, self._doubled_at = FIRST_GROWTH, now
        self._set_rate(self.rate * max(growth, 1 + LEAST_GROWTH * min(1.0, took / self._memory())))

    def _seen_rate(self, cost: float, took: float) -> float:
        """From a few packets in a short time little can be told: the rate known counts for the rest of the time."""
        assert self.rate is not None
        took = max(took, LOOK_S)
        rest = 0.0 if self._starting else max(0.0, self._memory() - took)
        return (cost + self.rate * rest) / (took + rest)

    def _memory(self) -> float:
        return max(MEMORY_S, (self._round_trip_s or 0.0) / 4)

    def _foresee(self) -> None:
        """When all that is under way will be through."""
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
        """Until the next look, when something is so late: less often the later it is."""
        return min(max(LOOK_S, late / 10), LONGEST_LOOK_S)
