"""Captures of other programs, made by tcpdump: our counts equal those of tshark.

tshark distinguishes a retransmitted packet from an overtaken one by the round trip of its connection, we by 3 ms
(`analysis/streams/reassembly.py`). Which packets bring bytes out of order is the same question to both, so the tests
compare their sum; `tcp.analysis.retransmission` is also set for fast and spurious ones. For us a keep-alive repeats a
byte.
"""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from analysis.captures.packets import read
from analysis.protocols.link import LinkRead, read_link
from analysis.protocols.messages import LinkPlace
from analysis.protocols.mqtt import Kind
from support.captures import foreign_captures

pytestmark = [
    pytest.mark.root,
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(foreign_captures.lacking()),
        reason=f"apt-get install {' '.join(foreign_captures.lacking())}",
    ),
]

OUT_OF_TURN = ("retransmission", "out_of_order", "keep_alive")
ADDRESSES = {0x0A630001: "server", 0x0A630002: "client"}
PLACE = LinkPlace("server", 0x0A630001, 0, ADDRESSES, {})
IPERF = "exec iperf3 -s -1"
HTTP = "exec python3 -m http.server 8000"
MQTT = (
    r"printf 'listener 1883\nallow_anonymous true\nuser root\n' > m.conf; exec mosquitto -c m.conf"
)
DOWNLOADS = (
    "until curl -sf -o one http://10.99.0.1:8000/big; do sleep 0.1; done; "
    "curl -sf -o two http://10.99.0.1:8000/big http://10.99.0.1:8000/; cmp one big; cmp two big"
)
PUBLISHERS = """
mosquitto_sub -V 5 -h 10.99.0.1 -t "#" -q 2 -F "%t %l" > got & listening=$!
until grep -q begin got; do
  sleep 0.2
  kill -0 $listening || { mosquitto_sub -V 5 -h 10.99.0.1 -t "#" -q 2 -F "%t %l" > got & listening=$!; }
  mosquitto_pub -h 10.99.0.1 -t begin -m now || true
done
for n in 1 2 3 4 5 6 7 8; do
  mosquitto_pub -V 311 -h 10.99.0.1 -t rain/$n -q 0 -m "$n mm"
  mosquitto_pub -V 5 -h 10.99.0.1 -t wind/$n -q 1 -f big -D publish user-property place ridge
  mosquitto_pub -V 31 -h 10.99.0.1 -t snow/$n -q 2 -r -m "$n cm"
done
mosquitto_pub -V 5 -h 10.99.0.1 -t end -q 1 -m now
until grep -q end got; do sleep 0.1; done
kill $listening
"""


def tshark_rows(path: Path, *fields: str, chosen: str = "") -> list[list[str]]:
    """The fields that tshark prints for each selected packet."""
    asked = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-o",
        "tcp.reassemble_out_of_order:TRUE",
        "-T",
        "fields",
    ]
    asked += [part for name in fields for part in ("-e", name)]
    asked += ["-Y", chosen] if chosen else []
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def must_agree(path: Path) -> LinkRead:
    """Compare packets, bytes and payload of each direction, packets out of order, and UDP."""
    ours = read_link(read(path), PLACE)
    fields = ("ip.src", "frame.len", "tcp.len", "udp.length")
    theirs: Counter[tuple[str, str]] = Counter()
    flags = [f"tcp.analysis.{name}" for name in OUT_OF_TURN]
    for source, size, segment, datagram, *marks in tshark_rows(path, *fields, *flags):
        for name, count in (
            ("packets", 1),
            ("wire_bytes", int(size)),
            ("tcp", bool(segment)),
            ("payload", int(segment or 0)),
            ("udp", bool(datagram)),
            ("again", any(marks)),
        ):
            theirs[source, name] += count
    for row, source in zip(ours.totals.to_pylist(), ("10.99.0.1", "10.99.0.2"), strict=True):
        others = row["other_packets"]  # ARP and IPv6, which have no address there
        assert row["packets"] - others == theirs[source, "packets"]
        assert row["wire_bytes"] - row["other_bytes"] == theirs[source, "wire_bytes"]
        assert row["tcp_packets"] == theirs[source, "tcp"]
        assert row["datagram_packets"] == theirs[source, "udp"]
        layers = ("websocket", "mqtt", "payload", "unread", "retransmitted")
        assert sum(row[f"{name}_bytes"] for name in layers) == theirs[source, "payload"]
        assert row["retransmitted_packets"] + row["reordered_packets"] == theirs[source, "again"]
        assert row["missing_bytes"] == row["lost_tail_bytes"] == 0
    return ours


