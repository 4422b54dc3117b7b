"""Is a link as asked? Tolerances, what chance allows beyond them, and the sentences of a verdict. Pure."""

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from testbed.topology.model import Shape
from testbed.topology.units import DURATION, RATE

# How far chance alone may lead: what would 999 of 1,000 measurements of a link that is as asked show? Pure.


CONFIDENCE = 0.999


def at_least(count: int, trials: int, share: float) -> float:
    """The probability of `count` or more successes in so many trials, each with this chance."""
    if count <= 0:
        return 1.0
    if count > trials or share <= 0:
        return 0.0
    if share >= 1:
        return 1.0
    log_share, log_rest = math.log(share), math.log1p(-share)
    log_all = math.lgamma(trials + 1)
    terms = (
        math.exp(
            log_all
            - math.lgamma(n + 1)
            - math.lgamma(trials - n + 1)
            + n * log_share
            + (trials - n) * log_rest
        )
        for n in range(count, trials + 1)
    )
    return min(1.0, math.fsum(terms))


def plausible(count: int, trials: int, share: float, confidence: float = CONFIDENCE) -> bool:
    """Whether so many successes are within the two-sided interval of this chance."""
    tail = (1 - confidence) / 2
    many = at_least(count, trials, share)
    few = 1 - at_least(count + 1, trials, share)
    return many >= tail and few >= tail


@cache
def median_reach(samples: int, confidence: float = CONFIDENCE) -> float:
    """How far the median of so many values, uniform between -1 and 1, may be from 0.

    It is beyond x if at least half of the values are, and each is with a chance of (1 - x) / 2.
    """
    if samples < 1:
        return 1.0
    half = (samples + 1) // 2
    near, far = 0.0, 1.0
    for _ in range(40):
        middle = (near + far) / 2
        if 2 * at_least(half, samples, (1 - middle) / 2) > 1 - confidence:
            near = middle
        else:
            far = middle
    return far


DELAY_S = 0.002
DELAY_SHARE = 0.02
RATE_SHARE_FULL = 0.03
RATE_SHARE_QUICK = 0.10
_SIGMAS = 3.3  # 99.9 % of a normal distribution


class Method(StrEnum):
    """How thorough the measurement was."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What was asked of a direction, or achieved; None: not limited, or not measured."""

    rate_bps: float | None = None
    delay_s: float | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for the achieved numbers: how many packets, how long a train."""

    lone_sent: int = 0
    lone_received: int = 0
    train_packets: int = 0
    train_s: float = 0.0
    by_train: bool = True  # else these are the packets and the length of a stream
    loss_sent: int = 0
    loss_received: int = 0
    kilobyte_asked_s: float | None = None  # a lone packet of 1 kB, from end to end
    kilobyte_achieved_s: float | None = None
    kilobytes_received: int = 0


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One direction of a profile: asked, achieved, and whether that is as asked."""

    profile: str
    direction: str
    method: Method
    asked: Numbers
    achieved: Numbers
    evidence: Evidence
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        """As it is written to a run's manifest."""
        kilobyte = self.evidence.kilobyte_achieved_s
        return {
            "profile": self.profile,
            "direction": self.direction,
            "method": str(self.method),
            "asked": asdict(self.asked),
            "achieved": asdict(self.achieved),
            "lone_1kB": None
            if kilobyte is None
            else {"asked_s": self.evidence.kilobyte_asked_s, "achieved_s": kilobyte},
            "ok": self.ok,
            "reasons": list(self.reasons),
        }


def asked_of(shape: Shape) -> Numbers:
    """The numbers of a shape; the jitter's mean is the delay."""
    return Numbers(shape.rate_bps, shape.delay_s, shape.loss)


def judge(
    profile: str,
    direction: str,
    method: Method,
    shape: Shape,
    achieved: Numbers,
    evidence: Evidence,
) -> Calibrated:
    """The verdict with its reasons."""
    reasons = (
        _of_delay(shape, achieved, evidence),
        _of_rate(shape, achieved, evidence),
        _of_loss(shape, achieved, evidence),
        _of_kilobyte(shape, evidence),
    )
    given = tuple(reason for reason in reasons if reason)
    return Calibrated(profile, direction, method, asked_of(shape), achieved, evidence, given)


def delay_tolerance_s(shape: Shape, packets: int) -> float:
    """2 ms and 2 %, and what jitter may do to the median of so few packets."""
    return DELAY_S + DELAY_SHARE * shape.delay_s + shape.jitter_s * median_reach(packets)


def rate_tolerance(shape: Shape, evidence: Evidence) -> float:
    """A share of the rate; jitter moves arrivals, and with them the slope of a train or the ends of a stream."""
    moved = 2 * shape.jitter_s / evidence.train_s if evidence.train_s else 0.0
    if evidence.by_train:
        return RATE_SHARE_QUICK + moved * _SIGMAS / math.sqrt(max(1, evidence.train_packets))
    return RATE_SHARE_FULL + moved


def _of_delay(shape: Shape, achieved: Numbers, evidence: Evidence) -> str:
    if not evidence.lone_sent:
        return ""
    if achieved.delay_s is None:
        return f"none of {evidence.lone_sent} lone packets arrived"
    off = achieved.delay_s - shape.delay_s
    if abs(off) <= delay_tolerance_s(shape, evidence.lone_received):
        return ""
    return (
        f"a delay of {_duration(shape.delay_s)} was configured, "
        f"{_duration(achieved.delay_s)} was measured (median of {evidence.lone_received} packets)"
    )


def _of_rate(shape: Shape, achieved: Numbers, evidence: Evidence) -> str:
    if shape.rate_bps is None or not evidence.train_packets:
        return ""
    if achieved.rate_bps is None:
        return f"too little of {evidence.train_packets} packets arrived to measure the rate"
    tolerance = rate_tolerance(shape, evidence)
    if abs(achieved.rate_bps / shape.rate_bps - 1) <= tolerance:
        return ""
    return (
        f"a rate of {_rate(shape.rate_bps)} was configured, {_rate(achieved.rate_bps)} was measured "
        f"({100 * (achieved.rate_bps / shape.rate_bps - 1):+.1f} %)"
    )


def _of_loss(shape: Shape, achieved: Numbers, evidence: Evidence) -> str:
    if achieved.loss is None or not evidence.loss_sent:
        return ""
    lost = evidence.loss_sent - evidence.loss_received
    if plausible(lost, evidence.loss_sent, shape.loss):
        return ""
    return (
        f"a loss of {100 * shape.loss:g} % was configured, "
        f"{lost} of {evidence.loss_sent} packets were lost ({100 * achieved.loss:.2f} %)"
    )


def _of_kilobyte(shape: Shape, evidence: Evidence) -> str:
    asked, achieved = evidence.kilobyte_asked_s, evidence.kilobyte_achieved_s
    if asked is None or achieved is None:
        return ""
    tolerance = (
        DELAY_S + DELAY_SHARE * asked + shape.jitter_s * median_reach(evidence.kilobytes_received)
    )
    if abs(achieved - asked) <= tolerance:
        return ""
    return f"a lone packet of 1 kB should take {_duration(asked)}, and took {_duration(achieved)}"


def _duration(seconds: float) -> str:
    return DURATION.write(round(seconds, 5)) if seconds > 0 else f"{seconds * 1000:.2f}ms"


def _rate(bps: float) -> str:
    return RATE.write(float(f"{bps:.4g}"))
