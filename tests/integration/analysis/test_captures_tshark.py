"""Captures of every kind, also read by tshark, as an independent check of each field of each packet."""

import gzip
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from scapy.all import (
    ARP,
    ICMP,
    IP,
    TCP,
    UDP,
    Dot1AD,
    Dot1Q,
    Ether,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    Raw,
    raw,
)

from support.captures.capture_files import START_NS, Captured, Interface, Pcapng, pcap, read_all

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="no tshark; apt-get install tshark"
)

# Our column, tshark's name for it (of several values the first counts), and how its text is parsed.
FIELDS = {
    "ts_ns": ("frame.time_epoch",),
    "wirelen": ("frame.len",),
    "caplen": ("frame.cap_len",),
    "interface": ("frame.interface_id",),
    "eth_src": ("eth.src",),
    "eth_dst": ("eth.dst",),
    "vlan": ("ieee8021ad.id", "vlan.id"),
    "ip_src": ("ip.src", "ipv6.src"),
    "ip_dst": ("ip.dst", "ipv6.dst"),
    "ttl": ("ip.ttl", "ipv6.hlim"),
    "src_port": ("tcp.srcport", "udp.srcport"),
    "dst_port": ("tcp.dstport", "udp.dstport"),
    "seq": ("tcp.seq_raw",),
    "ack": ("tcp.ack_raw",),
    "flags": ("tcp.flags",),
    "window": ("tcp.window_size_value",),
    "comment": ("frame.comment",),
}
NAMES = list(dict.fromkeys(name for names in FIELDS.values() for name in names))
TEXTS = {"eth_src", "eth_dst", "ip_src", "ip_dst", "comment"}


def tshark(path: Path) -> list[dict[str, str]]:
    asked = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=f"]
    asked += ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
    for name in NAMES:
        asked += ["-e", name]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return [dict(zip(NAMES, line.split("\t"), strict=True)) for line in lines]


def tshark_value(row: dict[str, str], column: str) -> object:
    """The value that tshark gives for a column; None if it gives none."""
    text = next((row[name] for name in FIELDS[column] if row[name]), None)
    if text is None or column in TEXTS:
        return text
    if column == "ts_ns":
        seconds, _, fraction = text.partition(".")
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
    return int(text, 0)


def must_agree(path: Path, *without: str) -> list[dict]:
    """Compare every column of every packet; return our rows."""
    ours = read_all(path)
    theirs = tshark(path)
    assert len(ours.rows) == len(theirs) > 0
    for number, (mine, their) in enumerate(zip(ours.rows, theirs, strict=True)):
        of_fragment = mine["kind"] == "fragment"
        for column in FIELDS:
            if column in without or (of_fragment and column in ("src_port", "dst_port")):
                continue
            assert mine[column] == tshark_value(their, column), (number, column)
    assert not ours.problems
    assert ours.accounted == path.stat().st_size or path.suffix in (".gz", ".zst")
    return ours.rows


FOUR = IP(src="10.77.0.1", dst="10.77.0.2", ttl=33)
SIX = IPv6(src="fd00::1", dst="2001:db8:0:0:1::2", hlim=44)
SEGMENT = TCP(sport=40000, dport=8765, seq=2**32 - 5, ack=77, flags="PA", window=512)
DATAGRAM = UDP(sport=5353, dport=9999)
NETWORK = [
    FOUR / SEGMENT / b"hello",
    FOUR / TCP(sport=1, dport=2, options=[("Timestamp", (1, 2))]) / b"with options",
    IP(src="1.2.3.4", dst="5.6.7.8", options=b"\x01\x01\x01\x01") / DATAGRAM / b"ip options",
    FOUR / DATAGRAM / b"datagram",
    FOUR / ICMP(),
    IP(proto=47) / Raw(b"something else"),
    IP(frag=10, proto=6) / Raw(bytes(40)),
    IP(flags="MF", proto=17) / DATAGRAM / bytes(16),
    SIX / SEGMENT / b"six",
    SIX / DATAGRAM / b"six",
    SIX / ICMPv6EchoRequest(),
    SIX / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / SEGMENT / b"extended",
    SIX / IPv6ExtHdrRouting(addresses=["fd00::9"]) / DATAGRAM / b"routed",
    SIX / IPv6ExtHdrFragment(offset=0, m=0) / SEGMENT / b"atomic fragment",
    SIX / IPv6ExtHdrFragment(offset=8, m=1, nh=6) / Raw(bytes(32)),
]


def ethernet() -> list[bytes]:
    here = Ether(src="02:74:62:00:00:01", dst="02:74:62:00:00:02")
    tagged = [here / Dot1Q(vlan=7, prio=3), here / Dot1AD(vlan=100) / Dot1Q(vlan=200)]
    made = [here / packet for packet in NETWORK]
    made += [tag / packet for tag in tagged for packet in NETWORK[:4]]
    made += [here / ARP(), Ether(type=0x88CC) / Raw(bytes(40)), here / Dot1Q(vlan=9) / ARP()]
    return [raw(one) for one in made]


def network() -> list[bytes]:
    return [raw(packet) for packet in NETWORK]


def captured(packets: list[bytes], snaplen: int = 65535) -> list[Captured]:
    return [
        Captured(data[:snaplen], START_NS + number * 1_234_567, len(data))
        for number, data in enumerate(packets)
    ]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [True, False])
def test_pcap_of_either_byte_order_and_resolution(tmp_path, order, nano):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(captured(ethernet()), order, nano))
    rows = must_agree(path, "interface")
    kinds = {row["kind"] for row in rows}
    assert kinds == {"tcp", "udp", "icmp", "icmpv6", "ip", "fragment", "arp", "other"}
    qinq = [(row["vlan"], row["inner_vlan"]) for row in rows if row["inner_vlan"] is not None]
    assert qinq == [(100, 200)] * 4


