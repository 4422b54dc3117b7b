"""Captures of links with a delivery method: the analysis reads what the real schedulers send."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.protocols.link import TOTALS, read_link
from analysis.protocols.messages import LinkPlace
from nodes.delivery import METHODS as REGISTERED
from nodes.protocol import wire
from nodes.protocol.labels import Form, levelled
from support.captures.labelled_streams import STYLES, write_mixed
from support.captures.scheduled_streams import chunks_of, completing, framed
from support.runs.star_runs import (
    MS,
    START_NS,
    WELL,
    Captures,
    Connection,
    Host,
    Passing,
    frame,
    packet,
)

TOWN = Host("town", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")
LAYERS = [
    field.name
    for field in TOTALS
    if field.name.endswith("_bytes")
    and field.name not in ("wire_bytes", "missing_bytes", "lost_tail_bytes")
]
METHODS = [
    ("fifo", {}),
    ("pq-pc", {}),
    ("pq-pc", {"ack": "udp"}),
    ("dmpq-pc", {}),
    ("dmpq-pc", {"dv": 100, "ack": "udp"}),
    ("dmpq-pc", {"dv": 1000, "label": "opcode"}),
    ("preemptive", {}),
    ("preemptive", {"dv": 200}),
]
METHOD_NAMES = [f"{name} {parameters}" for name, parameters in METHODS]
contents = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([0, 10, 90, 1415, 3000])), max_size=10
)


def place(host: Host) -> LinkPlace:
    names = {0x0A4D0001: "broker", 0x0A4D0002: "town"}
    return LinkPlace(
        host.name, 0x0A4D0000 + host.number, int.from_bytes(host.mac), names, {1: "broker"}
    )


def seen(
    captures: Captures, host: Host, **how: int
) -> tuple[list[dict[str, object]], dict[str, dict[str, int]]]:
    sightings, totals, *_ = read_link(parse(captures.pcap(host.name)), place(host), **how)
    return sightings.to_pylist(), {row["direction"]: row for row in totals.to_pylist()}


def messages(wanted: list[tuple[int, int]]) -> list[wire.Message]:
    chance = random.Random(len(wanted))
    return [
        wire.Message(
            wire.Kind.PUBLISH,
            priority=priority,
            origin=1,
            message_id=number,
            published_ns=START_NS,
            topic="landslide/alert",
            payload=chance.randbytes(size),
        )
        for number, (priority, size) in enumerate(wanted)
    ]


def opened(captures: Captures, **how: object) -> Connection:
    connection = Connection(captures, TOWN, BROKER, **how)
    connection.open(START_NS)
    return connection


def answer(captures: Captures, at_ns: int, ports: tuple[int, int], data: bytes = b"\0") -> None:
    """A datagram from the town to the broker, past both capture points."""
    made = bytearray(packet(TOWN, BROKER, ports, 0, 0, 0, b""))[:34]
    made[16:18], made[23] = (28 + len(data)).to_bytes(2), 17
    made += struct.pack("!HHHH", *ports, 8 + len(data), 0) + data
    captures.add("town", at_ns, bytes(made))
    captures.add("broker", at_ns + MS, bytes(made))


def test_no_method_is_left_out():
    assert {name for name, _ in METHODS} == set(REGISTERED)


@pytest.mark.parametrize(("method", "parameters"), METHODS, ids=METHOD_NAMES)
@settings(max_examples=30, deadline=None)
@given(wanted=contents, mss=st.sampled_from([100, 1448]), burst=st.integers(1, 6))
def test_messages_of_a_scheduler_are_read_back_exactly(method, parameters, wanted, mss, burst):
    sent = messages(wanted)
    captures = Captures()
    connection = opened(captures, mss=mss)
    chunks = chunks_of(method, parameters, sent, burst)
    completed = completing(method, parameters, chunks)
    arrived: dict[
        int, tuple[int, int]
    ] = {}  # message -> when the chunk began, and when it had arrived
    for number, data in enumerate(framed(chunks)):
        at_ns = START_NS + (100 + 10 * number) * MS
        there_ns = connection.send(BROKER, data, at_ns)
        alone = len(completed[number]) == 1
        arrived |= dict.fromkeys(completed[number], (there_ns if alone else at_ns, there_ns))
    rows, totals = seen(captures, TOWN)
    found = {int(str(row["id"]), 16): row for row in rows}
    assert len(rows) == len(found) == len(sent)
    for message in sent:
        row = found[message.message_id]
        assert (row["priority"], row["topic"]) == (message.priority, message.topic)
        assert row["payload_bytes"] == len(message.payload)
        assert row["complete"]
        earliest, latest = arrived[message.message_id]
        assert earliest <= row["last_ns"] <= latest
    down = totals["down"]
    payloads = sum(len(message.payload) for message in sent)
    headers = sum(len(wire.encode(message)) for message in sent) - payloads
    assert (down["payload_bytes"], down["header_bytes"]) == (payloads, headers)
    assert down["label_bytes"] == sum(len(chunk.data) for chunk in chunks) - payloads - headers
    assert (down["unread_bytes"], down["orphan_pieces"], down["compressed_messages"]) == (0, 0, 0)
    assert down["wire_bytes"] == sum(down[name] for name in LAYERS)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    style=st.sampled_from(STYLES),
    dv=st.sampled_from([40, 1443]),
    mss=st.sampled_from([60, 1448]),
    loss=st.sampled_from([0.0, 0.2]),
    late=st.sampled_from([0, 20 * MS]),
    snaplen=st.sampled_from([65535, 120]),
)
def test_every_byte_of_a_labelled_link_belongs_to_exactly_one_layer(
    seed, style, dv, mss, loss, late, snaplen
):
    chance = random.Random(seed)

    def decide(_host: Host, _number: int, payload: bytes) -> Passing:
        if not payload or payload.startswith((b"GET", b"HTTP")):
            return WELL
        return Passing(down=chance.random() >= loss, late_ns=int(chance.random() * late))

    captures = Captures()
    connection = opened(captures, decide=decide, mss=mss)
    sizes = [0, 10, 300, 2000]
    wanted = messages([(chance.randint(1, 5), chance.choice(sizes)) for _ in range(10)])
    writer, _ = write_mixed(chance, wanted, style, dv, b"abcd")
    connection.send(TOWN, writer.data, START_NS + 100 * MS)
    for number in range(4):
        answer(captures, START_NS + (110 + number) * MS, connection.ports)
    data = captures.pcap("broker", snaplen=snaplen)
    whole = read_link(parse(data), place(BROKER))
    for row in whole[1].to_pylist():
        assert row["wire_bytes"] == sum(row[name] for name in LAYERS)
        assert all(row[name] >= 0 for name in LAYERS)
    shards = [read_link(parse(data), place(BROKER), shard, 3) for shard in range(3)]
    for name in (field.name for field in TOTALS if field.name not in ("link", "direction")):
        sums = sum(row[name] for part in shards for row in part[1].to_pylist())
        assert sums == sum(row[name] for row in whole[1].to_pylist()), name


# Lee 2016: packets for one message of 100,000 bytes, by the length of its pieces.
@pytest.mark.parametrize(
    ("dv", "packets"), [(None, 70), (10_000, 70), (5000, 80), (1443, 70), (1000, 100)]
)
def test_packets_are_counted_as_the_thesis_formula_does(dv, packets):
    data_bytes = 100_000
    head = len(wire.encode(messages([(1, 0)])[0]))
    sent = messages([(1, data_bytes - head)])
    method = ("dmpq-pc", {"dv": dv}) if dv else ("pq-pc", {})
    captures = Captures()
    connection = opened(captures, mss=1448)
    for number, data in enumerate(framed(chunks_of(*method, sent))):
        connection.send(BROKER, data, START_NS + (100 + 100 * number) * MS)
    (row,), totals = seen(captures, TOWN)
    assert row["packets"] == packets
    assert row["pieces"] == (-(-data_bytes // dv) if dv else 1)
    upgrade = 1
    assert totals["down"]["data_packets"] == packets + upgrade


def test_a_packet_with_two_messages_counts_for_both_of_them():
    sent = messages([(2, 10), (2, 20)])
    parts = [wire.encode(message) for message in sent]
    together = b"".join(len(part).to_bytes(2) + part for part in parts)
    captures = Captures()
    connection = opened(captures)
    label = bytes([levelled(Form.SEVERAL, 2)])
    connection.send(BROKER, frame(label + together), START_NS + 100 * MS)
    rows, totals = seen(captures, TOWN)
    assert [(row["packets"], row["pieces"]) for row in rows] == [(1, 1), (1, 1)]
    assert [row["label_bytes"] for row in rows] == [3, 2]
    assert [row["websocket_bytes"] for row in rows] == [2, 0]
    assert totals["down"]["label_bytes"] == 5


def test_answers_by_udp_are_counted_apart_from_all_other_traffic():
    captures = Captures()
    connection = opened(captures)
    ports = connection.ports
    for number in range(3):
        answer(captures, START_NS + (100 + number) * MS, ports, bytes([number]))
    answer(captures, START_NS + 110 * MS, (ports[0] + 1, ports[1]))  # of no connection
    answer(captures, START_NS + 111 * MS, ports, b"ab")  # too long
    for host, direction, other in ((TOWN, "up", "down"), (BROKER, "down", "up")):
        _, totals = seen(captures, host)
        mine = totals[direction]
        assert (mine["udp_ack_packets"], mine["udp_acks_bytes"]) == (3, 3 * 43)
        assert (mine["datagram_packets"], mine["datagrams_bytes"]) == (2, 43 + 44)
        assert mine["wire_bytes"] == sum(mine[name] for name in LAYERS)
        assert (totals[other]["udp_ack_packets"], totals[other]["datagram_packets"]) == (0, 0)
        assert mine["other_packets"] == 0
