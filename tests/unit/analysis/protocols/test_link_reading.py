"""The capture of a whole link: messages with their times, and the layer of every byte."""

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.protocols.link import TOTALS, read_link
from analysis.protocols.messages import LinkPlace
from nodes.protocol import wire
from support.runs.star_runs import (
    MS,
    START_NS,
    WELL,
    Captures,
    Connection,
    Host,
    Passing,
    arp,
    frame,
)

SENSOR = Host("sensor", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")
LAYERS = [
    field.name
    for field in TOTALS
    if field.name.endswith("_bytes")
    and field.name not in ("wire_bytes", "missing_bytes", "lost_tail_bytes")
]


def place(host: Host) -> LinkPlace:
    address = {
        h.name: int.from_bytes(bytes(map(int, h.address.split(".")))) for h in (SENSOR, BROKER)
    }
    names = {address[h.name]: h.name for h in (SENSOR, BROKER)}
    return LinkPlace(
        host.name, address[host.name], int.from_bytes(host.mac), names, {1: "broker", 2: "sensor"}
    )


def publish(number: int, size: int = 100) -> bytes:
    return wire.encode(
        wire.Message(
            wire.Kind.PUBLISH,
            priority=5,
            origin=2,
            message_id=wire.message_id(2, number),
            published_ns=START_NS,
            topic="alert",
            payload=bytes(size),
        )
    )


def seen(captures: Captures, host: Host, **how) -> tuple[list[dict], dict[str, dict]]:
    sightings, totals, *_ = read_link(parse(captures.pcap(host.name)), place(host), **how)
    return sightings.to_pylist(), {row["direction"]: row for row in totals.to_pylist()}


def connect(captures: Captures, **how) -> Connection:
    connection = Connection(captures, SENSOR, BROKER, **how)
    connection.open(START_NS)
    return connection


def test_a_message_shows_up_on_the_senders_link_and_down_on_the_receivers():
    captures = Captures()
    connect(captures).send(SENSOR, frame(publish(1), b"mask"), START_NS + 100 * MS)
    (up,), _ = seen(captures, SENSOR)
    (down,), _ = seen(captures, BROKER)
    assert (up["link"], up["direction"], up["src"], up["dst"]) == (
        "sensor",
        "up",
        "sensor",
        "broker",
    )
    assert (down["link"], down["direction"], down["src"]) == ("broker", "down", "sensor")
    assert up["last_ns"] == START_NS + 105 * MS
    assert down["last_ns"] == START_NS + 110 * MS
    assert {
        name: down[name] for name in ("kind", "id", "origin", "topic", "payload_bytes", "complete")
    } == {
        "kind": "PUBLISH",
        "id": "0000000200000001",
        "origin": "sensor",
        "topic": "alert",
        "payload_bytes": 100,
        "complete": True,
    }


def test_a_lost_packet_that_is_sent_again_makes_the_message_late_and_counts_once():
    captures = Captures()
    lost: set[int] = set()

    def decide(_host: Host, number: int, _payload: bytes) -> Passing:
        return Passing(down=number not in lost)

    connection = connect(captures, decide=decide, mss=50)
    lost.add(connection.packets)
    data = frame(publish(1))
    connection.send(SENSOR, data, START_NS + 100 * MS)
    arrived = connection.resend(SENSOR, data[:50], len(data), START_NS + 400 * MS)
    (up,), up_totals = seen(captures, SENSOR)
    (down,), down_totals = seen(captures, BROKER)
    assert up["last_ns"] < START_NS + 200 * MS
    assert down["last_ns"] == arrived
    assert up_totals["up"]["retransmitted_packets"] == 1
    assert up_totals["up"]["retransmitted_bytes"] == 50
    assert up_totals["up"]["retransmitted_payload"] == 50
    assert down_totals["down"]["retransmitted_payload"] == 50
    assert (
        down_totals["down"]["retransmitted_packets"] == 1
    )  # late, though no byte was seen twice here
    assert down_totals["down"]["retransmitted_bytes"] == 0


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    mss=st.sampled_from([40, 300, 1460]),
    opening=st.sampled_from([0, 2**32 - 200]),
    loss=st.sampled_from([0.0, 0.2]),
    late=st.sampled_from([0, 20 * MS]),
    snaplen=st.sampled_from([65535, 120]),
)
def test_every_byte_on_a_link_belongs_to_exactly_one_layer(seed, mss, opening, loss, late, snaplen):
    chance = random.Random(seed)

    def decide(_host: Host, _number: int, payload: bytes) -> Passing:
        if not payload or payload.startswith((b"GET", b"HTTP")):
            return WELL
        return Passing(down=chance.random() >= loss, late_ns=int(chance.random() * late))

    captures = Captures()
    captures.add("broker", START_NS, arp(BROKER))
    connection = connect(captures, decide=decide, mss=mss, opening_seq=opening)
    for number in range(12):
        data = frame(publish(number, chance.randrange(400)), chance.choice([b"", b"abcd"]))
        connection.send(SENSOR, data, START_NS + (100 + 50 * number) * MS)
        if chance.random() < 0.3:
            connection.resend(SENSOR, data, len(data), START_NS + (120 + 50 * number) * MS)
    data = captures.pcap("broker", snaplen=snaplen)
    whole = read_link(parse(data), place(BROKER))
    for row in whole[1].to_pylist():
        assert row["wire_bytes"] == sum(row[name] for name in LAYERS)
        assert all(row[name] >= 0 for name in LAYERS)
    shards = [read_link(parse(data), place(BROKER), shard, 3) for shard in range(3)]
    together = sorted((m["id"], m["last_ns"]) for part in shards for m in part[0].to_pylist())
    assert together == sorted((m["id"], m["last_ns"]) for m in whole[0].to_pylist())
    for name in (field.name for field in TOTALS if field.name not in ("link", "direction")):
        sums = sum(row[name] for part in shards for row in part[1].to_pylist())
        assert sums == sum(row[name] for row in whole[1].to_pylist()), name


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    mss=st.sampled_from([40, 300]),
    opening=st.sampled_from([0, 2**32 - 200]),
)
def test_with_loss_and_reordering_each_message_is_complete_when_its_last_missing_byte_came(
    seed, mss, opening
):
    """Compare byte by byte: a message has arrived when its bytes and all bytes before them have been seen."""
    chance = random.Random(seed)
    first_seen: dict[int, int] = {}
    position = 0
    captures = Captures()

    def decide(_host: Host, _number: int, _payload: bytes) -> Passing:
        return decision

    decision = WELL
    connection = connect(captures, decide=decide, mss=mss, opening_seq=opening)
    position = connection.sent["sensor"]
    ends: dict[int, int] = {}
    pieces: list[tuple[int, bytes]] = []
    for number in range(8):
        data = frame(publish(number, chance.randrange(300)), b"wxyz")
        pieces += [(position + at, data[at : at + mss]) for at in range(0, len(data), mss)]
        position += len(data)
        ends[wire.message_id(2, number)] = position
    moment = START_NS + 100 * MS
    for at, piece in pieces:
        moment += MS
        for again in range(1 + (chance.random() < 0.3)):
            decision = Passing(
                down=again == 1 or chance.random() > 0.2, late_ns=chance.randrange(30) * MS
            )
            connection.sent["sensor"] = at
            when = connection.send(SENSOR, piece, moment + again * 100 * MS)
            if decision.down:
                for byte in range(at, at + len(piece)):
                    first_seen[byte] = min(when, first_seen.get(byte, when))
    start = pieces[0][0]
    rows, _ = seen(captures, BROKER)
    for row in rows:
        end = ends[int(row["id"], 16)]
        needed = [first_seen.get(byte) for byte in range(start, end)]
        if row["complete"] and None not in needed:
            assert row["last_ns"] == max(needed)
    complete = {int(row["id"], 16) for row in rows if row["complete"]}
    previous = start
    for identity, end in ends.items():
        if all(byte in first_seen for byte in range(start, end)):
            assert identity in complete
        if any(byte not in first_seen for byte in range(previous, end)):
            assert identity not in complete
        previous = end


