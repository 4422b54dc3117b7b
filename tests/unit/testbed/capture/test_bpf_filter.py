"""The BPF filters of a board: judged by a plain evaluator, and beside the program that tcpdump makes."""

import shutil
import struct
import subprocess
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.captures import classic_bpf
from testbed.capture.bpf_filter import interface_filter, shaper_filter

PEERS = [IPv4Network("192.0.2.11"), IPv4Network("10.77.0.0/16")]
INCOMING, OUTGOING = 0, 4  # PACKET_HOST, PACKET_OUTGOING
SSH = 22
ports = st.one_of(st.sampled_from([SSH, 2222, 23]), st.integers(0, 65535))
sources = st.sampled_from(["192.0.2.11", "192.0.2.12", "10.77.3.4", "10.78.0.1"]).map(IPv4Address)


@st.composite
def ipv4_frames(draw: st.DrawFn) -> bytes:
    options = draw(st.integers(0, 10))
    fragment = draw(st.sampled_from([0, 0, 0, 0x2000, 0x4000, 1, 0x2001]))
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45 + options, 0, 0, 0, fragment, 64, draw(st.sampled_from([6, 17, 1])),
        0, draw(sources).packed, IPv4Address("192.0.2.1").packed,
    )  # fmt: skip
    rest = struct.pack("!HH", draw(ports), draw(ports)) + bytes(20)
    return bytes(12) + b"\x08\x00" + header + draw(st.binary(min_size=40))[:4] * options + rest


@st.composite
def ipv6_frames(draw: st.DrawFn) -> bytes:
    header = struct.pack("!IHBB32x", 0x60000000, 24, draw(st.sampled_from([6, 17, 44])), 64)
    return (
        bytes(12) + b"\x86\xdd" + header + struct.pack("!HH", draw(ports), draw(ports)) + bytes(20)
    )


others = st.binary(max_size=80).map(lambda rest: bytes(12) + rest)
frames = st.one_of(ipv4_frames(), ipv6_frames(), others)


def is_of_port(frame: bytes, port: int) -> bool:
    """The oracle: whether the frame is TCP of this port, in plain Python."""
    kind, at = frame[12:14], 54
    if kind == b"\x08\x00" and len(frame) >= 34:
        if frame[23] != 6 or int.from_bytes(frame[20:22], "big") & 0x1FFF:
            return False
        at = 14 + 4 * (frame[14] & 0xF)
    elif kind != b"\x86\xdd" or len(frame) < 58 or frame[20] != 6:
        return False
    found = frame[at : at + 4]
    return len(found) == 4 and port in struct.unpack("!HH", found)


@given(frames, st.lists(ports, max_size=3))
@example(bytes(12) + b"\x08\x00\x4f" + bytes(8) + b"\x06" + bytes(20), [SSH])
def test_exactly_these_ports_are_left_out(frame: bytes, without: list[int]) -> None:
    kept = classic_bpf.run(interface_filter(without), frame)
    assert bool(kept) == (not any(is_of_port(frame, port) for port in without))


@pytest.fixture(scope="module")
def of_tcpdump() -> list[classic_bpf.Instruction]:
    if not shutil.which("tcpdump"):
        pytest.skip("no tcpdump; apt-get install tcpdump")
    asked = ["tcpdump", "-ddd", "-y", "EN10MB", f"not tcp port {SSH}"]
    output = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    _, *lines = output.splitlines()
    return [tuple(map(int, line.split())) for line in lines]  # type: ignore[misc]


@given(st.one_of(ipv4_frames(), ipv6_frames()))
def test_tcpdump_would_leave_out_the_same(
    of_tcpdump: list[classic_bpf.Instruction], frame: bytes
) -> None:
    ours, theirs = (classic_bpf.run(one, frame) for one in (interface_filter([SSH]), of_tcpdump))
    assert bool(ours) == bool(theirs)


def from_a_peer(frame: bytes) -> bool:
    if frame[12:14] != b"\x08\x00" or len(frame) < 34:
        return False
    return any(IPv4Address(frame[26:30]) in network for network in PEERS)


@given(st.one_of(ipv4_frames(), ipv6_frames()), st.sampled_from([INCOMING, OUTGOING]))
def test_each_packet_is_captured_in_one_place(frame: bytes, packet_type: int) -> None:
    """Packets of peers are captured behind the shaper, others at the interface, excluded ports nowhere."""
    at_interface = classic_bpf.run(interface_filter([SSH], PEERS), frame, packet_type=packet_type)
    behind_shaper = classic_bpf.run(shaper_filter([SSH], PEERS), frame, packet_type=OUTGOING)
    shaped = packet_type == INCOMING and from_a_peer(frame)
    wanted = not is_of_port(frame, SSH)
    assert bool(at_interface) == (wanted and not shaped)
    assert bool(behind_shaper) == (wanted and from_a_peer(frame))


def test_many_peers_and_many_ports_still_make_a_program() -> None:
    peers = [IPv4Network((0x0A000001 + 2 * number, 32)) for number in range(900)]
    program = interface_filter(range(1, 17), peers)
    assert len(program) < 4096
    frame = bytes(12) + b"\x08\x00" + bytes(12) + peers[-1].network_address.packed + bytes(30)
    assert not classic_bpf.run(program, frame)
    assert classic_bpf.run(program, frame, packet_type=OUTGOING)
