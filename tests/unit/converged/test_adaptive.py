"""Adaptive tables: of all entries that may go, that one goes without which the best table is left."""

from dataclasses import dataclass
from functools import cmp_to_key

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testbed.converged.adaptive import Heard, adapted
from testbed.converged.heard import shared_bits


@dataclass(frozen=True)
class Entry:
    """One node that was heard of."""

    level: int
    subscribes: bool
    urgent: bool
    distance: int


@st.composite
def heard_of(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """Sticky entries, and others in the order in which they come."""
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
    """The levels that have the most entries."""
    counts = {level: sum(entry.level == level for entry in table) for level in range(9)}
    most = max(counts.values())
    return {level for level, count in counts.items() if count == most}


def sides(table: list[Entry]) -> tuple[list[int], list[int]]:
    """Distances of keys, to the right and to the left, as far as the farthest there could be."""
    none = [1_000] * 20
    right = sorted(entry.distance for entry in table if entry.distance > 0)
    left = sorted(-entry.distance for entry in table if entry.distance < 0)
    return (right + none)[:20], (left + none)[:20]


def literally(sticky: list[Entry], others: list[Entry], size: int) -> list[Entry]:
    """Entry by entry; each time all tables with one less are compared."""
    table = list(sticky)
    for entry in others:
        table.append(entry)
        if len(table) > size:
            without = [[e for e in table if e is not gone] for gone in table if gone not in sticky]
            table = max(without, key=cmp_to_key(better))
    return table


@given(st.lists(heard_of(), min_size=1, max_size=4), st.integers(1, 10))
def test_the_best_table_is_left(tables: list[tuple[list[Entry], list[Entry]]], size: int) -> None:
    most = max(len(sticky) for sticky, _ in tables)
    length = most + max(len(others) for _, others in tables)
    nobody = Entry(0, False, False, 0)
    rows = [
        sticky + [nobody] * (most - len(sticky)) + others + [nobody] * (length - most - len(others))
        for sticky, others in tables
    ]
    heard = Heard(
        there=np.array([[entry is not nobody for entry in row] for row in rows]),
        level=np.array([[entry.level for entry in row] for row in rows]),
        sticky=np.array([[place < most for place in range(length)] for _ in rows]),
        subscribes=np.array([[entry.subscribes for entry in row] for row in rows]),
        urgent=np.array([[entry.urgent for entry in row] for row in rows]),
        distance=np.array([[entry.distance for entry in row] for row in rows]),
    )
    held = adapted(heard, size)
    for row, kept, (sticky, others) in zip(rows, held, tables, strict=True):
        found = {entry for entry, stays in zip(row, kept, strict=True) if stays}
        assert found == set(literally(sticky, others, size))


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 63)), min_size=1))
def test_shared_bits(pairs: list[tuple[int, int]]) -> None:
    others = [vector ^ 1 << place for vector, place in pairs]
    others = [
        other ^ (other & (1 << place) - 1) for other, (_, place) in zip(others, pairs, strict=True)
    ]
    found = shared_bits(
        np.array([vector for vector, _ in pairs], dtype=np.uint64),
        np.array(others, dtype=np.uint64),
    )
    assert found.tolist() == [63 - place for _, place in pairs]
