"""A valley whose slopes report over 3G links: the clients, their messages, and the delays. Pure.

Slopes send photographs (routine), more than their links carry, and alerts (level 5). All offices subscribe to alerts,
one of them to the photographs as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.support.delivery.traffic import Due, at_rank

SLOPES = tuple(f"slope{number}" for number in range(4))
OFFICES = tuple(f"office{number}" for number in range(3))
PHOTOGRAPHS_AT = OFFICES[0]
SLOW_LINK, FAST = "3g-384k", "lan"
ALERTS, PHOTOGRAPHS = "alerts", "photographs"
ALERT_BYTES, PHOTOGRAPH_BYTES = 300, 20_000
PHOTOGRAPH_EVERY_S = 2.0  # 10 kB/s, where a link takes 8 kB/s up
ALERT_CHANCE, ALERT_WITHIN = 0.5, 0.5  # in each second, in the first part of it
NS = 1_000_000_000

Timelines = Mapping[str, Sequence[Due]]  # slope -> what it sends
Arrivals = Mapping[
    tuple[str, str, int], int
]  # office, slope, number of the message -> ns since 1970


def wanted(office: str) -> tuple[str, ...]:
    """The topics that an office subscribes to."""
    return (ALERTS, PHOTOGRAPHS) if office == PHOTOGRAPHS_AT else (ALERTS,)


def topic(due: Due) -> str:
    """The topic of a message."""
    return ALERTS if due.urgent else PHOTOGRAPHS


def timelines(seconds: float, seed: int, backlog: bool) -> dict[str, tuple[Due, ...]]:
    """The messages of each slope, in the order of time; the alerts are the same with and without a backlog."""
    return {slope: _timeline(seconds, Random(f"{seed}/{slope}"), backlog) for slope in SLOPES}


def _timeline(seconds: float, chances: Random, backlog: bool) -> tuple[Due, ...]:
    found = []
    for second in range(int(seconds)):
        within = chances.random() * ALERT_WITHIN
        if chances.random() < ALERT_CHANCE:
            found.append(Due(round((second + within) * NS), True, ALERT_BYTES))
    if backlog:
        for number in range(round(seconds / PHOTOGRAPH_EVERY_S)):
            at_ns = round(number * PHOTOGRAPH_EVERY_S * NS)
            found.append(Due(at_ns, False, PHOTOGRAPH_BYTES))
    return tuple(sorted(found, key=lambda due: due.at_ns))


@dataclass(frozen=True, slots=True)
class Reception:
    """Delays of alerts, in seconds; infinite for those that never arrived."""

    name: str
    due: int  # alerts, each counted once an office
    arrived: int
    p50_s: float
    p99_s: float
    largest_s: float
    photographs: float  # share that arrived; not a number if there were none

    @property
    def complete(self) -> bool:
        """Whether everything has arrived."""
        return self.arrived == self.due and not self.photographs < 1


def reception(name: str, sent: Timelines, start_ns: int, arrivals: Arrivals) -> Reception:
    """The reception of everything that was sent from `start_ns` on."""
    delays, photographs = [], []
    for slope, number, due in ((s, n, d) for s, all_ in sent.items() for n, d in enumerate(all_)):
        for office in OFFICES:
            if topic(due) not in wanted(office):
                continue
            at_ns = arrivals.get((office, slope, number))
            if due.urgent:
                late = math.inf if at_ns is None else (at_ns - start_ns - due.at_ns) / NS
                delays.append(late)
            else:
                photographs.append(at_ns is not None)
    delays.sort()
    return Reception(
        name=name,
        due=len(delays),
        arrived=sum(map(math.isfinite, delays)),
        p50_s=at_rank(delays, 0.5),
        p99_s=at_rank(delays, 0.99),
        largest_s=at_rank(delays, 1.0),
        photographs=sum(photographs) / len(photographs) if photographs else math.nan,
    )
