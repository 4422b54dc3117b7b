"""Delay and loss by level while a run is in progress. Pure: publications and arrivals in, a table out.

A delivery is expected for each message and each of its subscribers, as in `analysis.metrics.deliveries`. It has arrived
when all of its bytes were seen on the receiver's link. Until then it is in transit, and after some time overdue.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from analysis.inputs.subscriptions import Subscriptions
from analysis.metrics.percentiles import (
    MISSING,
    NOT_WITHIN,
    Array,
    Delays,
    delays_of,
    summary_of,
)

RECENT_NS = 10_000_000_000
SECOND_NS = 1_000_000_000


class Level(NamedTuple):
    """Outcome of a level's messages so far; delays in seconds.

    Percentiles are of the deliveries that arrived or are overdue. None: not reached, and then `not_within_s` has its
    bound; or there are none of these.
    """

    level: int
    published: int
    expected: int
    delivered: int
    in_flight: int
    overdue: int
    p50: float | None
    p95: float | None
    max: float | None
    recent: int  # deliveries of the last ten seconds
    recent_p50: float | None  # of these, and of those that became overdue in this time
    recent_p95: float | None
    not_within_s: dict[str, float]  # name -> bound


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

    @property
    def last_ns(self) -> int:
        """The last arrival; 0 if nothing arrived."""
        return max((max(one.arrived_ns, default=0) for one in self._levels.values()), default=0)

    def levels(self, now_ns: int, overdue_s: float, until_ns: int | None = None) -> list[Level]:
        """The most urgent first. `until_ns`: when the observation ended, if it did."""
        since: dict[int, list[int]] = {level: [] for level in self._levels}
        for level, at_ns in self._pending.values():
            since[level].append(at_ns)
        end_ns = now_ns if until_ns is None else until_ns
        return [
            _level_of(level, self._levels[level], since[level], now_ns, overdue_s, end_ns)
            for level in sorted(self._levels, reverse=True)
        ]


def _level_of(
    level: int,
    counts: _Counts,
    pending_ns: list[int],
    now_ns: int,
    overdue_s: float,
    end_ns: int,
) -> Level:
    """`pending_ns`: when each message was published that has not arrived."""
    since_ns = np.array(pending_ns, np.int64)
    due_ns = since_ns + int(overdue_s * SECOND_NS)
    overdue = due_ns <= now_ns
    observed_s = (end_ns - since_ns) / SECOND_NS
    delays_s = np.array(counts.delays_ns, np.int64) / SECOND_NS
    arrived = np.array(counts.arrived_ns, np.int64) > now_ns - RECENT_NS
    late = overdue & (due_ns > now_ns - RECENT_NS)
    whole = summary_of(_delays(delays_s, observed_s[overdue]), ("p50", "p95", "max"))
    recent = summary_of(_delays(delays_s[arrived], observed_s[late]), ("p50", "p95"))
    return Level(
        level,
        counts.published,
        counts.expected,
        len(delays_s),
        int((~overdue).sum()),
        int(overdue.sum()),
        whole["p50"],
        whole["p95"],
        whole["max"],
        int(arrived.sum()),
        recent["p50"],
        recent["p95"],
        {
            **whole[NOT_WITHIN],
            **{f"recent_{name}": bound for name, bound in recent[NOT_WITHIN].items()},
        },
    )


def _delays(came_s: Array, observed_s: Array) -> Delays:
    missing = np.full(len(observed_s), MISSING)
    return delays_of(np.concatenate((came_s, missing)), np.concatenate((came_s, observed_s)))