def test_a_stream_that_fills_a_narrow_link(tmp_path):
    path = foreign_captures.capture(
        tmp_path, IPERF, "until iperf3 -c 10.99.0.1 -t 2; do sleep 0.1; done"
    )
    ours = must_agree(path)
    assert ours.totals.to_pylist()[1]["retransmitted_packets"] > 0
    assert len(ours.sightings) == len(ours.mqtt) == 0


def test_datagrams_are_flows_of_their_own(tmp_path):
    talk = "until iperf3 -c 10.99.0.1 -u -b 4M -t 1; do sleep 0.1; done"
    ours = must_agree(foreign_captures.capture(tmp_path, IPERF, talk))
    rows = {row["direction"]: row for row in ours.datagrams.to_pylist()}
    theirs = tshark_rows(
        tmp_path / "foreign.pcap", "udp.srcport", "udp.length", chosen="udp and ip.src==10.99.0.2"
    )
    assert rows["down"]["datagrams"] == len(theirs)
    assert rows["down"]["payload_bytes"] == sum(int(size) - 8 for _, size in theirs)
    assert {rows["down"]["src_port"]} == {int(port) for port, _ in theirs}
    assert (rows["down"]["src"], rows["down"]["dst"], rows["down"]["dst_port"]) == (
        "client",
        "server",
        5201,
    )


def test_downloads(tmp_path):
    (tmp_path / "big").write_bytes(bytes(range(256)) * 6000)
    ours = must_agree(foreign_captures.capture(tmp_path, HTTP, DOWNLOADS))
    up = ours.totals.to_pylist()[0]
    assert up["unread_bytes"] > 2 * 256 * 6000
    assert up["websocket_bytes"] == 0


def test_mosquitto_and_its_clients(tmp_path):
    """Compare every control packet that tshark finds (topic, flags, length), and the output of mosquitto_sub."""
    (tmp_path / "big").write_bytes(bytes(range(256)) * 80)
    path = foreign_captures.capture(tmp_path, MQTT, PUBLISHERS)
    ours = must_agree(path)
    for row in ours.totals.to_pylist():
        assert row["unread_bytes"] == 0
    rows = ours.mqtt.to_pylist()
    fields = ("mqtt.msgtype", "mqtt.topic", "mqtt.qos", "mqtt.retain", "mqtt.dupflag", "mqtt.len")
    kinds: Counter[int] = Counter()
    published = []
    for kind, topic, qos, retain, dup, size in tshark_rows(path, *fields, chosen="mqtt"):
        found = [int(number) for number in kind.split(",")]
        kinds.update(found)
        if Kind.PUBLISH in found:
            sizes = [n for k, n in zip(found, size.split(","), strict=True) if k == Kind.PUBLISH]
            columns = [column.split(",") for column in (topic, qos, retain, dup)]
            published += zip(*columns, sizes, strict=True)
    assert Counter(row["kind"] for row in rows) == {Kind(k).name: n for k, n in kinds.items()}
    windy = {f"wind/{number}" for number in range(1, 9)}  # long: their length field has more bytes
    mine = [
        (
            row["topic"],
            str(row["qos"]),
            str(int(row["retain"])),
            str(int(row["dup"])),
            str(row["header_bytes"] + row["payload_bytes"] - (4 if row["topic"] in windy else 2)),
        )
        for row in rows
        if row["kind"] == "PUBLISH"
    ]
    assert sorted(mine) == sorted(published)
    got = [line.split() for line in (tmp_path / "got").read_text().splitlines()]
    arrived = [
        (row["topic"], str(row["payload_bytes"]))
        for row in rows
        if (row["kind"], row["direction"], row["version"]) == ("PUBLISH", "up", 5)
    ]
    assert sorted(arrived) == sorted(tuple(message) for message in got)
    assert {row["version"] for row in rows if row["direction"] == "down"} == {3, 4, 5}