def test_a_new_connection_on_the_same_ports_is_a_stream_of_its_own():
    captures = Captures()
    first = connect(captures)
    first.send(SENSOR, frame(publish(1)), START_NS + 100 * MS)
    second = Connection(captures, SENSOR, BROKER, opening_seq=777_777)
    second.open(START_NS + 1000 * MS)
    second.send(SENSOR, frame(publish(2)), START_NS + 1100 * MS)
    rows, totals = seen(captures, BROKER)
    assert [row["id"] for row in rows] == ["0000000200000001", "0000000200000002"]
    assert totals["down"]["connections"] == 2
    assert totals["down"]["retransmitted_packets"] == 0


def test_openings_and_closings_that_are_repeated_count_as_sent_again():
    captures = Captures()
    connection = connect(captures)
    connection._pass(SENSOR, START_NS + 50 * MS, 0x02, b"", -1)
    connection.close(SENSOR, START_NS + 60 * MS)
    connection.close(SENSOR, START_NS + 70 * MS)
    _, totals = seen(captures, SENSOR)
    assert totals["up"]["retransmitted_packets"] == 2


def test_control_messages_acknowledgements_and_arp_have_their_own_counts():
    captures = Captures()
    captures.add("sensor", START_NS, arp(SENSOR))
    connection = connect(captures)
    connection.send(
        SENSOR, frame(wire.encode(wire.Message(wire.Kind.HELLO)), b"mask"), START_NS + 90 * MS
    )
    connection.acknowledge(SENSOR, START_NS + 95 * MS)
    rows, totals = seen(captures, SENSOR)
    up = totals["up"]
    assert [row["kind"] for row in rows] == ["HELLO"]
    assert (up["control_messages"], up["publish_messages"], up["control_bytes"]) == (1, 0, 28)
    assert (up["ack_packets"], up["other_packets"], up["other_bytes"]) == (2, 1, 42)
    assert totals["down"]["other_packets"] == 0


