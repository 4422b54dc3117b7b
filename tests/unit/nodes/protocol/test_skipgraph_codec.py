"""Graph messages: what goes in comes out, any bytes are a message or an error, and the format stays as it is."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_codec import FORMS, decode, encode, with_publication
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import Kind, Message, WireError
from nodes.protocol.wire import decode as decode_wire
from nodes.protocol.wire import encode as encode_wire

GOLDEN = Path(__file__).parents[3] / "golden" / "nodes" / "graph_messages.txt"
KINDS = get_args(m.GraphMessage)

keys = st.binary(max_size=40)
u8, u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
contacts = st.builds(Contact, keys, u32, u64)
named = {
    "level": u8,
    "pause": u16,
    "hops": u8,
    "ticket": u32,
    "asker": u32,
    "origin": u32,
    "number": u64,
    "own_number": u64,
    "identity": u64,
    "body": st.binary(max_size=40),
    "left": contacts,
    "right": contacts,
    "peer": contacts,
    "contact": contacts,
    "dead": contacts,
    "successors": st.lists(contacts, max_size=4).map(tuple),
}
special = {
    (m.Find, "asker"): contacts,
    (m.Found, "contact"): st.none() | contacts,
    (m.Gone, "right"): keys,
    (m.Recheck, "right"): keys,
}


def strategy(kind: type) -> st.SearchStrategy[m.GraphMessage]:
    """Messages of this kind."""
    fields = {}
    for name in kind.__dataclass_fields__:  # type: ignore[attr-defined]
        if name in ("settled", "rightwards", "empty"):
            fields[name] = st.booleans()
        elif name == "way":
            fields[name] = st.sampled_from(m.Way)
        else:
            fields[name] = special.get((kind, name), named.get(name, keys))
    return st.builds(kind, **fields)


graph_messages = st.one_of([strategy(kind) for kind in KINDS])


@given(graph_messages)
def test_a_message_survives_the_wire(message: m.GraphMessage) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200) | graph_messages.map(encode), st.data())
def test_any_bytes_are_a_message_or_a_wire_error(data: bytes, more: st.DataObject) -> None:
    damaged = data[: more.draw(st.integers(0, len(data)))] + more.draw(st.binary(max_size=3))
    with suppress(WireError):
        assert encode(decode(damaged)) == damaged


def test_each_kind_has_a_number() -> None:
    assert {kind for kind, _ in FORMS.values()} == set(KINDS)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is cut"),
        (b"\xff", "unknown overlay message 255"),
        (encode(m.Unlinked(b"key"))[:-1], "is cut"),
        (encode(m.Unlinked(b"key")) + b"x", "after the end of Unlinked"),
        (encode(m.Noted(1, empty=True))[:-1] + b"\2", "a flag of 2"),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_a_reason(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode(data)


def test_a_message_that_does_not_fit_is_refused() -> None:
    with pytest.raises(WireError, match="does not fit"):
        encode(m.Noted(2**32, empty=False))


def test_a_publication_carries_its_multicast_as_routing() -> None:
    publication = Message(Kind.PUBLISH, topic="slope", payload=b"rain", message_id=9)
    multicast = m.Multicast(b"at", b"by", 3, m.Way.SPLIT, b"a", b"b", b"c", 9, publication)
    sent = replace(publication, routing=encode(multicast))
    assert with_publication(decode_wire(encode_wire(sent))) == multicast
    with pytest.raises(WireError, match="Unlinked in the routing"):
        with_publication(replace(publication, routing=encode(m.Unlinked(b"key"))))


def examples() -> list[m.GraphMessage]:
    """One message of each kind."""
    one, two = Contact(b"slope\0\1\0\0\0\7", 7, 0xE000 << 48), Contact(b"valley", 8, 1)
    return [
        m.Locate(b"key", 7, 1, 2),
        m.Gap(1, one, two, 1 << 32 | 5),
        m.Noted(1, True),
        m.Claim(b"at", one, 3, two, 4, 5),
        m.Claimed(b"at", one, 6),
        m.Unlink(one, two, 7, 1),
        m.Unlinked(b"at"),
        m.Check(b"at", one, 8, 120),
        m.Checked(b"at", one, 9, True, (two, one)),
        m.Declined(b"at", one, 10, two),
        m.Gone(b"at", b"right", 11),
        m.Recheck(b"at", b"right"),
        m.Suspect(b"key", 2),
        m.PeerDead(b"at", one, 3, True),
        m.Find(b"at", 3, True, one),
        m.Found(b"at", 3, False, None),
        m.Found(b"at", 3, False, one),
        m.Bye(one),
        m.Seek(b"key", 7, 1, 2),
        m.Sought(1, one, 3),
        m.Carry(b"key", 7, 1, b"body"),
        m.Notify(b"body"),
        m.Multicast(b"at", b"by", 3, m.Way.SPLIT, b"floor", b"low", b"high", 7 << 32 | 9, b"body"),
    ]


def test_the_bytes_of_each_kind_are_as_agreed() -> None:
    lines = [f"{type(message).__name__} {encode(message).hex()}\n" for message in examples()]
    assert "".join(lines) == GOLDEN.read_text()
    assert {type(message) for message in examples()} == set(KINDS)
