"""The same capture read by tshark, as an independent check of packets, streams and retransmissions."""

import random
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.captures.packets import read
from analysis.protocols.link import read_link
from analysis.protocols.messages import LinkPlace
from nodes.protocol import wire
from support.captures.labelled_streams import STYLES, write_mixed
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, Passing, frame

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="no tshark; apt-get install tshark"
)

SENSOR = Host("sensor", 2, "10.77.0.2")
BROKER = Host("broker", 1, "10.77.0.1")


def tshark(path: Path, chosen: str, *fields: str) -> list[list[str]]:
    asked = [
        "tshark",
        "-n",
        "-o",
        "tcp.reassemble_out_of_order:TRUE",
        "-r",
        str(path),
        "-Y",
        chosen,
        "-T",
        "fields",
        "-d",
        "tcp.port==8765,http",
    ]
    for name in fields:
        asked += ["-e", name]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.fixture
def capture(tmp_path):
    """Twenty messages, the third packet of each lost on the way and sent again 200 ms later."""
    captures = Captures()
    lost: set[int] = set()
    connection = Connection(captures, SENSOR, BROKER, lambda _h, n, _p: Passing(down=n not in lost))
    connection.open(START_NS)
    for number in range(20):
        message = wire.Message(
            wire.Kind.PUBLISH, origin=2, message_id=number, topic="rain", payload=bytes(6000)
        )
        data = frame(wire.encode(message), b"abcd")
        lost.add(connection.packets + 2)
        at_ns = START_NS + (100 + 500 * number) * MS
        connection.send(SENSOR, data, at_ns)
        again = data[2 * connection.mss : 3 * connection.mss]
        connection.resend(SENSOR, again, len(data) - 2 * connection.mss, at_ns + 200 * MS)
    paths = {}
    for host in (SENSOR, BROKER):
        paths[host.name] = tmp_path / f"{host.name}.pcap"
        paths[host.name].write_bytes(captures.pcap(host.name))
    return paths


def test_packets_have_the_fields_that_tshark_reads(capture):
    found = read(capture["broker"])
    fields = ("frame.time_epoch", "frame.len", "tcp.seq_raw", "tcp.len", "tcp.srcport", "tcp.flags")
    theirs = tshark(capture["broker"], "tcp", *fields)
    ours = zip(
        found.ts_ns,
        found.wirelen,
        found.seq,
        found.payload_len,
        found.src_port,
        found.flags,
        strict=True,
    )
    for (time, length, seq, size, port, flags), mine in zip(theirs, ours, strict=True):
        seconds, nanoseconds = time.split(".")
        assert int(seconds) * 10**9 + int(nanoseconds.ljust(9, "0")) == mine[0]
        assert (int(length), int(seq), int(size), int(port)) == tuple(
            int(value) for value in mine[1:5]
        )
        assert int(flags, 16) & 0xFF == mine[5]


@pytest.mark.parametrize("link", ["sensor", "broker"])
def test_retransmissions_are_counted_as_tshark_counts_them(capture, link):
    theirs = tshark(capture[link], "tcp.analysis.retransmission", "tcp.len")
    host = SENSOR if link == "sensor" else BROKER
    place = LinkPlace(link, 0x0A4D0000 + host.number, int.from_bytes(host.mac), {}, {})
    sightings, totals, *_ = read_link(read(capture[link]), place)
    ours = totals.to_pylist()
    assert sum(row["retransmitted_packets"] for row in ours) == len(theirs) == 20
    assert sum(row["retransmitted_payload"] for row in ours) == sum(int(n) for (n,) in theirs)
    assert [row["complete"] for row in sightings.to_pylist()] == [True] * 20


def test_websocket_messages_have_the_lengths_that_tshark_sees(capture):
    theirs = tshark(capture["broker"], "websocket", "websocket.payload_length_ext_16")
    sizes = [int(value) for row in theirs for cell in row for value in cell.split(",") if value]
    place = LinkPlace("broker", 0x0A4D0001, 0, {}, {})
    sightings, *_ = read_link(read(capture["broker"]), place)
    ours = [row["payload_bytes"] + row["header_bytes"] for row in sightings.to_pylist()]
    assert sizes == ours


@pytest.mark.parametrize("style", STYLES)
def test_labelled_frames_have_the_bits_and_lengths_that_tshark_sees(tmp_path, style):
    chance = random.Random(7)
    messages = [
        wire.Message(
            wire.Kind.PUBLISH,
            priority=chance.randint(1, 5),
            message_id=number,
            topic="rain",
            payload=chance.randbytes(chance.choice([20, 900, 4000])),
        )
        for number in range(12)
    ]
    writer, truths = write_mixed(chance, messages, style, 1443, b"abcd")
    captures = Captures()
    connection = Connection(captures, SENSOR, BROKER)
    connection.open(START_NS)
    starts = sorted({at for truth in truths for at in truth.frames})
    for number, (at, end) in enumerate(pairwise([*starts, len(writer.data)])):
        connection.send(SENSOR, writer.data[at:end], START_NS + (100 + 10 * number) * MS)
    path = tmp_path / "broker.pcap"
    path.write_bytes(captures.pcap("broker"))
    lengths = ("websocket.payload_length", "websocket.payload_length_ext_16")
    theirs = tshark(path, "websocket", "websocket.rsv", *lengths)
    assert len(theirs) == len(starts)
    place = LinkPlace("broker", 0x0A4D0001, 0, {}, {})
    sightings, totals, *_ = read_link(read(path), place)
    rows = sightings.to_pylist()
    down = totals.to_pylist()[1]
    assert [row["complete"] for row in rows] == [True] * 12
    carried = sum(int(long or short) for _, short, long in theirs)
    ours = sum(down[f"{layer}_bytes"] for layer in ("label", "header", "payload"))
    assert ours == carried
    assert down["unread_bytes"] == 0
    marked = sum(int(bits, 0) != 0 for bits, _, _ in theirs)
    assert (marked > 0) == (style == "bits")
