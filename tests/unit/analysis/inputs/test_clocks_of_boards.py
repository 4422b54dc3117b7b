"""Captures and logs of boards in the lab's time: packets, headers, log lines, and directions."""

import json
import shutil
import struct
from dataclasses import replace

import numpy as np
import pytest

from analysis.captures.clock import Measurement, clock_of
from analysis.captures.packets import parse, read
from analysis.inputs.clocks import NONE, read_clocks
from analysis.inputs.logs import parse_block, timed_by
from analysis.inputs.run_folder import read_run
from analysis.live.run import WatchedRun
from analysis.protocols.link import DOWN, UP, read_link, upward
from analysis.protocols.messages import LinkPlace
from analysis.scan import distribute, jobs_of
from nodes.protocol import wire
from support.runs.shifted_clocks import SECOND, TrueClock, framed, measurements, shift
from support.runs.star_runs import (
    MS,
    START_NS,
    Captures,
    Connection,
    Host,
    Publication,
    StarRun,
    frame,
)

CLOCKS = {
    "sensor-1": TrueClock(-900 * SECOND, 30e-6, START_NS),
    "town-1": TrueClock(2 * SECOND, -45e-6, START_NS),
}
PUBLICATIONS = [Publication(number % 2, 50 * number, 1 + number % 5) for number in range(20)]
ERROR_NS = 200_000


@pytest.fixture
def runs(tmp_path):
    """The same run on one clock, and on boards."""
    usual = StarRun(publications=PUBLICATIONS)
    usual.write(tmp_path / "one-clock")
    by_number = {host.number: CLOCKS[host.name] for host, _ in usual.hosts() if host.name in CLOCKS}
    shifted = replace(usual, as_frames=framed(usual.as_frames, by_number))
    shifted.write(tmp_path / "boards")
    shift(tmp_path / "boards", CLOCKS)
    at = [(START_NS + t * SECOND, "during") for t in (-1, 5)]
    (tmp_path / "boards" / "clocks.jsonl").write_text(measurements(CLOCKS, at, ERROR_NS))
    return tmp_path


def sightings(folder):
    """The sightings on all links, as the tasks of an analysis read them."""
    found = {}
    for job in jobs_of(read_run(folder)):
        packets = read(job.path).timed_by(job.clock)
        for row in read_link(packets, job.place).sightings.to_pylist():
            key = tuple(row[name] for name in ("link", "direction", "src", "dst", "id", "hops"))
            if row["kind"] == "PUBLISH":
                found[key] = row
    return found


def test_packets_and_headers_have_the_times_of_the_labs_machine(runs):
    true, taken = sightings(runs / "one-clock"), sightings(runs / "boards")
    clocks = read_clocks(runs / "boards" / "clocks.jsonl")
    assert true.keys() == taken.keys()
    for key, row in taken.items():
        for column, node in (("published_ns", "origin"), ("first_ns", "link"), ("last_ns", "link")):
            clock = clocks.get(row[node])
            off = abs(row[column] - true[key][column])
            allowed = 0 if clock is None else clock.error_at(np.array([row[column]]))[0]
            assert off <= allowed
        same = {"published_ns", "first_ns", "last_ns"}
        assert {n: v for n, v in row.items() if n not in same} == {
            n: v for n, v in true[key].items() if n not in same
        }


def test_only_jobs_of_boards_have_a_clock_also_when_a_file_is_shared_out(runs):
    jobs = jobs_of(read_run(runs / "boards"))
    assert {job.place.name for job in jobs if job.clock} == set(CLOCKS)
    big = [replace(job, size=1e9) for job in jobs]
    parts = [part for task in distribute(big, 4) for part in task]
    assert {part.place.name for part in parts if part.clock} == set(CLOCKS)
    plain = jobs_of(read_run(runs / "one-clock"))
    assert not any(job.clock or job.place.clocks for job in plain)


def test_times_of_the_labs_machine_are_left_unchanged(runs):
    packets = read(runs / "one-clock" / "pcap" / "broker.pcap")
    assert packets.timed_by(None) is packets
    rows = parse_block(b'{"t": 5, "node": "a", "event": "x"}\n').to_batches()[0]
    assert timed_by(None, rows) is rows
    assert NONE.get("broker") is None


