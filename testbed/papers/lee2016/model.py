"""The thesis' delay model and its number of packets. Sizes in bytes, rates in bytes a second, times in seconds.

TS = SM / rate, TP = PM / rate. The largest delay of an urgent message is `before + (waiting + 1) x each`, if `waiting`
urgent messages are in front of it.
"""

from dataclasses import dataclass

from testbed.papers.lee2016.series import Series

PM_BYTES, SM_BYTES = 1_000, 100_000
PM_PERIOD_S, PM_PROBABILITY = 1.0, 0.1
SM_PERIOD_S = 10.0
FRAME_ROOM = 1_443  # of a segment of 1,448 bytes: without WebSocket header and label
PACKET_HEADERS = 66  # Ethernet 14, IP 20, TCP with time stamps 32


@dataclass(frozen=True, slots=True)
class Bound:
    """D <= before_s + (waiting + 1) x each_s."""

    before_s: float
    each_s: float


def standard_s(rate: float) -> float:
    """TS."""
    return SM_BYTES / rate


def bound(series: Series, rate: float) -> Bound | None:
    """None where the model has no bound: `default` when a message comes before the last has left, and ours."""
    if series.method == "dmpq-pc" and series.dv is not None:
        label = series.label_bytes
        return Bound((series.dv + label) / rate, (PM_BYTES + label) / rate)
    whole = Bound(standard_s(rate), PM_BYTES / rate)
    if series.method == "pq-pc":
        return whole
    if series.method == "fifo" and load(rate) < 1:
        return whole
    return None


def load(rate: float) -> float:
    """What is offered, headers included, of what the line takes; above 1, delays of `default` grow without bound."""
    standard = SM_BYTES + _ceil(SM_BYTES, FRAME_ROOM) * PACKET_HEADERS
    urgent = PM_BYTES + PACKET_HEADERS
    return (standard / SM_PERIOD_S + urgent * PM_PROBABILITY / PM_PERIOD_S) / rate


def growth(rate: float) -> float:
    """By how many seconds the delay of `default` grows each second."""
    return max(0.0, load(rate) - 1)


def packets_of_standard(series: Series) -> int | None:
    """Packets for one SM; None for ours, which divides by what it measures."""
    if series.method == "preemptive":
        return None
    if series.dv is None:
        return _ceil(SM_BYTES, FRAME_ROOM)
    whole, rest = divmod(SM_BYTES, series.dv)
    return _ceil(series.dv, FRAME_ROOM) * whole + _ceil(rest, FRAME_ROOM)


def _ceil(size: int, part: int) -> int:
    return -(-size // part)
