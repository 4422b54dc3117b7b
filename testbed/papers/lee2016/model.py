"""The thesis' delay model and its number of packets. Sizes in bytes, rates in bytes a second, times in seconds.

TS = SM / rate, TP = PM / rate. The largest delay of an urgent message is `before + (waiting + 1) x each`, if `waiting`
urgent messages are in front of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodes.delivery import preemptive
from nodes.delivery.preemptive import PIECE_S

# The ways of sending that are compared: the thesis' own, and ours.


QUEUE_BYTES = 12_000_000  # all messages of an experiment fit: nothing is dropped, as in the thesis
URGENT_LEVEL, STANDARD_LEVEL = 5, 1


@dataclass(frozen=True, slots=True)
class Series:
    """One way of sending, at all rates."""

    key: str
    title: str
    method: str
    parameters: tuple[tuple[str, Any], ...] = ()
    dv: int | None = None
    label_bytes: int = 0

    def delivery(self, scale: int) -> Mapping[str, Any]:
        """As a topology file has it. Where time is scaled, so is the longest time of one piece of ours."""
        paced = {"piece_s": PIECE_S / scale} if self.method == preemptive.METHOD else {}
        payload_bytes = {"limit_bytes": QUEUE_BYTES}
        return {"method": self.method, **dict(self.parameters), **paced, **payload_bytes}


def _divided(dv: int, ack: str = "udp") -> Series:
    by_kernel = ack == "kernel"
    return Series(
        f"dmpq-{dv}{'-kernel' if by_kernel else ''}",
        f"DMPQ-PC, DV {dv}{', kernel' if by_kernel else ''}",
        "dmpq-pc",
        (("dv", dv), ("ack", ack), ("label", "byte"), ("urgent_from", URGENT_LEVEL)),
        dv,
        1,
    )


DEFAULT = Series("default", "default", "fifo")
PQ_PC = Series("pq-pc", "PQ-PC", "pq-pc", (("ack", "udp"), ("urgent_from", URGENT_LEVEL)))
DMPQ_10000, DMPQ_5000, DMPQ_1443, DMPQ_1000 = (_divided(dv) for dv in (10_000, 5_000, 1_443, 1_000))
DMPQ_1443_KERNEL = _divided(1_443, "kernel")
PREEMPTIVE = Series("preemptive", "preemptive (ours)", preemptive.METHOD)

THESIS = (DEFAULT, PQ_PC, DMPQ_10000, DMPQ_5000, DMPQ_1443, DMPQ_1000)
ALL = (*THESIS, DMPQ_1443_KERNEL, PREEMPTIVE)
FEW = (DEFAULT, PQ_PC, DMPQ_10000, DMPQ_1443, DMPQ_1000, PREEMPTIVE)


PM_BYTES, SM_BYTES = 1_000, 100_000
PM_PERIOD_S, PM_PROBABILITY = 1.0, 0.1
SM_PERIOD_S = 10.0
FRAME_PAYLOAD = 1_443  # of a segment of 1,448 bytes: without WebSocket header and label
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
    """What is offered, headers included, of what the link takes; above 1, delays of `default` grow without bound."""
    standard = SM_BYTES + _ceil(SM_BYTES, FRAME_PAYLOAD) * PACKET_HEADERS
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
        return _ceil(SM_BYTES, FRAME_PAYLOAD)
    whole, rest = divmod(SM_BYTES, series.dv)
    return _ceil(series.dv, FRAME_PAYLOAD) * whole + _ceil(rest, FRAME_PAYLOAD)


def _ceil(size: int, part: int) -> int:
    return -(-size // part)
