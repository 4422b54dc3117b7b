"""Messages of the Z-order map: they survive the wire, any bytes are a message or an error, and the format is stable."""

from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol import zorder_map_messages as w
from nodes.protocol.regions import Spans
from nodes.protocol.wire import Kind, Message, WireError

GOLDEN = Path(__file__).parents[3] / "golden" / "nodes" / "map_words.txt"
BITS = 64
ENTRY = w.Entry(7, 0x100000002, True, "{4 0-ff *}slope")
AREA = Spans([(0, 0xFF), (1 << 63, (1 << 64) - 1)])
EXAMPLES: tuple[w.MapMessage, ...] = (
    w.Register(16, 32, 255, False, ENTRY),
    w.Registered(16, 255, 0x100000002, True),
    w.Handover(3, 1, False, AREA, (ENTRY, ENTRY._replace(wanted=False, text="valley"))),
    w.Received(3),
    w.Want(AREA),
    w.Patience(Spans()),
    w.RollCall(AREA),
    w.Forget(0x100000000),
    w.Question("slope", b"what I have"),
    w.Sample(7, 1, 6),
    w.Load(1, 4200),
    w.Relieve(9, 4200),
    w.Offer(),
    w.Cut(1 << 63),
)

points = st.integers(0, 2**BITS - 1)
u64 = st.integers(0, 2**64 - 1)
spans = st.lists(st.tuples(points, points).map(lambda ends: tuple(sorted(ends))), max_size=4).map(
    Spans
)
entries = st.builds(w.Entry, st.integers(0, 2**32 - 1), u64, st.booleans(), st.text(max_size=20))


def test_the_bytes_stay_as_they_are() -> None:
    golden = dict(line.split() for line in GOLDEN.read_text().splitlines())
    assert {type(word).__name__: w.encode_message(word).hex() for word in EXAMPLES} == golden
    assert (
        [type(word) for word in EXAMPLES] == list(get_args(w.MapMessage)) == list(w.KINDS.values())
    )
    assert [w.decode_message(bytes.fromhex(line), BITS) for line in golden.values()] == list(
        EXAMPLES
    )


@given(
    st.builds(w.Register, points, points, points, st.booleans(), entries)
    | st.builds(
        w.Handover,
        u64,
        st.integers(0, 255),
        st.booleans(),
        spans,
        st.lists(entries, max_size=4).map(tuple),
    )
    | st.builds(w.Question, st.text(max_size=20), st.binary(max_size=20))
)
def test_a_message_survives_the_wire(word: w.MapMessage) -> None:
    assert w.decode_message(w.encode_message(word), BITS) == word


@given(st.binary(max_size=60), st.sampled_from(sorted(w.KINDS)))
def test_any_bytes_are_a_message_or_an_error(data: bytes, number: int) -> None:
    for each in (data, bytes([number]) + data):
        with suppress(WireError):
            w.encode_message(w.decode_message(each, BITS))


@pytest.mark.parametrize(
    ("word", "why"),
    [
        (w.Cut(1 << BITS), "the space has not"),
        (w.Want(Spans([(5, 1 << BITS)])), "the space has not"),
    ],
)
def test_points_outside_the_space_are_refused(word: w.MapMessage, why: str) -> None:
    with pytest.raises(WireError, match=why):
        w.decode_message(w.encode_message(word), BITS)


def test_a_stretch_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(WireError, match="before it begins"):
        w.decode_message(bytes([225, 0, 1, 1, 9, 1, 3]), BITS)


@given(st.sampled_from(w.Toward), st.integers(0, 255), st.integers(0, 2**32 - 1))
def test_a_publication_says_where_it_goes(toward: w.Toward, hops: int, attempt: int) -> None:
    section = w.RoutingSection(toward, hops, attempt)
    assert w.routing_section(Message(Kind.PUBLISH, routing=section.written())) == section
    assert w.RoutingSection(w.Toward.PLACE, 2, 3).written().hex() == "010200000003"


@pytest.mark.parametrize(
    "message",
    [
        Message(Kind.PUBLISH),
        Message(Kind.PUBLISH, routing=b"\x09" + bytes(5)),
        Message(Kind.ACK, routing=bytes(6)),
    ],
)
def test_one_that_does_not_is_refused(message: Message) -> None:
    with pytest.raises(WireError):
        w.routing_section(message)
