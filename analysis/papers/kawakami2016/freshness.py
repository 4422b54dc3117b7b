"""Delay of readings, and age of the newest reading of a gauge at the office. Pure; all times in seconds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple


class Reading(NamedTuple):
    """A reading at the office; times are relative to the beginning of the measurement."""

    gauge: str
    published_s: float
    came_s: float


def delays(readings: Iterable[Reading], measured_s: float) -> list[float]:
    """The delays of the readings that count, sorted."""
    counted = (one for one in readings if 0 <= one.published_s < measured_s)
    return sorted(one.came_s - one.published_s for one in counted)


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile, linear between neighbours."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def age(readings: Iterable[Reading], measured_s: float) -> float:
    """Mean age over gauges and over the measured time."""
    ages = [mean_age(of_one, 0.0, measured_s) for of_one in _by_gauge(readings).values()]
    return sum(ages) / len(ages)


def mean_age(readings: Iterable[Reading], begin_s: float, end_s: float) -> float:
    """Mean age of the newest reading of one gauge at the office over this time.

    It begins with the first reading that has arrived.
    """
    newest: list[tuple[float, float]] = []  # from when on, and when that one was published
    for one in sorted(readings, key=lambda reading: reading.came_s):
        if not newest or one.published_s > newest[-1][1]:
            newest.append((one.came_s, one.published_s))
    total = span = 0.0
    for (came_s, published_s), (until_s, _) in pairwise([*newest, (end_s, 0.0)]):
        since, until = max(came_s, begin_s), min(until_s, end_s)
        if since < until:
            # The age grows steadily from one moment to the other.
            total += (until - since) * ((since + until) / 2 - published_s)
            span += until - since
    return total / span


def _by_gauge(readings: Iterable[Reading]) -> Mapping[str, list[Reading]]:
    found: defaultdict[str, list[Reading]] = defaultdict(list)
    for one in readings:
        found[one.gauge].append(one)
    return found


# Cost and benefit of waiting in each lab, real or simulated, from the readings at the office. Pure.


Row = Mapping[str, Any]
REAL = "real"  # links of real labs
TWIN = "twin"  # the simulated lab of the same file and seed as a real one
SIMULATED = "simulated"  # over all seeds
LABS = (REAL, TWIN, SIMULATED)
PACKET_HEADERS = 66  # bytes: Ethernet 14, IP 20, TCP with time stamps 32
OF_LAB = ("lab", "sites", "wait_ms")
OF_TRIAL = (*OF_LAB, "trial")


def trials(readings: Iterable[Row], totals: Iterable[Row]) -> list[dict[str, Any]]:
    """One row for each lab with readings in the measured time; messages and bytes are per reading."""
    of_lab: defaultdict[tuple[Any, ...], list[Reading]] = defaultdict(list)
    for row in readings:
        of_lab[_place(row)].append(Reading(row["gauge"], row["published_s"], row["came_s"]))
    found = []
    for total in totals:
        own = of_lab[_place(total)]
        late = delays(own, total["measured_s"])
        if late:
            found.append(
                {
                    **dict(zip(OF_TRIAL, _place(total), strict=True)),
                    "missing": total["due"] - len(late),
                    "delay_s": sum(late) / len(late),
                    "delay_p50_s": quantile(late, 0.5),
                    "delay_p95_s": quantile(late, 0.95),
                    "age_s": age(own, total["measured_s"]),
                    "messages": total["messages"] / len(late),
                    "bytes": (total["bytes"] + PACKET_HEADERS * total["packets"]) / len(late),
                    "line_bytes": total["line_bytes"] / len(late),
                }
            )
    return found


def with_twins(rows: Iterable[Row]) -> list[Row]:
    """Add the simulated lab that corresponds to each real one."""
    known = list(rows)
    real = {_place(row)[1:] for row in known if row["lab"] == REAL}
    twins = (row for row in known if row["lab"] == SIMULATED and _place(row)[1:] in real)
    return [*known, *({**row, "lab": TWIN} for row in twins)]


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in OF_TRIAL)
