"""A capture read window by window gives the result of one pass, wherever the windows end; and memory does not grow."""

import random
import struct
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.protocols import connection, mqtt, stream_reader
from analysis.protocols.link import LinkRead, LinkReader, read_link
from analysis.protocols.messages import LinkPlace
from analysis.streams import reassembly
from nodes.protocol import wire
from support.captures import mqtt_packets as writing
from support.captures.labelled_streams import STYLES, write_mixed
from support.captures.mqtt_packets import MqttMessage
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, Passing, arp, frame

SENSOR = Host("sensor", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")
NAMES = {0x0A4D0001: "broker", 0x0A4D0002: "sensor"}
PLACE = LinkPlace("broker", 0x0A4D0001, int.from_bytes(BROKER.mac), NAMES, {2: "sensor"})
HEAD = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
ASKED = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
ANSWERED = b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"


@contextmanager
def small_limits():
    """Treat streams of some hundred bytes as long, so that little is held, and much is released."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "MOST_HELD", 600)
        patch.setattr(connection, "PROBE_BYTES", 500)
        patch.setattr(stream_reader, "PROBE_BYTES", 500)
        patch.setattr(reassembly, "REPEATS_WITHIN", 500)
        patch.setattr(reassembly, "REACH_BACK", 400)
        patch.setattr(reassembly, "LATEST", 4000)
        patch.setattr(mqtt, "LONGEST_HEAD", 150)
        yield


def records(captures: Captures, snaplen: int) -> list[bytes]:
    data = captures.pcap("broker", snaplen=snaplen)
    found, at = [], len(HEAD)
    while at < len(data):
        size = 16 + struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at : at + size])
        at += size
    return found


def in_windows(found: list[bytes], cuts: list[int]) -> LinkRead:
    reader = LinkReader(PLACE)
    edges = [0, *sorted(cuts), len(found)]
    for begin, end in pairwise(edges):
        reader.add(parse(HEAD + b"".join(found[begin:end])))
        reader.end_window()
    return reader.finish()


def plain(read: LinkRead) -> list[list[str]]:
    """All rows of all tables, sorted."""
    return [sorted(map(repr, table.to_pylist())) for table in read]


def must_agree(captures: Captures, chance: random.Random, snaplen: int = 65535) -> LinkRead:
    found = records(captures, snaplen)
    with small_limits():
        whole = read_link(parse(HEAD + b"".join(found)), PLACE)
        for count in (1, 6):
            cuts = [chance.randrange(len(found) + 1) for _ in range(count)]
            assert plain(in_windows(found, cuts)) == plain(whole)
        each = list(range(1, len(found)))
        assert plain(in_windows(found, each)) == plain(whole)
    return whole


def lossy(chance: random.Random, loss: float, late: int):
    """Lose and delay packets, except those that open a connection."""

    def decide(_host: Host, number: int, payload: bytes) -> Passing:
        if number < 5 or not payload:
            return Passing()
        return Passing(down=chance.random() >= loss, late_ns=int(chance.random() * late))

    return decide


def again(connection: Connection, chance: random.Random, data: bytes, at_ns: int) -> None:
    if chance.random() < 0.3:
        connection.resend(SENSOR, data[: connection.mss], len(data), at_ns)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    style=st.sampled_from([None, *STYLES]),
    loss=st.sampled_from([0.0, 0.0, 0.1]),
    late=st.sampled_from([0, 8 * MS]),
    snaplen=st.sampled_from([65535, 65535, 130]),
    skipped=st.sampled_from([0, 0, 7]),
)
def test_our_messages(seed, style, loss, late, snaplen, skipped):
    chance = random.Random(seed)
    captures = Captures()
    captures.add("broker", START_NS, arp(BROKER))
    connection = Connection(
        captures, SENSOR, BROKER, lossy(chance, loss, late), mss=chance.choice([90, 700])
    )
    connection.opening_seq = chance.choice([0, 2**32 - 900])
    connection.open(START_NS)
    messages = [
        wire.Message(
            wire.Kind.PUBLISH if chance.random() < 0.8 else wire.Kind.HEARTBEAT,
            priority=chance.randint(1, 5),
            origin=2,
            message_id=number,
            topic="rain",
            payload=chance.randbytes(chance.choice([0, 20, 300, 1200])),
        )
        for number in range(14)
    ]
    if style:
        data = write_mixed(chance, messages, style, 250, b"abcd")[0].data
        parts = [bytes(data[at : at + 400]) for at in range(0, len(data), 400)]
    else:
        parts = [frame(wire.encode(message), b"abcd") for message in messages]
    for number, part in enumerate(parts):
        at_ns = START_NS + (100 + 9 * number) * MS
        connection.send(SENSOR, part, at_ns)
        again(connection, chance, part, at_ns + 5 * MS)
        connection.acknowledge(BROKER, at_ns + 6 * MS)
    captures.records["broker"] = sorted(captures.records["broker"], key=lambda r: r[0])[skipped:]
    whole = must_agree(captures, chance, snaplen)
    if not (loss or skipped) and snaplen > 130:
        assert len(whole.sightings) == len(messages)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    version=st.sampled_from([4, 5]),
    loss=st.sampled_from([0.0, 0.0, 0.1]),
    skipped=st.sampled_from([0, 0, 4]),
    framed=st.booleans(),
)
def test_mqtt(seed, version, loss, skipped, framed):
    chance = random.Random(seed)
    captures = Captures()
    connection = Connection(
        captures, SENSOR, BROKER, lossy(chance, loss, 0), mss=chance.choice([90, 700])
    )
    connection.open(START_NS, ASKED if framed else b"", ANSWERED if framed else b"")
    sent = [writing.connect(version)]
    sent += [
        writing.publish(
            version,
            MqttMessage(
                "valley/rain",
                chance.randbytes(chance.choice([3, 80, 900])),
                alias=1 if version == 5 else 0,
                silent=version == 5 and number > 0,
            ),
        )
        for number in range(14)
    ]
    for number, packet in enumerate(sent):
        data = frame(packet, b"abcd") if framed else packet
        connection.send(SENSOR, data, START_NS + (100 + 9 * number) * MS)
        again(connection, chance, data, START_NS + (105 + 9 * number) * MS)
    captures.records["broker"] = sorted(captures.records["broker"], key=lambda r: r[0])[skipped:]
    whole = must_agree(captures, chance)
    if not loss and not skipped:
        assert len(whole.mqtt) == 15


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.booleans())
def test_bytes_that_mean_nothing(seed, from_start):
    """Some of the bytes look like WebSocket frames or like MQTT."""
    chance = random.Random(seed)
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER, mss=chance.choice([90, 700]))
    connection.open(START_NS, *([b"", b""] if chance.random() < 0.5 else []))
    hints = [
        b"\x82\x85",
        b"\xc2\x10P",
        b"\x82\x04\x01\x01",
        b"0\x09\0\4rain..",
        b"\xa2\x03abc",
        b"G",
    ]
    for number in range(12):
        parts = [chance.choice([chance.choice(hints), chance.randbytes(60)]) for _ in range(9)]
        connection.send(SENSOR, b"".join(parts), START_NS + (100 + number) * MS)
    if not from_start:
        captures.records["broker"] = captures.records["broker"][6:]
    must_agree(captures, chance)


def test_ports_that_are_used_again():
    chance = random.Random(1)
    captures = Captures()
    for number in range(3):
        connection = Connection(captures, SENSOR, BROKER, opening_seq=1000 + 500_000 * number)
        connection.open(START_NS + number * 200_000 * MS)
        for message in range(4):
            publication = wire.Message(wire.Kind.PUBLISH, message_id=message, payload=bytes(400))
            at_ns = START_NS + (number * 200_000 + 100 + message) * MS
            connection.send(SENSOR, frame(wire.encode(publication), b"abcd"), at_ns)
        connection.close(SENSOR, START_NS + (number * 200_000 + 200) * MS)
    whole = must_agree(captures, chance)
    assert len(whole.sightings) == 12
    assert whole.totals.to_pylist()[1]["connections"] == 3


def test_the_held_part_of_a_long_stream_does_not_grow():
    """20 MB of messages, of which at most the last few hundred bytes are still in transit."""
    message = wire.Message(wire.Kind.PUBLISH, payload=bytes(1200))
    data = frame(wire.encode(message), b"abcd")
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER, mss=len(data))
    connection.open(START_NS)
    reader = LinkReader(PLACE)
    held = []
    with small_limits():
        for window in range(40):
            for number in range(40):
                at_ns = START_NS + (100 + 40 * window + number) * MS
                connection.send(SENSOR, data, at_ns)
            reader.add(parse(captures.pcap("broker")))
            reader.end_window()
            captures.records.clear()
            held.append(reader.held)
    assert max(held[5:]) <= max(held[:5])
    assert len(reader.finish().sightings) == 1600