def test_packets_that_were_cut_by_the_capture_still_give_messages_their_times():
    captures = Captures()
    connection = connect(captures)
    connection.send(SENSOR, frame(publish(1, 1000)), START_NS + 100 * MS)
    connection.send(SENSOR, frame(publish(2, 1000)), START_NS + 110 * MS)
    packets = parse(captures.pcap("broker", snaplen=150))
    sightings, *_ = read_link(packets, place(BROKER))
    assert [row["complete"] for row in sightings.to_pylist()] == [True, True]
    assert [row["payload_bytes"] for row in sightings.to_pylist()] == [1000, 1000]


def test_an_address_that_no_node_has_is_shown_as_it_is():
    captures = Captures()
    unknown = Host("unknown", 99, "10.77.9.9")
    connection = Connection(captures, unknown, BROKER)
    connection.open(START_NS)
    connection.send(unknown, frame(publish(1)), START_NS + 100 * MS)
    (row,), _ = seen(captures, BROKER)
    assert row["src"] == "10.77.9.9"


@given(st.binary(max_size=400))
def test_packets_with_any_content_never_stop_the_reading(noise):
    captures = Captures()
    connection = connect(captures)
    connection.send(SENSOR, noise, START_NS + 100 * MS)
    captures.add("broker", START_NS, noise)
    _, totals = seen(captures, BROKER)
    for row in totals.values():
        assert row["wire_bytes"] == sum(row[name] for name in LAYERS)


def test_an_empty_capture_gives_two_rows_of_zeros():
    head = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    sightings, totals, *_ = read_link(parse(head), place(BROKER))
    assert len(sightings) == 0
    assert [row["packets"] for row in totals.to_pylist()] == [0, 0]
    assert np.all(np.array([list(row.values())[2:] for row in totals.to_pylist()]) == 0)


@pytest.mark.parametrize("kind", list(wire.Kind))
def test_every_kind_of_message_has_its_name(kind):
    captures = Captures()
    connect(captures).send(SENSOR, frame(wire.encode(wire.Message(kind))), START_NS + 90 * MS)
    (row,), _ = seen(captures, SENSOR)
    assert row["kind"] == kind.name


def test_bytes_that_a_dying_node_could_not_send_are_not_missing_from_the_capture():
    captures = Captures()
    connection = connect(captures, mss=400)
    connection.decide = lambda *_: Passing(up=False)
    connection.send(SENSOR, frame(publish(1), b"mask"), START_NS + 100 * MS)
    connection.decide = lambda *_: WELL
    connection.send(SENSOR, frame(publish(2), b"mask"), START_NS + 101 * MS)
    _, dead = seen(captures, SENSOR)
    assert dead["up"]["missing_bytes"] == 0
    connection.acknowledge(BROKER, START_NS + 150 * MS)
    _, alive = seen(captures, SENSOR)
    assert alive["up"]["missing_bytes"] == len(frame(publish(1), b"mask"))


@pytest.mark.parametrize("flags", [0, wire.CUSTODY, wire.CUSTODY | wire.REPEATED])
def test_a_publication_behind_a_gap_is_read_whatever_its_flags(flags):
    captures = Captures()
    connection = connect(captures)
    connection.decide = lambda *_: Passing(up=False)
    connection.send(SENSOR, frame(publish(1), b"mask"), START_NS + 100 * MS)
    connection.decide = lambda *_: WELL
    message = wire.Message(wire.Kind.PUBLISH, flags=flags, topic="alert", routing=b"\1")
    connection.send(SENSOR, frame(wire.encode(message), b"mask"), START_NS + 101 * MS)
    (row,), _ = seen(captures, SENSOR)
    assert row["flags"] == flags | wire.ROUTED
