"""Numbers in the reserved bits of frames, between the two protocol machines of the WebSocket library."""

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from nodes.runtime.label_extension import Acceptance, LabelExtension, Offer, agreed

Ends = tuple[ClientProtocol, ServerProtocol]


def connected(*, offered: bool = True, accepted: bool = True, times: int = 1) -> Ends:
    client = ClientProtocol(
        parse_uri("ws://b1/"), extensions=[Offer() for _ in range(times)] if offered else None
    )
    server = ServerProtocol(extensions=[Acceptance()] if accepted else None)
    client.send_request(client.connect())
    server.receive_data(b"".join(client.data_to_send()))
    (request,) = server.events_received()
    server.send_response(server.accept(request))  # type: ignore[arg-type]
    client.receive_data(b"".join(server.data_to_send()))
    client.events_received()
    return client, server


def label(end: Protocol) -> LabelExtension:
    found = agreed(end)
    assert found is not None
    return found


def carry(sender: Protocol, receiver: Protocol) -> list[Frame]:
    receiver.receive_data(b"".join(sender.data_to_send()))
    return [event for event in receiver.events_received() if isinstance(event, Frame)]


def test_every_number_travels_both_ways_and_in_order() -> None:
    client, server = connected()
    for sender, receiver in ((client, server), (server, client)):
        for bits in range(8):
            label(sender).outgoing = bits
            sender.send_binary(bytes([bits]) * 200)
        frames = carry(sender, receiver)
        assert [frame.data[0] for frame in frames] == list(range(8))
        assert list(label(receiver).received) == list(range(8))


def test_a_message_in_fragments_has_one_number_and_control_frames_have_none() -> None:
    client, server = connected()
    label(client).outgoing = 5
    client.send_binary(b"begin", fin=False)
    client.send_ping(b"")
    client.send_continuation(b"end", fin=True)
    label(client).outgoing = 0
    client.send_binary(b"next")
    assert len(carry(client, server)) == 4
    assert list(label(server).received) == [5, 0]


@pytest.mark.parametrize("opcode", [Opcode.CONT, Opcode.PING])
def test_bits_where_no_message_begins_end_the_connection(opcode: Opcode) -> None:
    client, server = connected()
    client.send_binary(b"begin", fin=False)
    bad = bytearray(Frame(opcode, b"x").serialize(mask=True))
    bad[0] |= 0b0100_0000
    server.receive_data(b"".join(client.data_to_send()) + bad)
    assert "reserved bits must be 0" in str(server.parser_exc)


@pytest.mark.parametrize(("offered", "accepted"), [(False, True), (True, False)])
def test_without_both_sides_bits_end_the_connection(offered: bool, accepted: bool) -> None:
    client, server = connected(offered=offered, accepted=accepted)
    assert agreed(client) is None
    assert agreed(server) is None
    client.send_binary(b"x")
    frame = bytearray(b"".join(client.data_to_send()))
    frame[0] |= 0b0001_0000
    server.receive_data(frame)
    assert "reserved bits must be 0" in str(server.parser_exc)


def test_the_extension_is_agreed_on_once() -> None:
    client, server = connected(times=2)
    assert len(client.extensions) == len(server.extensions) == 1
