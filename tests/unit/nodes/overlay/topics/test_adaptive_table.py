"""The adaptive table of a node keeps the best entries, by the literal order and as converged overlays compute it."""

from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.contact_table import AdaptiveTable, Entry
from support.overlays.table_order import Entry as Candidate
from support.overlays.table_order import candidates, literally
from testbed.converged.routing_tables import Candidates as ConvergedCandidates
from testbed.converged.routing_tables import retained

OWN = 100


def entry(candidate: Candidate, sticky: bool = False) -> Entry:
    """The same entry, identified by its key."""
    key = bytes([OWN + candidate.distance])
    return Entry(key, key, candidate.level, sticky, candidate.subscribes, candidate.urgent)


def filled(sticky: list[Candidate], others: list[Candidate], size: int) -> AdaptiveTable:
    table = AdaptiveTable(bytes([OWN]), size)
    for candidate in sticky:
        table.take(entry(candidate, sticky=True))
    for candidate in others:
        table.take(entry(candidate))
    return table


@given(candidates(), st.integers(1, 10))
def test_the_best_table_is_left(
    candidate: tuple[list[Candidate], list[Candidate]], size: int
) -> None:
    sticky, others = candidate
    found = {each.name for each in filled(sticky, others, size)}
    assert found == {entry(each).name for each in literally(sticky, others, size)}


@given(candidates(), st.integers(1, 10))
def test_the_table_equals_that_of_converged_overlays(
    candidate: tuple[list[Candidate], list[Candidate]], size: int
) -> None:
    sticky, others = candidate
    row = [*sticky, *others]
    held = retained(
        ConvergedCandidates(
            there=np.ones((1, len(row)), dtype=bool),
            level=np.array([[each.level for each in row]]),
            sticky=np.array([[place < len(sticky) for place in range(len(row))]]),
            subscribes=np.array([[each.subscribes for each in row]]),
            urgent=np.array([[each.urgent for each in row]]),
            distance=np.array([[each.distance for each in row]]),
        ),
        size,
    )[0]
    found = {each.name for each in filled(sticky, others, size)}
    assert found == {entry(row[place]).name for place in np.flatnonzero(held)}


def test_the_table_returns_the_evicted_entry_which_may_be_the_new_one() -> None:
    table = AdaptiveTable(b"m", 2)
    assert table.take(Entry(b"n", b"n", 0, subscribes=True)) == []
    assert table.take(Entry(b"p", b"p", 0, subscribes=True)) == []
    assert table.take(Entry(b"a", b"a", 0)) == [b"a"]
    assert table.take(Entry(b"o", b"o", 0, subscribes=True)) == [b"p"]


def test_a_newer_entry_replaces_the_older_one_of_the_same_name() -> None:
    table = AdaptiveTable(b"m", 2)
    table.take(Entry(1, b"n", 0))
    table.take(Entry(1, b"n", 3, sticky=True))
    assert list(table) == [Entry(1, b"n", 3, sticky=True)]
    table.discard(1)
    table.discard(1)
    assert len(table) == 0


def test_neighbours_are_never_evicted_even_if_they_are_too_many() -> None:
    table = AdaptiveTable(b"m", 2)
    for name in range(4):
        assert table.take(Entry(name, bytes([name]), name, sticky=True)) == []
    assert table.take(Entry(9, b"n", 9, subscribes=True, urgent=True)) == [9]
    assert len(table) == 4


def test_a_neighbour_that_comes_late_evicts_others() -> None:
    table = AdaptiveTable(b"m", 1)
    table.take(Entry(1, b"n", 0))
    assert table.take(Entry(2, b"z", 0, sticky=True)) == [1]


def test_thousands_of_entries_are_added_quickly() -> None:
    random = Random(1)
    entries = [
        Entry(name, random.randbytes(8), 64 - random.getrandbits(64).bit_length(), subscribes=True)
        for name in range(3_000)
    ]
    table = AdaptiveTable(b"\x80", 60)
    begin = process_time()
    for each in entries:
        table.take(each)
    assert process_time() - begin < 3  # on a machine many times slower than a developer's
    assert len(table) == 60


def test_a_table_of_size_0_is_refused() -> None:
    with pytest.raises(ValueError, match="table_size 0"):
        AdaptiveTable(b"m", 0)