def test_log_lines_get_the_labs_time_and_a_line_without_a_time_stays_without():
    clock = clock_of("a", [Measurement(START_NS, 7 * SECOND, 10, "before")])
    lines = [{"t": START_NS + 7 * SECOND, "node": "a", "event": "x"}, {"node": "a", "event": "y"}]
    block = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (rows,) = parse_block(block).to_batches()
    in_lab_time = timed_by(clock, rows)
    assert in_lab_time["t"].to_pylist() == [START_NS, None]
    assert in_lab_time.schema == rows.schema
    assert in_lab_time["event"].to_pylist() == ["x", "y"]


BOARD, BROKER = Host("pi", 2, "192.0.2.11"), Host("broker", 1, "10.77.0.1")
CARD = bytes.fromhex("b827eb012345")  # the board's own, not one that a lab gives
ADDRESS = int.from_bytes(bytes((192, 0, 2, 11)))
PLACE = LinkPlace(
    "pi",
    ADDRESS,
    int.from_bytes(BOARD.mac),
    {ADDRESS: "pi", 0x0A4D0001: "broker"},
    {1: "broker", 2: "pi"},
)


def board_capture():
    """A capture on a board's own network card: its publications, ARP of its own and of another, NTP of another."""
    captures = Captures()
    connection = Connection(captures, BOARD, BROKER)
    connection.open(START_NS)
    message = wire.Message(
        wire.Kind.PUBLISH, origin=2, message_id=wire.message_id(2, 1), published_ns=START_NS,
        topic="alert", payload=bytes(3000),
    )  # fmt: skip
    data = frame(wire.encode(message), b"\x01\x02\x03\x04")
    connection.send(BOARD, data, START_NS + 100 * MS)
    connection.resend(BOARD, data[-500:], 500, START_NS + 400 * MS)
    router = bytes.fromhex("020000000001")
    for at, (source, target) in enumerate([(CARD, b"\xff" * 6), (router, b"\xff" * 6)]):
        captures.add("pi", START_NS + (500 + at) * MS, target + source + b"\x08\x06" + bytes(28))
    udp = struct.pack("!HHHH", 123, 123, 8 + 48, 0) + bytes(48)
    addresses = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 99))
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *addresses)
    captures.add("pi", START_NS + 600 * MS, CARD + router + b"\x08\x00" + head + udp)
    own, theirs = BOARD.mac, BROKER.mac
    return (
        captures.pcap("pi")
        .replace(theirs + own, router + CARD)
        .replace(own + theirs, CARD + router)
    )


def test_a_boards_packets_are_known_by_its_address_and_others_by_its_network_card():
    packets = parse(board_capture())
    up = upward(packets, PLACE)
    assert (up[packets.is_tcp] == (packets.ip_src[packets.is_tcp] == ADDRESS)).all()
    others = ~packets.is_tcp
    assert up[others].tolist() == [
        True,
        False,
        False,
    ]  # its own ARP request; that of another; NTP of others


def test_a_boards_capture_has_its_messages_repetitions_and_others_where_they_belong():
    found = read_link(parse(board_capture()), PLACE)
    totals = {row["direction"]: row for row in found.totals.to_pylist()}
    (message,) = [row for row in found.sightings.to_pylist() if row["kind"] == "PUBLISH"]
    assert (message["direction"], message["src"], message["dst"]) == (UP, "pi", "broker")
    assert message["complete"]
    assert message["repeated_ns"] > 0
    assert totals[UP]["retransmitted_packets"] == 1
    assert totals[UP]["other_packets"] == totals[DOWN]["other_packets"] == 1
    assert totals[DOWN]["datagram_packets"] == 1
    for row in totals.values():
        layers = [
            n
            for n in row
            if n.endswith("_bytes") and n not in ("wire_bytes", "missing_bytes", "lost_tail_bytes")
        ]
        assert sum(row[name] for name in layers) == row["wire_bytes"]


def test_a_run_that_is_watched_has_its_clocks_corrected_too(runs):
    now = START_NS + 60 * SECOND
    levels = {}
    for name in ("one-clock", "boards"):
        watched = WatchedRun(runs / name)
        watched.look(final=True)
        levels[name] = watched.levels(now, 30.0)
    for true, found in zip(levels["one-clock"], levels["boards"], strict=True):
        assert (true.level, true.expected, true.delivered) == (
            found.level,
            found.expected,
            found.delivered,
        )
        assert found.p50 == pytest.approx(true.p50, abs=2e-3)
    shutil.copytree(runs / "boards", runs / "growing")
    (runs / "growing" / "clocks.jsonl").unlink()
    watched = WatchedRun(runs / "growing")
    watched.look()
    assert watched.levels(now, 30.0)[0].max > 100  # no clock has been measured yet
