"""The adaptive table of a node keeps the best entries, by the literal order and as converged overlays compute it."""

from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.contact_table import AdaptiveTable, Entry
from table_order import Entry as Heard
from table_order import heard_of, literally
from testbed.converged.routing_tables import Candidates as HeardByMany
from testbed.converged.routing_tables import retained

OWN = 100


def entry(heard: Heard, sticky: bool = False) -> Entry:
    """The same entry, identified by its key."""
    key = bytes([OWN + heard.distance])
    return Entry(key, key, heard.level, sticky, heard.subscribes, heard.urgent)


def filled(sticky: list[Heard], others: list[Heard], size: int) -> AdaptiveTable:
    table = AdaptiveTable(bytes([OWN]), size)
    for heard in sticky:
        table.take(entry(heard, sticky=True))
    for heard in others:
        table.take(entry(heard))
    return table


@given(heard_of(), st.integers(1, 10))
def test_the_best_table_is_left(heard: tuple[list[Heard], list[Heard]], size: int) -> None:
    sticky, others = heard
    found = {each.name for each in filled(sticky, others, size)}
    assert found == {entry(each).name for each in literally(sticky, others, size)}


@given(heard_of(), st.integers(1, 10))
def test_it_is_the_table_of_converged_overlays(
    heard: tuple[list[Heard], list[Heard]], size: int
) -> None:
    sticky, others = heard
    row = [*sticky, *others]
    held = retained(
        HeardByMany(
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


def test_the_one_that_goes_is_told_and_may_be_the_newcomer() -> None:
    table = AdaptiveTable(b"m", 2)
    assert table.take(Entry(b"n", b"n", 0, subscribes=True)) == []
    assert table.take(Entry(b"p", b"p", 0, subscribes=True)) == []
    assert table.take(Entry(b"a", b"a", 0)) == [b"a"]
    assert table.take(Entry(b"o", b"o", 0, subscribes=True)) == [b"p"]


def test_what_is_new_about_an_entry_replaces_what_was_known() -> None:
    table = AdaptiveTable(b"m", 2)
    table.take(Entry(1, b"n", 0))
    table.take(Entry(1, b"n", 3, sticky=True))
    assert list(table) == [Entry(1, b"n", 3, sticky=True)]
    table.discard(1)
    table.discard(1)
    assert len(table) == 0


def test_neighbours_never_go_even_if_they_are_too_many() -> None:
    table = AdaptiveTable(b"m", 2)
    for name in range(4):
        assert table.take(Entry(name, bytes([name]), name, sticky=True)) == []
    assert table.take(Entry(9, b"n", 9, subscribes=True, urgent=True)) == [9]
    assert len(table) == 4


def test_a_neighbour_that_comes_late_sends_others_away() -> None:
    table = AdaptiveTable(b"m", 1)
    table.take(Entry(1, b"n", 0))
    assert table.take(Entry(2, b"z", 0, sticky=True)) == [1]


def test_thousands_are_taken_in_quickly() -> None:
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


def test_a_table_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="table_size 0"):
        AdaptiveTable(b"m", 0)
