"""The congestion window of one direction of a TCP connection: BBR, Reno or Cubic. Pure: time is an argument.

The sender reports what was delivered and what was lost; the window says how many packets may be in flight.
Reno and Cubic follow the RFCs as Linux implements them. Where Linux differs from an RFC, the line says so.
Times are nanoseconds, windows are packets.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from typing import NamedTuple

from testbed.backends.simulated.loop import SECOND
from testbed.topology.model import CongestionControl

FIRST_PACKETS = 10  # RFC 6928, 2
FEWEST_AFTER_LOSS = 2  # RFC 5681, 3.1, equation (4); RFC 9438, 4.6


class Delivery(NamedTuple):
    """What one acknowledgement says.

    `limited`: the sender had nothing more to send when the newest of these packets left, so the link may be faster.
    `full`: the sender has used the whole window lately, or half of it while it began.
    """

    packets: int  # delivered by this acknowledgement
    delivered: int  # bytes in all
    before: int  # bytes in all, when the newest of these packets was sent
    took: int  # since then
    shortest_ns: int  # the shortest round trip
    round_trip_ns: int | None  # of the newest packet; None if it was sent twice
    now: int
    limited: bool
    full: bool


class Window(ABC):
    """How many packets may be in flight."""

    reacts_to_loss = True
    # Whether the sender's timer and its search for losses follow RFC 8985 also where packets leave twice.
    follows_rack = True
    # The kernel's buffer for data that is not acknowledged, in windows: it is for twice the window; the kernel
    # allows 4.3 kB for a packet, and counts about 2.5 kB.
    BUFFER_WINDOWS = 3.4

    def __init__(self) -> None:
        self.packets: float = FIRST_PACKETS

    def allows(self, in_flight: int) -> bool:
        """Whether one packet more may be in flight: only a whole one (RFC 6675, 5, step C)."""
        return in_flight + 1 <= self.packets

    @property
    def begins(self) -> bool:
        """Whether it is in slow start."""
        return False

    @abstractmethod
    def on_delivered(self, delivery: Delivery) -> None:
        """Packets were delivered, and nothing indicates losses."""

    @abstractmethod
    def on_loss(self) -> None:
        """Packets are lost; called once until all that is in flight now has been acknowledged."""

    @abstractmethod
    def on_timeout(self, *, recovering: bool) -> None:
        """The retransmission timer expired. `recovering`: the window was reduced for the same packets already."""

    @abstractmethod
    def on_undo(self) -> None:
        """Undo the timeout: the packets were only late."""

    def on_idle(self, idle_ns: int, timeout_ns: int) -> None:  # noqa: B027 - not every window changes
        """The sender sends again after so long without anything in flight."""


# BBR (version 1) without its pacing.
#
# It learns the link's rate from what is delivered and keeps twice the bytes that rate x shortest round trip asks for,
# and three packets. At the beginning there are ten packets, and one more with each that is delivered, until the rate
# has not grown by a quarter for three round trips. Losses change nothing, but when all seems lost it begins with one
# packet.
#
# What was simulated before there was a choice stays the same, byte by byte. So two details of RFC 8985 do not hold with
# BBR: the time to a probe begins anew with each packet that leaves (7.2), and what arrives of a packet that left twice
# may be its first copy (6.2).


FEWEST_PACKETS, SPARE_PACKETS = 4, 3
GAIN = 2.0
GROWING, PATIENCE_ROUNDS = 1.25, 3
REMEMBERED_ROUNDS = 10


class Bbr(Window):
    """The window follows the rate of delivery."""

    reacts_to_loss = False
    follows_rack = False

    def __init__(self, segment: int) -> None:
        super().__init__()
        self._before_timeout = 0.0
        self._segment = segment
        self._rates: deque[tuple[int, float]] = deque()  # round, bytes a nanosecond; falling
        self._round = 0
        self._round_ends = 0  # when what was delivered up to here was under way
        self._best, self._poor_rounds = 0.0, 0
        self._filled = False

    def allows(self, in_flight: int) -> bool:
        return in_flight < self.packets

    def on_delivered(self, delivery: Delivery) -> None:
        before, limited = delivery.before, delivery.limited
        begins = before >= self._round_ends
        if begins:
            self._round += 1
            self._round_ends = delivery.delivered
        rate = (delivery.delivered - before) / max(delivery.took, 1)
        if not limited or rate >= self._rate():
            self._remember(rate)
        if begins and not limited and not self._filled:
            self._check_growth()
        most = GAIN * self._rate() * delivery.shortest_ns / self._segment + SPARE_PACKETS
        grown = self.packets + delivery.packets
        if self._filled:
            grown = min(grown, max(most, FEWEST_PACKETS))
        elif self.packets >= max(most, FIRST_PACKETS):
            grown = self.packets
        self.packets = grown
        self._before_timeout = 0.0

    def on_loss(self) -> None:
        """Losses change nothing."""

    def on_timeout(self, *, recovering: bool) -> None:
        self._before_timeout = max(self.packets, self._before_timeout)
        self.packets = 1

    def on_undo(self) -> None:
        self.packets = max(self.packets, self._before_timeout)

    def _rate(self) -> float:
        return self._rates[0][1] if self._rates else 0.0

    def _remember(self, rate: float) -> None:
        rates = self._rates
        while rates and rates[-1][1] <= rate:
            rates.pop()
        rates.append((self._round, rate))
        while rates[0][0] < self._round - REMEMBERED_ROUNDS:
            rates.popleft()

    def _check_growth(self) -> None:
        if self._rate() >= GROWING * self._best:
            self._best, self._poor_rounds = self._rate(), 0
            return
        self._poor_rounds += 1
        self._filled = self._poor_rounds >= PATIENCE_ROUNDS


# Reno: slow start and congestion avoidance (RFC 5681).


class Reno(Window):
    """The window grows by a packet each round trip, and losses halve it."""

    def __init__(self) -> None:
        super().__init__()
        self.threshold = math.inf  # ssthresh; RFC 5681, 3.1: arbitrarily high at the beginning
        self._before_timeout: tuple[float, float] | None = None  # window and threshold

    @property
    def begins(self) -> bool:
        return self.packets < self.threshold

    def on_delivered(self, delivery: Delivery) -> None:
        self._before_timeout = None
        if not delivery.full:
            return  # RFC 7661, 4.2; RFC 9438, 5.8: a window that is not used does not grow
        packets: float = delivery.packets
        if self.begins:
            # RFC 5681, 3.1, equation (2), counted in packets that arrived (RFC 3465) as Linux does.
            grown = min(self.packets + packets, self.threshold)
            packets -= grown - self.packets
            self.packets = grown
        if packets > 0:
            self._avoid_congestion(packets, delivery)

    def _avoid_congestion(self, packets: float, delivery: Delivery) -> None:
        self.packets += packets / self.packets  # RFC 5681, 3.1, equation (3)

    def on_loss(self) -> None:
        self.threshold = self._reduced()
        self.packets = self.threshold  # RFC 5681, 3.2, step 6; RFC 6582, 3.2, step 3

    def on_timeout(self, *, recovering: bool) -> None:
        if self._before_timeout is None:
            self._before_timeout = (self.packets, self.threshold)
            if not recovering:  # RFC 5681, 3.1: held constant when the same segment is lost again
                self.threshold = self._reduced()
        self.packets = 1  # RFC 5681, 3.1: the loss window

    def on_undo(self) -> None:
        if self._before_timeout is not None:  # RFC 4015, 3.2
            packets, threshold = self._before_timeout
            self.packets = max(self.packets, packets)
            self.threshold = max(self.threshold, threshold)
            self._before_timeout = None

    def on_idle(self, idle_ns: int, timeout_ns: int) -> None:
        """Restart after idle periods (RFC 5681, 4.1); Linux halves the window for each timeout (RFC 2861, 3)."""
        least = min(self.packets, FIRST_PACKETS)
        if idle_ns > timeout_ns and self.packets > least:
            self.threshold = max(self.threshold, 0.75 * self.packets)
            self.packets = max(self.packets / 2.0 ** min(idle_ns // timeout_ns, 60), least)

    def _reduced(self) -> float:
        """RFC 5681, 3.1, equation (4), of the window as in Linux; in the RFC, of what is in flight."""
        return max(self.packets / 2, FEWEST_AFTER_LOSS)


# Cubic (RFC 9438) with HyStart, the slow start of Linux's Cubic.


C = 0.4  # RFC 9438, 5.1
BETA = 0.7  # RFC 9438, 4.6
ALPHA = 3 * (1 - BETA) / (1 + BETA)  # RFC 9438, 4.3
MOST_GROWTH = 1.5  # RFC 9438, 4.2: the target is at most this times the window
UNKNOWN_GROWTH = 1 / 20  # Linux: at least this a round trip while no loss has shown the link's size


class Cubic(Reno):
    """The window is a cubic function of the time since the last loss, and never slower than Reno."""

    def __init__(self) -> None:
        super().__init__()
        self._most = 0.0  # W_max; 0: no loss has shown it
        self._prior = 0.0  # cwnd_prior: the window before the latest loss
        self._epoch_began: int | None = None
        self._climb_s = 0.0  # K
        self._plateau = 0.0  # W_max of the curve in use
        self._estimate = 0.0  # W_est: what Reno would have
        self._slow_start = HyStart()
        self._curve_before_timeout: tuple[float, float, int | None, float, float, float] | None
        self._curve_before_timeout = None

    def on_delivered(self, delivery: Delivery) -> None:
        self._curve_before_timeout = None
        if self.begins and self._slow_start.ends(self.packets, delivery):
            self.threshold = self.packets
        super().on_delivered(delivery)

    def curve(self, elapsed_s: float) -> float:
        """W_cubic (RFC 9438, 4.2, figure 1)."""
        return C * (elapsed_s - self._climb_s) ** 3 + self._plateau

    def _avoid_congestion(self, packets: float, delivery: Delivery) -> None:
        if self._epoch_began is None:
            self._begin_epoch(delivery.now)
        assert self._epoch_began is not None
        elapsed_s = (delivery.now - self._epoch_began) / SECOND
        # RFC 9438, 4.3: W_est grows as Reno does, and as fast as Reno once it is where the window was before the loss.
        alpha = 1.0 if self._estimate >= self._prior else ALPHA
        self._estimate += alpha * packets / self.packets
        if self.curve(elapsed_s) < self._estimate:
            self.packets = max(self.packets, self._estimate)  # the Reno-friendly region
            return
        # RFC 9438, 4.4 and 4.5; the target is the curve a round trip later, of which Linux takes the shortest.
        target = self.curve(elapsed_s + delivery.shortest_ns / SECOND)
        target = min(max(target, self.packets), MOST_GROWTH * self.packets)
        growth = (target - self.packets) / self.packets
        if not self._most:
            growth = max(growth, UNKNOWN_GROWTH)
        self.packets += growth * packets

    def _begin_epoch(self, now: int) -> None:
        """Begin a congestion avoidance stage (RFC 9438, 4.2)."""
        self._epoch_began = now
        self._estimate = self.packets
        if self.packets < self._most:
            self._plateau = self._most
            self._climb_s = ((self._most - self.packets) / C) ** (1 / 3)  # figure 2
        else:  # also the first stage after a timeout (RFC 9438, 4.8)
            self._plateau, self._climb_s = self.packets, 0.0

    def _reduced(self) -> float:
        """The multiplicative decrease (RFC 9438, 4.6) with fast convergence (4.7)."""
        self._prior = self.packets
        shrunk = self.packets < self._most
        self._most = self.packets * (1 + BETA) / 2 if shrunk else self.packets
        self._epoch_began = None
        return max(self.packets * BETA, FEWEST_AFTER_LOSS)

    def on_timeout(self, *, recovering: bool) -> None:
        if self._curve_before_timeout is None:
            self._curve_before_timeout = (
                self._most,
                self._prior,
                self._epoch_began,
                self._climb_s,
                self._plateau,
                self._estimate,
            )
        super().on_timeout(recovering=recovering)
        self._epoch_began, self._most = None, 0.0  # RFC 9438, 4.8
        self._slow_start = HyStart()

    def on_undo(self) -> None:
        super().on_undo()
        if self._curve_before_timeout is not None:  # RFC 9438, 4.9.1
            (
                self._most,
                self._prior,
                self._epoch_began,
                self._climb_s,
                self._plateau,
                self._estimate,
            ) = self._curve_before_timeout
            self._curve_before_timeout = None

    def on_idle(self, idle_ns: int, timeout_ns: int) -> None:
        if self._epoch_began is not None:
            self._epoch_began += idle_ns  # RFC 9438, 5.8: idle time is no time of the curve
        super().on_idle(idle_ns, timeout_ns)


class HyStart:
    """The end of slow start before losses (RFC 9438, 4.10 asks for one), as Linux's Cubic finds it.

    Slow start ends when acknowledgements that follow each other closely have come for half the shortest round trip, or
    when the shortest round trip of a round is longer than that of all rounds by an eighth (4 to 16 ms).
    """

    LEAST_WINDOW = 16
    SAMPLES = 8
    CLOSE_NS = SECOND // 500
    LEAST_RISE, MOST_RISE = SECOND // 250, 2 * SECOND // 125

    def __init__(self) -> None:
        self._found = False
        self._round_ends = 0
        self._round_began = self._last_close = 0
        self._samples, self._shortest = 0, math.inf

    def ends(self, packets: float, delivery: Delivery) -> bool:
        """Take one acknowledgement; whether slow start ends now."""
        if delivery.before >= self._round_ends:
            self._round_ends = delivery.delivered
            self._round_began = self._last_close = delivery.now
            self._samples, self._shortest = 0, math.inf
        if self._found or packets < self.LEAST_WINDOW or delivery.round_trip_ns is None:
            return False
        if delivery.now - self._last_close <= self.CLOSE_NS:
            self._last_close = delivery.now
            self._found = delivery.now - self._round_began > delivery.shortest_ns / 2
        self._shortest = min(self._shortest, delivery.round_trip_ns)
        if self._samples < self.SAMPLES:
            self._samples += 1
        else:
            rise = min(max(delivery.shortest_ns // 8, self.LEAST_RISE), self.MOST_RISE)
            self._found = self._found or self._shortest > delivery.shortest_ns + rise
        return self._found


def window_of(name: CongestionControl, segment: int) -> Window:
    """A window for a connection whose packets carry `segment` bytes."""
    match name:
        case CongestionControl.BBR:
            return Bbr(segment)
        case CongestionControl.RENO:
            return Reno()
        case CongestionControl.CUBIC:
            return Cubic()


class FastRecovery:
    """Packets that may be in flight until all are acknowledged that were in flight when a loss was found.

    Proportional rate reduction (RFC 6937, 3), with the bound of slow start (3.1, PRR-SSRB), as in Linux: the window
    shrinks evenly with each packet that arrives, and the first lost packet leaves at once (RFC 5681, 3.2, step 3).
    """

    def __init__(self, before: float, after: float, ends_at: int) -> None:
        self.ends_at = ends_at  # the byte up to which all have to be acknowledged
        self.packets = 0  # that may be in flight
        self._before, self._after = before, after
        self._delivered = self._sent = 0

    def on_sent(self) -> None:
        """A packet left."""
        self._sent += 1

    def on_ack(self, packets: int, in_flight: int) -> None:
        """So many packets were delivered, and so many are in flight now."""
        self._delivered += packets
        after = int(self._after)
        if in_flight > after:
            allowed = math.ceil(self._delivered * after / self._before) - self._sent
        else:
            allowed = min(after - in_flight, max(self._delivered - self._sent, packets) + 1)
        self.packets = in_flight + max(allowed, 0 if self._sent else 1)
