"""MQTT of any broker in captures: each packet with its times, and the layer of every byte."""

import random
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.mqtt import MQTT, MQTTConnect, MQTTPublish
from scapy.packet import raw

from analysis.captures.packets import parse
from analysis.protocols.link import TOTALS, LinkRead, read_link
from analysis.protocols.messages import LinkPlace
from analysis.protocols.mqtt import read_head, read_length, read_publication
from support.captures import mqtt_packets as writing
from support.captures.mqtt_packets import MqttMessage
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, Passing, frame

SENSOR = Host("sensor", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")
NAMES = {0x0A4D0001: "broker", 0x0A4D0002: "sensor"}
PLACE = LinkPlace("broker", 0x0A4D0001, int.from_bytes(BROKER.mac), NAMES, {})
NOT_LAYERS = ("wire_bytes", "missing_bytes", "lost_tail_bytes")
LAYERS = [f.name for f in TOTALS if f.name.endswith("_bytes") and f.name not in NOT_LAYERS]

topics = st.text(st.characters(codec="utf-8", exclude_characters="#+\0"), min_size=1, max_size=20)
versions = st.sampled_from([3, 4, 5])


@st.composite
def publications(draw):
    qos = draw(st.integers(0, 2))
    return MqttMessage(
        draw(topics),
        draw(st.binary(max_size=300)),
        qos,
        retain=draw(st.booleans()),
        dup=bool(qos) and draw(st.booleans()),
        packet_id=draw(st.integers(1, 65535)) if qos else None,
        properties=draw(
            st.sampled_from(
                [b"", b"\x01\x01", b"\x02\0\0\1\0\x0b\x80\x01", writing.user_property("k", "雨")]
            )
        ),
    )


def plain_connection(captures: Captures, **how) -> Connection:
    connection = Connection(captures, SENSOR, BROKER, ports=(40000, 1883), **how)
    connection.open(START_NS, b"", b"")
    return connection


def captured(data: bytes, mss: int = 1460, **how) -> LinkRead:
    captures = Captures()
    plain_connection(captures, mss=mss).send(SENSOR, data, START_NS + 100 * MS)
    return read_link(parse(captures.pcap("broker", **how)), PLACE)


def down(read: LinkRead) -> dict:
    total = read.totals.to_pylist()[1]
    assert total["wire_bytes"] == sum(total[name] for name in LAYERS)
    assert all(total[name] >= 0 for name in LAYERS)
    return total


def digest(payload: bytes) -> str:
    return blake2b(payload, digest_size=8).hexdigest()


@given(versions, st.lists(publications(), max_size=6), st.sampled_from([7, 100, 1460]))
def test_every_publication_is_read_as_it_was_written(version, sent, mss):
    data = writing.conversation(version, sent)
    read = captured(data, mss)
    rows = read.mqtt.to_pylist()
    kinds = [row["kind"] for row in rows]
    assert kinds == ["CONNECT", *["PUBLISH"] * len(sent), "PINGREQ", "DISCONNECT"]
    assert {row["version"] for row in rows} == {version}
    assert {(row["link"], row["direction"], row["src"], row["dst"]) for row in rows} == {
        ("broker", "down", "sensor", "broker")
    }
    for row, message in zip(rows[1:-2], sent, strict=True):
        assert row["topic"] == message.topic
        assert (row["qos"], row["retain"], row["dup"]) == (message.qos, message.retain, message.dup)
        assert row["packet_id"] == message.packet_id
        assert row["payload_bytes"] == len(message.payload)
        assert row["header_bytes"] == len(writing.publish(version, message)) - len(message.payload)
        properties = 1 + len(writing.properties_of(message)) if version == 5 else None
        assert row["properties_bytes"] == properties
        assert row["digest"] == digest(message.payload)
        assert row["complete"]
    total = down(read)
    payload = sum(len(message.payload) for message in sent)
    assert (total["payload_bytes"], total["mqtt_bytes"]) == (payload, len(data) - payload)
    assert (total["mqtt_messages"], total["mqtt_control"]) == (len(sent), 3)
    assert total["unread_bytes"] == 0
    assert len(read.sightings) == 0


@given(st.lists(publications(), min_size=1, max_size=4))
def test_scapy_writes_what_we_read(sent):
    data = raw(MQTT() / MQTTConnect(protoname="MQTT", protolevel=4, clientId="scapy"))
    for message in sent:
        head = MQTT(type=3, DUP=int(message.dup), QOS=message.qos, RETAIN=int(message.retain))
        body = MQTTPublish(topic=message.topic.encode(), value=message.payload)
        if message.qos:
            body.msgid = message.packet_id
        data += raw(head / body)
    rows = captured(data).mqtt.to_pylist()[1:]
    found = [(row["topic"], row["qos"], row["packet_id"], row["digest"]) for row in rows]
    assert found == [(t.topic, t.qos, t.packet_id, digest(t.payload)) for t in sent]


@pytest.mark.parametrize("version", [4, 5])
def test_the_brokers_first_answer_shows_its_version(version):
    captures = Captures()
    connection = plain_connection(captures)
    connection.send(SENSOR, writing.connect(version), START_NS + 100 * MS)
    message = MqttMessage("rain", b"\0 12 mm", qos=1, packet_id=9)
    answer = writing.connack(version) + writing.suback(version) + writing.publish(version, message)
    connection.send(BROKER, answer + writing.PONG, START_NS + 110 * MS)
    rows = read_link(parse(captures.pcap("broker")), PLACE).mqtt.to_pylist()
    up = [row for row in rows if row["direction"] == "up"]
    assert [row["kind"] for row in up] == ["CONNACK", "SUBACK", "PUBLISH", "PINGRESP"]
    assert up[2]["version"] == version
    assert up[2]["payload_bytes"] == len(message.payload)


def test_a_topic_that_was_given_a_number_is_known_by_it():
    first = MqttMessage("valley/rain", b"1", alias=3)
    later = MqttMessage("valley/rain", b"2", alias=3, silent=True)
    unknown = MqttMessage("", b"3", alias=4, silent=True)
    rows = captured(writing.conversation(5, [first, later, unknown])).mqtt.to_pylist()
    assert [row["topic"] for row in rows[1:4]] == ["valley/rain", "valley/rain", None]


def test_times_are_of_the_first_byte_and_of_the_last():
    captures = Captures()
    connection = plain_connection(captures, mss=100)
    connection.send(SENSOR, writing.connect(4), START_NS + 50 * MS)
    data = writing.publish(4, MqttMessage("rain", bytes(450)))
    arrived = connection.send(SENSOR, data, START_NS + 100 * MS)
    (row,) = read_link(parse(captures.pcap("broker")), PLACE).mqtt.to_pylist()[1:]
    assert (row["first_ns"], row["last_ns"]) == (START_NS + 110 * MS, arrived)
    assert row["packets"] == 5


def test_a_lost_packet_makes_the_publication_incomplete_and_the_next_one_is_found():
    captures = Captures()
    lost: set[int] = set()
    connection = plain_connection(
        captures, mss=100, decide=lambda _h, n, _p: Passing(down=n not in lost)
    )
    connection.send(SENSOR, writing.connect(4), START_NS + 50 * MS)
    lost.add(connection.packets + 1)
    connection.send(
        SENSOR, writing.publish(4, MqttMessage("rain", bytes(450))), START_NS + 100 * MS
    )
    lost.add(connection.packets)  # the whole head of another
    connection.send(
        SENSOR, writing.publish(4, MqttMessage("wind", bytes(450))), START_NS + 200 * MS
    )
    connection.send(SENSOR, writing.publish(4, MqttMessage("snow", b"much")), START_NS + 300 * MS)
    read = read_link(parse(captures.pcap("broker")), PLACE)
    rows = read.mqtt.to_pylist()[1:]
    assert [(r["topic"], r["complete"]) for r in rows] == [("rain", False), ("snow", True)]
    assert rows[0]["digest"] is None
    assert down(read)["unread_bytes"] > 0


@given(st.sampled_from([4, 5]), st.lists(publications(), min_size=2, max_size=6), st.data())
def test_a_capture_that_begins_in_the_middle_finds_the_next_publication(version, sent, data):
    """This holds as long as a segment begins with a publication."""
    captures = Captures()
    connection = plain_connection(captures)
    connection.send(SENSOR, writing.connect(version), START_NS + 50 * MS)
    for number, message in enumerate(sent):
        connection.send(SENSOR, writing.publish(version, message), START_NS + (100 + number) * MS)
    seen = data.draw(st.integers(1, len(sent)))
    captures.records["broker"] = captures.records["broker"][-seen:]
    read = read_link(parse(captures.pcap("broker")), PLACE)
    rows = read.mqtt.to_pylist()
    assert [row["topic"] for row in rows] == [message.topic for message in sent[-seen:]]
    assert {row["version"] for row in rows} == {None}
    down(read)


def test_without_a_beginning_properties_are_believed_if_all_publications_can_have_them():
    message = MqttMessage("rain", b"payload", properties=writing.user_property("unit", "mm"))
    captures = Captures()
    connection = plain_connection(captures)
    connection.send(SENSOR, writing.publish(5, message) * 3, START_NS + 100 * MS)
    captures.records["broker"] = captures.records["broker"][-1:]
    rows = read_link(parse(captures.pcap("broker")), PLACE).mqtt.to_pylist()
    assert [row["payload_bytes"] for row in rows] == [7] * 3


def test_packets_that_the_capture_cut_have_topics_and_times_but_no_digest():
    data = writing.connect(4) + writing.publish(4, MqttMessage("rain", bytes(1000)))
    captures = Captures()
    connection = plain_connection(captures)
    connection.send(SENSOR, data, START_NS + 100 * MS)
    connection.send(
        SENSOR, writing.publish(4, MqttMessage("wind", bytes(900))), START_NS + 110 * MS
    )
    read = read_link(parse(captures.pcap("broker", snaplen=120)), PLACE)
    rows = read.mqtt.to_pylist()[1:]
    assert [(r["topic"], r["complete"], r["digest"]) for r in rows] == [
        ("rain", True, None),
        ("wind", True, None),
    ]


UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt, mqttv3.1\r\n\r\n"
)
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nsec-websocket-protocol: mqtt\r\n\r\n"


