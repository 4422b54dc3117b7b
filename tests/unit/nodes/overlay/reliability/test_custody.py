"""ACK names the copy of the publication that it acknowledges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.reliability.custody import (
    acknowledged_copy,
    acknowledgement,
    copy_checksum,
    encoded_with_custody,
    has_custody,
)
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message, WireError, decode, encode


@given(st.binary(max_size=40), st.integers(0, 2**64 - 1))
def test_an_acknowledgement_names_the_copy_that_it_acknowledges(
    routing: bytes, identity: int
) -> None:
    copy = Message(Kind.PUBLISH, flags=CUSTODY, message_id=identity, topic="a", routing=routing)
    answer = decode(encode(acknowledgement(9, copy)))
    assert (answer.kind, answer.origin, answer.message_id) == (Kind.ACK, 9, identity)
    assert acknowledged_copy(answer) == copy_checksum(copy)


def test_copies_for_different_parts_of_the_overlay_have_different_checksums() -> None:
    marks = {copy_checksum(Message(Kind.PUBLISH, routing=routing)) for routing in (b"", b"a", b"b")}
    assert len(marks) == 3


def test_only_publications_with_the_custody_flag_have_custody() -> None:
    for kind in Kind:
        for flags in (0, CUSTODY, REPEATED, CUSTODY | REPEATED):
            message = Message(kind, flags=flags)
            wanted = kind is Kind.PUBLISH and bool(flags & CUSTODY)
            assert has_custody(message) == encoded_with_custody(encode(message)) == wanted


@pytest.mark.parametrize("payload", [b"", b"123", b"12345"])
def test_an_acknowledgement_that_does_not_name_its_copy_is_an_error(payload: bytes) -> None:
    with pytest.raises(WireError, match="ACK with"):
        acknowledged_copy(Message(Kind.ACK, payload=payload))
