"""A lab in which no node uses our protocol: MQTT from publisher to subscriber, UDP, and a compressed WebSocket."""

import json
import math
import struct

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure
from support.captures import mqtt_packets as writing
from support.captures.mqtt_packets import MqttMessage
from support.runs.metric_tables import rows
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, frame, manifest_of

pytestmark = pytest.mark.spark

BROKER = Host("broker", 1, "10.77.0.1")
RIDGE = Host("ridge", 2, "10.77.0.2")
TOWN = Host("town", 3, "10.77.0.3")
HALL = Host("hall", 4, "10.77.0.4")
ASKED = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
AGREED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=12\r\n\r\n"
)
TOPICS = ("rain", "rain", "wind", "rain")
PAYLOADS = (b"3 mm", b"4 mm", b"storm" * 500, b"3 mm")  # the first and the last are equal


def datagram(source: Host, target: Host, payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", 5000, 6000, 8 + len(payload), 0) + payload
    ends = b"".join(bytes(map(int, host.address.split("."))) for host in (source, target))
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    return target.mac + source.mac + b"\x08\x00" + head + ends + udp


@pytest.fixture(scope="module")
def measured(spark, tmp_path_factory):
    """Publications of the ridge reach the town 20 ms after they reached the broker."""
    captures = Captures()
    connections = {}
    for port, host in enumerate((RIDGE, TOWN), start=40000):
        connections[host.name] = connection = Connection(captures, host, BROKER, ports=(port, 1883))
        connection.open(START_NS, b"", b"")
        connection.send(host, writing.connect(5, host.name), START_NS + 30 * MS)
        connection.send(BROKER, writing.connack(5), START_NS + 50 * MS)
    connections["town"].send(TOWN, writing.subscribe(5, "#"), START_NS + 70 * MS)
    connections["town"].send(BROKER, writing.suback(5), START_NS + 90 * MS)
    truth = []
    for number, (topic, payload) in enumerate(zip(TOPICS, PAYLOADS, strict=True)):
        at_ns = START_NS + (1000 + 100 * number) * MS
        message = MqttMessage(topic, payload, qos=1, packet_id=number + 1)
        arrived = connections["ridge"].send(RIDGE, writing.publish(5, message), at_ns)
        connections["ridge"].send(BROKER, writing.puback(number + 1), arrived)
        again = MqttMessage(topic, payload, qos=0)
        got = connections["town"].send(BROKER, writing.publish(5, again), arrived + 20 * MS)
        truth.append((topic, len(payload), at_ns + 5 * MS, got))
    compressed = Connection(captures, HALL, BROKER, ports=(40009, 9000))
    compressed.open(START_NS, ASKED, AGREED)
    compressed.send(HALL, frame(b"\xaa" * 40, b"mask", 0xC2) * 3, START_NS + 100 * MS)
    for link in ("hall", "broker"):
        for number in range(4):
            captures.add(link, START_NS + (500 + number) * MS, datagram(HALL, BROKER, b"12345"))
    folder = tmp_path_factory.mktemp("runs") / "foreign"
    (folder / "pcap").mkdir(parents=True)
    (folder / "logs").mkdir()
    hosts = (BROKER, RIDGE, TOWN, HALL)
    for host in hosts:
        (folder / "pcap" / f"{host.name}.pcap").write_bytes(captures.pcap(host.name))
    document = manifest_of([(host, "external", ()) for host in hosts], folder.name)
    (folder / "run.json").write_text(json.dumps(document))
    return folder, measure(spark.sparkContext, read_run(folder)), truth


def test_each_publication_is_followed_from_its_publisher_to_its_receiver(measured):
    folder, _, truth = measured
    found = sorted(rows(folder, "mqtt_deliveries"), key=lambda row: row["sent_first_ns"])
    assert [
        (row["topic"], row["payload_bytes"], row["sent_first_ns"], row["received_last_ns"])
        for row in found
    ] == truth
    assert {(row["origin"], row["receiver"]) for row in found} == {("ridge", "town")}
    assert [row["occurrence"] for row in found] == [1, 1, 1, 2]
    assert all(row["sure"] for row in found)
    for row in found:
        assert math.isclose(row["delay_s"], (row["received_last_ns"] - row["sent_first_ns"]) / 1e9)


def test_payload_of_mqtt_is_payload_and_all_else_of_it_a_layer(measured):
    folder, summary, _ = measured
    links = {(row["link"], row["direction"]): row for row in rows(folder, "links")}
    sent = links["ridge", "up"]
    assert sent["payload_bytes"] == sum(map(len, PAYLOADS))
    assert (sent["mqtt_messages"], sent["mqtt_control"], sent["unread_bytes"]) == (4, 1, 0)
    assert summary["overhead"]["payload_bytes"] == 4 * sum(map(len, PAYLOADS))
    layers = {
        (row["link"], row["direction"], row["layer"]): row["bytes"]
        for row in rows(folder, "overhead")
    }
    assert layers["ridge", "up", "mqtt"] == sent["mqtt_bytes"] > 0
    assert {row["kind"] for row in rows(folder, "mqtt") if row["link"] == "town"} == {
        "CONNECT",
        "CONNACK",
        "SUBSCRIBE",
        "SUBACK",
        "PUBLISH",
    }


def test_datagrams_are_a_table_and_a_layer(measured):
    folder, _, _ = measured
    (up,) = [row for row in rows(folder, "datagrams") if row["link"] == "hall"]
    assert (up["src"], up["dst"], up["src_port"], up["dst_port"]) == ("hall", "broker", 5000, 6000)
    assert (up["datagrams"], up["udp_acks"], up["payload_bytes"]) == (4, 0, 20)
    assert (up["first_ns"], up["last_ns"]) == (START_NS + 500 * MS, START_NS + 503 * MS)
    links = {(row["link"], row["direction"]): row for row in rows(folder, "links")}
    assert links["hall", "up"]["datagrams_bytes"] == up["wire_bytes"] == 4 * 47


def test_compressed_websockets_are_refused_with_their_links_and_a_next_step(measured):
    folder, summary, _ = measured
    (reason,) = [r for r in summary["fidelity"]["reasons"] if "permessage-deflate" in r]
    assert reason.startswith("Links broker and hall have WebSocket connections")
    assert "compression=None" in reason
    links = {(row["link"], row["direction"]): row for row in rows(folder, "links")}
    assert links["hall", "up"]["compressed_streams"] == 1
    assert links["hall", "up"]["unread_bytes"] == len(ASKED) + 3 * 46
    assert links["ridge", "up"]["compressed_streams"] == 0