@given(st.sampled_from([4, 5]), st.lists(publications(), max_size=4), st.integers(1, 400))
def test_mqtt_in_websocket_frames_is_read_however_it_is_cut_into_frames(version, sent, size):
    data = writing.conversation(version, sent)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER, ports=(40000, 9001))
    connection.open(START_NS, UPGRADE, SWITCHED)
    frames = b"".join(frame(piece, b"mask") for piece in pieces) + frame(b"x", b"mask", 0x89)
    connection.send(SENSOR, frames, START_NS + 100 * MS)
    connection.send(BROKER, frame(writing.connack(version)), START_NS + 120 * MS)
    read = read_link(parse(captures.pcap("broker")), PLACE)
    rows = [row for row in read.mqtt.to_pylist() if row["direction"] == "down"]
    found = [(r["topic"], r["digest"]) for r in rows if r["kind"] == "PUBLISH"]
    assert found == [(message.topic, digest(message.payload)) for message in sent]
    assert all(row["complete"] for row in rows)
    total = down(read)
    assert total["unread_bytes"] == 0
    heads = len(frames) - len(data)
    assert total["websocket_bytes"] == len(UPGRADE) + heads
    assert [row["kind"] for row in read.mqtt.to_pylist() if row["direction"] == "up"] == ["CONNACK"]


