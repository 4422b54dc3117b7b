"""Adaptive tables, literally: compare all tables that could remain, by the order of Kita 2025."""

from dataclasses import dataclass
from functools import cmp_to_key

from hypothesis import strategies as st


@dataclass(frozen=True)
class Entry:
    """A node that could be an entry of the table."""

    level: int
    subscribes: bool
    urgent: bool
    distance: int


@st.composite
def candidates(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """Candidates: sticky entries, and others in the order in which they arrive."""
    distances = draw(
        st.lists(st.integers(-30, 30).filter(bool), min_size=1, max_size=14, unique=True)
    )
    entries = [
        Entry(draw(st.integers(0, 4)), subscribes, subscribes and draw(st.booleans()), distance)
        for distance in distances
        for subscribes in [draw(st.booleans())]
    ]
    sticky = draw(st.integers(0, len(entries)))
    return entries[:sticky], entries[sticky:]


def better(one: list[Entry], other: list[Entry]) -> int:
    """Positive if the first of two tables of the same size is better (Kita 2025, 4.2 and 5.4)."""
    for value in (
        lambda table: sum(entry.urgent for entry in table),
        lambda table: max(entry.level for entry in table) if table else -1,
        lambda table: -len(set(range(top(table))) - {entry.level for entry in table}),
        lambda table: sum(entry.subscribes for entry in table),
        lambda table: -len(fullest(table)),
        lambda table: max(fullest(table), default=-1),
        lambda table: [-d for d in sides(table)[0]],
        lambda table: [-d for d in sides(table)[1]],
    ):
        mine, theirs = value(one), value(other)
        if mine != theirs:
            return 1 if mine > theirs else -1
    return 0


def top(table: list[Entry]) -> int:
    """The highest level."""
    return max((entry.level for entry in table), default=0)


def fullest(table: list[Entry]) -> set[int]:
    """The levels with the most entries."""
    counts = {level: sum(entry.level == level for entry in table) for level in range(9)}
    most = max(counts.values())
    return {level for level, count in counts.items() if count == most}


def sides(table: list[Entry]) -> tuple[list[int], list[int]]:
    """Distances of keys, to the right and to the left, up to the largest possible distance."""
    none = [1_000] * 20
    right = sorted(entry.distance for entry in table if entry.distance > 0)
    left = sorted(-entry.distance for entry in table if entry.distance < 0)
    return (right + none)[:20], (left + none)[:20]


def literally(sticky: list[Entry], others: list[Entry], size: int) -> list[Entry]:
    """Add entry by entry; each time compare all tables with one entry less."""
    table = list(sticky)
    for entry in others:
        table.append(entry)
        if len(table) > size:
            without = [[e for e in table if e is not gone] for gone in table if gone not in sticky]
            table = max(without, key=cmp_to_key(better))
    return table
