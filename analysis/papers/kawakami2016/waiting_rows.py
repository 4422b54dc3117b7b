"""What waiting costs and saves in each lab, real or simulated, from the readings at the office. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from analysis.papers.kawakami2016.freshness import Reading, age, delays, quantile

Row = Mapping[str, Any]
REAL = "real"  # lines of real labs
TWIN = "twin"  # the simulated lab of the same file and seed as a real one
SIMULATED = "simulated"  # over all seeds
LABS = (REAL, TWIN, SIMULATED)
PACKET_HEADERS = 66  # bytes: Ethernet 14, IP 20, TCP with time stamps 32
OF_LAB = ("lab", "sites", "wait_ms")
OF_TRIAL = (*OF_LAB, "trial")


def trials(readings: Iterable[Row], totals: Iterable[Row]) -> list[dict[str, Any]]:
    """One row for each lab in whose counted time a reading came; messages and bytes are for a reading."""
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
    """And once more the simulated lab that stands beside each real one."""
    known = list(rows)
    real = {_place(row)[1:] for row in known if row["lab"] == REAL}
    twins = (row for row in known if row["lab"] == SIMULATED and _place(row)[1:] in real)
    return [*known, *({**row, "lab": TWIN} for row in twins)]


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in OF_TRIAL)
