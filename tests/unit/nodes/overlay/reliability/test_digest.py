"""A digest lists exactly what a node has, as far as its size allows, and never more."""

from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodes.overlay.reliability import digest
from nodes.overlay.reliability.digest import MAX_DIGEST_BYTES
from nodes.protocol.wire import WireError, message_id

counters = st.integers(0, 9) | st.integers(0, 2**32 - 1)
ids = st.builds(message_id, st.integers(0, 3) | st.integers(0, 2**32 - 1), counters)


@given(st.lists(ids, max_size=60), st.lists(ids, max_size=20))
def test_the_other_side_reads_exactly_what_the_node_has(mine: list[int], others: list[int]) -> None:
    decoded = digest.decode(digest.encode(mine))
    assert all(each in decoded for each in mine)
    assert not any(each in decoded for each in others if each not in mine)


def test_the_digest_of_no_messages_is_empty() -> None:
    assert digest.encode([]) == b""
    assert message_id(0, 0) not in digest.decode(b"")


def test_a_long_row_without_gaps_takes_few_bytes() -> None:
    row = [message_id(7, counter) for counter in range(1000, 0, -1)]
    assert len(digest.encode(row)) == 4 + 1 + 1 + 2


def test_more_than_255_runs_of_one_origin_are_possible() -> None:
    every_second = [message_id(7, 2 * counter) for counter in range(300, 0, -1)]
    decoded = digest.decode(digest.encode(every_second))
    assert all(each in decoded for each in every_second)


@given(st.lists(ids, min_size=500, max_size=500, unique=True))
@settings(max_examples=10, deadline=None)
def test_a_digest_that_cannot_hold_all_ids_lists_the_newest(mine: list[int]) -> None:
    data = digest.encode(mine)
    assert len(data) <= MAX_DIGEST_BYTES
    decoded = digest.decode(data)
    listed = [each in decoded for each in mine]
    assert all(listed[:50])
    assert listed == sorted(listed, reverse=True), "no older one instead of a newer one"


@given(st.binary(max_size=MAX_DIGEST_BYTES + 9))
@example(b"\0" * (MAX_DIGEST_BYTES + 1))
@example(b"\0\0\0\1\1\xff\xff\xff\xff\xff")
def test_any_bytes_decode_to_a_digest_or_raise_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        assert isinstance(message_id(1, 1) in digest.decode(data), bool)


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0",  # cut within an origin
        b"\0\0\0\1\1",  # the run that it announces is missing
        b"\0\0\0\1\1\5",  # half a run
        b"\0\0\0\1\1\5\x80",  # cut within a number
        b"\0\0\0\1\1\0\xff\xff\xff\xff\x7f",  # beyond 32 bits
    ],
)
def test_cut_and_impossible_digests_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        digest.decode(data)
