"""Adaptive tables: the evicted entry is the one whose removal leaves the best table."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.overlays.table_order import Entry, candidates, literally
from testbed.converged.routing_tables import Candidates, retained, shared_bits


@given(st.lists(candidates(), min_size=1, max_size=4), st.integers(1, 10))
def test_eviction_leaves_the_best_table(
    tables: list[tuple[list[Entry], list[Entry]]], size: int
) -> None:
    most = max(len(sticky) for sticky, _ in tables)
    length = most + max(len(others) for _, others in tables)
    absent = Entry(0, False, False, 0)
    rows = [
        sticky + [absent] * (most - len(sticky)) + others + [absent] * (length - most - len(others))
        for sticky, others in tables
    ]
    candidates = Candidates(
        there=np.array([[entry is not absent for entry in row] for row in rows]),
        level=np.array([[entry.level for entry in row] for row in rows]),
        sticky=np.array([[place < most for place in range(length)] for _ in rows]),
        subscribes=np.array([[entry.subscribes for entry in row] for row in rows]),
        urgent=np.array([[entry.urgent for entry in row] for row in rows]),
        distance=np.array([[entry.distance for entry in row] for row in rows]),
    )
    held = retained(candidates, size)
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
