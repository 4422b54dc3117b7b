"""The kinds of control messages are known by their first bytes, however the messages were sent."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.protocols.link import read_link
from analysis.protocols.messages import LinkPlace
from analysis.protocols.overlay_messages import CARRIED_KINDS, OVERLAY_KINDS
from nodes.protocol import skipgraph_codec, wire
from nodes.protocol.skipgraph_messages import Carry, Multicast, Notify, Way
from nodes.protocol.topic_messages import TopicControl, encode_control
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, frame, frames
from testbed.backends.simulated.stream_contents import _message_types

GOLDEN = Path(__file__).parents[3] / "golden" / "nodes" / "graph_messages.txt"
ONE, OTHER = Host("one", 1, "10.77.0.1"), Host("other", 2, "10.77.0.2")
NAMES = {0x0A4D0001: "one", 0x0A4D0002: "other"}
PLACE = LinkPlace("one", 0x0A4D0001, int.from_bytes(ONE.mac), NAMES, {1: "one", 2: "other"})


def sent(data: bytes) -> list[dict]:
    """The messages that the analysis finds in a capture of these bytes from `one` to `other`."""
    captures = Captures()
    connection = Connection(captures, ONE, OTHER)
    connection.open(START_NS)
    connection.send(ONE, data, START_NS + 100 * MS)
    sightings, *_ = read_link(parse(captures.pcap("one")), PLACE)
    return sightings.to_pylist()


def overlay_message(payload: bytes, **more) -> bytes:
    return wire.encode(wire.Message(wire.Kind.OVERLAY, origin=1, payload=payload, **more))


@pytest.mark.parametrize("mask", [b"", b"\x81\x32\x53\x94"])
def test_every_message_of_the_skip_graph_is_known_by_its_name(mask):
    lines = [line.split() for line in GOLDEN.read_text().splitlines()]
    messages = [overlay_message(bytes.fromhex(payload)) for _, payload in lines]
    found = sent(b"".join(frame(message, mask) for message in messages))
    assert [OVERLAY_KINDS[row["overlay_kind"]] for row in found] == [name for name, _ in lines]
    for row, (name, _) in zip(found, lines, strict=True):
        assert row["carried_kind"] == (
            ord("b") if name in ("Carry", "Notify", "Multicast") else None
        )


keys = st.binary(max_size=40)
carriers = st.one_of(
    st.builds(Notify, st.just(encode_control(TopicControl.STOP, "rain"))),
    st.builds(
        Carry, keys, st.just(7), st.just(1), st.just(encode_control(TopicControl.STOP, "rain"))
    ),
    st.builds(
        Multicast,
        keys,
        keys,
        st.just(7),
        st.sampled_from(Way),
        keys,
        keys,
        keys,
        st.just(9),
        st.just(encode_control(TopicControl.STOP, "rain")),
    ),
)


@given(carriers, st.binary(min_size=4, max_size=4), st.lists(st.integers(1, 200), max_size=3))
def test_the_carried_kind_is_found_behind_any_keys_and_in_divided_messages(carrier, mask, cuts):
    payload = skipgraph_codec.encode(carrier)
    (row,) = sent(frames(overlay_message(payload), cuts, mask))
    assert (OVERLAY_KINDS[row["overlay_kind"]], CARRIED_KINDS[row["carried_kind"]]) == (
        type(carrier).__name__,
        "stop",
    )
    assert _message_types(payload) == (row["overlay_kind"], row["carried_kind"])


def test_other_messages_have_no_overlay_kind_and_flags_are_kept():
    message = wire.Message(
        wire.Kind.PUBLISH, flags=wire.CUSTODY | wire.REPEATED, payload=b"\1", routing=b"\2"
    )
    (row,) = sent(frame(wire.encode(message)))
    assert (row["overlay_kind"], row["carried_kind"], row["flags"]) == (None, None, 7)


def test_an_overlay_message_without_payload_has_no_kind():
    (row,) = sent(frame(overlay_message(b"")))
    assert (row["overlay_kind"], row["carried_kind"]) == (None, None)
    assert _message_types(b"") == (None, None)
