"""Delay and loss by level while a run is in progress. Pure: publications and arrivals in, a table out.

A delivery is expected for each message and each of its subscribers, as in `analysis.metrics.deliveries`. It has arrived
when all of its bytes were seen on the receiver's link. Until then it is in transit, and after some time overdue.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from analysis.inputs.subscriptions import Subscriptions

RECENT_NS = 10_000_000_000
SECOND_NS = 1_000_000_000


class Level(NamedTuple):
    """Outcome of a level's messages so far; delays in seconds, None if there are none."""

    level: int
    published: int
    expected: int
    delivered: int
    in_flight: int
    overdue: int
    p50: float | None
    p95: float | None
    max: float | None
    recent: int  # deliveries of the last ten seconds, and their delays
    recent_p50: float | None
    recent_p95: float | None


@dataclass(slots=True)
class _Counts:
    published: int = 0
    expected: int = 0
    delays_ns: list[int] = field(default_factory=list)
    arrived_ns: list[int] = field(default_factory=list)


class Live:
    """The deliveries of a run so far."""

    def __init__(self, subscriptions: Subscriptions, from_ns: int = 0) -> None:
        self._subscriptions = subscriptions
        self._from_ns = from_ns
        self._levels: dict[int, _Counts] = {}
        self._pending: dict[tuple[str, str], tuple[int, int]] = {}  # level, publish time
        self._known: set[str] = set()
        self._early: dict[
            tuple[str, str], tuple[int, int]
        ] = {}  # arrived before the publication was read

    def published(
        self,
        identity: str,
        origin: str,
        topic: str,
        level: int,
        at_ns: int,
        place: Iterable[int] | None = None,
    ) -> None:
        """Add a publication from a log."""
        if identity in self._known or at_ns < self._from_ns:
            return
        self._known.add(identity)
        counts = self._levels.setdefault(level, _Counts())
        counts.published += 1
        for receiver in self._subscriptions.receivers(topic, level, place):
            if receiver == origin:
                continue
            counts.expected += 1
            self._pending[identity, receiver] = (level, at_ns)
            if came := self._early.pop((identity, receiver), None):
                self.arrived(identity, receiver, *came)

    def arrived(self, identity: str, receiver: str, published_ns: int, at_ns: int) -> None:
        """Add the arrival of a complete message; the first one counts."""
        if pending := self._pending.pop((identity, receiver), None):
            counts = self._levels[pending[0]]
            counts.delays_ns.append(at_ns - published_ns)
            counts.arrived_ns.append(at_ns)
        elif identity not in self._known and published_ns >= self._from_ns:
            self._early.setdefault((identity, receiver), (published_ns, at_ns))

    def levels(self, now_ns: int, overdue_s: float) -> list[Level]:
        """The most urgent first."""
        since: dict[int, list[int]] = {level: [] for level in self._levels}
        for level, at_ns in self._pending.values():
            since[level].append(now_ns - at_ns)
        return [
            _level_of(level, self._levels[level], since[level], now_ns, overdue_s * SECOND_NS)
            for level in sorted(self._levels, reverse=True)
        ]


def _level_of(
    level: int, counts: _Counts, pending_ns: list[int], now_ns: int, overdue_ns: float
) -> Level:
    overdue = sum(age_ns >= overdue_ns for age_ns in pending_ns)
    recent = [
        delay
        for delay, at_ns in zip(counts.delays_ns, counts.arrived_ns, strict=True)
        if at_ns > now_ns - RECENT_NS
    ]
    return Level(
        level,
        counts.published,
        counts.expected,
        len(counts.delays_ns),
        len(pending_ns) - overdue,
        overdue,
        _share(counts.delays_ns, 50),
        _share(counts.delays_ns, 95),
        _share(counts.delays_ns, 100),
        len(recent),
        _share(recent, 50),
        _share(recent, 95),
    )


def _share(delays_ns: list[int], percent: float) -> float | None:
    """A percentile, as in `analysis.metrics.delay`: linear between neighbours."""
    return float(np.percentile(delays_ns, percent)) / SECOND_NS if delays_ns else None