@pytest.mark.parametrize("snaplen", [0, 14, 33, 40, 54, 60])
def test_packets_that_the_capture_cut(tmp_path, snaplen):
    """tshark reports the fields in the part of a header that is there; we report whole headers only."""
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(captured(ethernet(), snaplen)))
    ours, theirs = read_all(path), tshark(path)
    assert len(ours.rows) == len(theirs)
    for mine, their in zip(ours.rows, theirs, strict=True):
        for column in FIELDS:
            if column != "interface" and mine[column] is not None:
                assert mine[column] == tshark_value(their, column)


@pytest.mark.parametrize(
    ("link_type", "head"),
    [
        (113, lambda kind: struct.pack("!HHH8sH", 0, 1, 6, b"\2tb\0\0\1\0\0", kind)),
        (276, lambda kind: struct.pack("!HHIHBB8s", kind, 0, 3, 1, 0, 6, b"\2tb\0\0\1\0\0")),
        (101, lambda kind: b""),
        (0, lambda kind: struct.pack("<I", 2 if kind == 0x0800 else 30)),
        (108, lambda kind: struct.pack(">I", 2 if kind == 0x0800 else 24)),
    ],
    ids=["cooked", "cooked 2", "raw", "null", "loop"],
)
def test_other_links_than_ethernet(tmp_path, link_type, head):
    kinds = [0x0800 if packet.version == 4 else 0x86DD for packet in NETWORK]
    made = [head(kind) + data for kind, data in zip(kinds, network(), strict=True)]
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(captured(made), link_type=link_type))
    rows = must_agree(path, "interface")
    assert sum(row["kind"] == "tcp" for row in rows) == 5
    assert {row["link_type"] for row in rows} == {link_type}


def test_a_link_that_we_do_not_know_gives_rows_all_the_same(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(captured(network()), link_type=147))
    rows = read_all(path).rows
    assert [row["wirelen"] for row in rows] == [len(data) for data in network()]
    assert {row["kind"] for row in rows} == {"unknown"}


@pytest.mark.parametrize("order", "<>")
def test_pcapng_with_interfaces_of_their_own_resolution_and_comments(tmp_path, order):
    interfaces = [
        Interface(1, None, name="usual"),
        Interface(101, 9, name="raw"),
        Interface(1, 3),
        Interface(1, 0x80 | 20, name="binary"),
        Interface(1, 6, offset_s=86_400, name="yesterday"),
    ]
    section = Pcapng(order, interfaces)
    for number in range(30):
        which = number % len(interfaces)
        data = network()[number % 15] if which == 1 else ethernet()[number % 15]
        comment = f"packet {number}, 土砂" if number % 3 == 0 else None
        at_ns = START_NS + number * 1_234_567
        section.add(Captured(data, at_ns, len(data), which, comment), old=number % 7 == 0)
    section.block(5, struct.pack(order + "III", 0, 0, 0))
    path = tmp_path / "x.pcapng"
    path.write_bytes(section.bytes())
    rows = must_agree(path)
    assert [row["interface_name"] for row in rows[:5]] == [
        "usual",
        "raw",
        None,
        "binary",
        "yesterday",
    ]


def test_simple_packets_have_no_time(tmp_path):
    section = Pcapng(interfaces=[Interface(1, snaplen=100)])
    for data in ethernet():
        section.add_simple(Captured(data[:100], wirelen=len(data)))
    path = tmp_path / "x.pcapng"
    path.write_bytes(section.bytes())
    rows = must_agree(path, "ts_ns")
    assert {row["ts_ns"] for row in rows} == {None}


@pytest.mark.parametrize("packed", ["gz", "zst"])
@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_packed_files_are_read_as_they_are(tmp_path, packed, kind):
    plain = tmp_path / f"x.{kind}"
    if kind == "pcap":
        plain.write_bytes(pcap(captured(ethernet())))
    else:
        section = Pcapng()
        for one in captured(ethernet()):
            section.add(one)
        plain.write_bytes(section.bytes())
    path = tmp_path / f"x.{kind}.{packed}"
    pack(plain, path)
    expected = must_agree(plain, "interface")
    found = read_all(path)
    assert [{**row, "path": ""} for row in found.rows] == [{**row, "path": ""} for row in expected]
    assert found.accounted == plain.stat().st_size


@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_of_a_packed_file_that_is_cut_all_is_read_that_can_be_unpacked(tmp_path, packed):
    chance = random.Random(1)
    plain, path = tmp_path / "x.pcap", tmp_path / f"x.pcap.{packed}"
    plain.write_bytes(pcap(Captured(chance.randbytes(1000)) for _ in range(2000)))
    pack(plain, path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    found = read_all(path)
    assert 1000 < len(found.rows) < 1340
    assert "damaged from here on" in found.problems[-1][2]
    theirs = subprocess.run(
        ["gzip" if packed == "gz" else "zstd", "-dc", str(path)], capture_output=True, check=False
    )
    assert len(theirs.stdout) - 1016 <= len(found.rows) * 1016 + 24


def pack(source: Path, target: Path) -> None:
    if target.suffix == ".gz":
        half = source.stat().st_size // 2  # two members, as `cat a.gz b.gz` makes them
        data = source.read_bytes()
        target.write_bytes(gzip.compress(data[:half]) + gzip.compress(data[half:]))
    else:
        import pyarrow as pa

        with pa.CompressedOutputStream(str(target), "zstd") as out:
            out.write(source.read_bytes())
