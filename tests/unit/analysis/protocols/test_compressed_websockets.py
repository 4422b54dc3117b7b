"""Compressed WebSockets are not read, and are reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.protocols.http_upgrade import NO_UPGRADE, read_upgrade
from analysis.protocols.link import read_link
from analysis.protocols.messages import LinkPlace
from nodes.protocol import wire
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, frame

SENSOR = Host("sensor", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")
PLACE = LinkPlace("broker", 0x0A4D0001, int.from_bytes(BROKER.mac), {}, {})
ASKED = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
AGREED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nsec-websocket-extensions: "
    b"permessage-deflate; server_no_context_takeover\r\n\r\n"
)
DECLINED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
MESSAGE = frame(wire.encode(wire.Message(wire.Kind.PUBLISH, topic="rain")), b"mask")


def totals_after(answer: bytes, mss: int = 1460) -> list[dict]:
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER, mss=mss)
    connection.open(START_NS, ASKED, answer)
    connection.send(SENSOR, MESSAGE, START_NS + 100 * MS)
    connection.send(BROKER, frame(b"\xab" * 9, first=0xC2), START_NS + 120 * MS)
    return read_link(parse(captures.pcap("broker")), PLACE).totals.to_pylist()


@pytest.mark.parametrize("mss", [1460, 20])
def test_if_both_ends_agree_on_compression_nothing_of_either_is_read(mss):
    up, down = totals_after(AGREED, mss)
    assert (up["compressed_streams"], down["compressed_streams"]) == (1, 1)
    assert down["unread_bytes"] == len(ASKED) + len(MESSAGE)
    assert up["unread_bytes"] == len(AGREED) + 11
    assert down["publish_messages"] == 0


def test_compression_that_was_only_offered_does_not_count():
    up, down = totals_after(DECLINED)
    assert (up["compressed_streams"], down["compressed_streams"]) == (0, 0)
    assert down["publish_messages"] == 1


@given(st.binary(max_size=200))
def test_any_head_is_read_without_an_error(noise):
    for begin in (b"GET ", b"HTTP/1.1 101", b""):
        read_upgrade(begin + noise + b"\r\n\r\n")
    assert read_upgrade(noise.replace(b"\r\n\r\n", b"")) == NO_UPGRADE


@given(st.lists(st.sampled_from(["permessage-deflate", "x-other", "foo"]), max_size=3))
def test_each_extension_that_was_agreed_on_is_found(names):
    fields = "".join(f"Sec-WebSocket-Extensions: {name}; a=1\r\n" for name in names)
    head = f"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\n{fields}\r\n".encode()
    found = read_upgrade(head)
    assert found.extensions == tuple(names)
    assert found.is_compressed == ("permessage-deflate" in names)
    assert found.is_websocket