@given(st.sampled_from([4, 5]), st.binary(max_size=600), st.integers(0, 2**32))
def test_bytes_of_any_content_never_stop_the_reading(version, noise, seed):
    chance = random.Random(seed)
    good = writing.conversation(
        version, [MqttMessage("rain", bytes(50)), MqttMessage("wind", bytes(99))]
    )
    at = chance.randrange(len(good))
    for data in (writing.connect(version) + noise, good[:at] + noise + good[at:], noise):
        down(captured(data, mss=chance.choice([20, 200, 1460])))


@given(st.binary(max_size=40), st.integers(0, 45), st.sampled_from([None, 4, 5]))
def test_the_decoder_takes_any_bytes(data, at, version):
    head = read_head(data, at, version)
    if head is not None:
        assert head.at < head.body_at <= head.end
        found = read_publication(data, head, version or 5)
        if found is not None:
            assert head.body_at < found.payload_at <= min(head.end, len(data))


@given(st.integers(0, 128**4 - 1), st.binary(max_size=3))
def test_lengths_are_read_as_they_are_written(number, behind):
    written = writing.varying(number)
    assert read_length(written + behind, 0) == (number, len(written))


def test_http_is_neither_mqtt_nor_websocket():
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER, ports=(40000, 80))
    body = frame(b"\x01" * 60) * 50
    connection.open(START_NS, b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + body)
    read = read_link(parse(captures.pcap("broker")), PLACE)
    up, downward = read.totals.to_pylist()
    assert (up["unread_bytes"], downward["unread_bytes"]) == (19 + len(body), 18)
    assert (len(read.mqtt), len(read.sightings)) == (0, 0)


@settings(max_examples=30)
@given(st.binary(min_size=1, max_size=60))
def test_a_stream_of_our_own_is_never_taken_for_mqtt(payload):
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER)
    connection.open(START_NS)
    connection.send(SENSOR, frame(payload, b"mask"), START_NS + 100 * MS)
    assert len(read_link(parse(captures.pcap("broker")), PLACE).mqtt) == 0
