"""Files split at any byte, and damaged files: no byte is read twice, and none is lost silently."""

import random
import struct

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analysis.captures.files import compression_of
from analysis.captures.pcap import FileHead, PcapLayout
from analysis.captures.pcapng import PcapngLayout, Section
from analysis.captures.pieces import group_pieces, split_files, split_records
from analysis.captures.records import CUT_OFF, RecordScanner
from support.captures.capture_files import (
    START_NS,
    Captured,
    Interface,
    Pcapng,
    pcap,
    read_all,
    records,
)

ENOUGH = 6_000  # bytes to look back, where no packet is longer than a quarter of it


@st.composite
def packets(draw, least: int = 0, most: int = 60) -> list[Captured]:
    """Packets, some of which carry bytes that look like packets, as a download of a capture does."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    inner = records(
        Captured(chance.randbytes(chance.randrange(60)), START_NS + number) for number in range(20)
    )
    made = []
    for number in range(draw(st.integers(least, most))):
        cut_at = chance.randrange(len(inner))
        data = chance.choice(
            (chance.randbytes(chance.randrange(90)), inner[cut_at : cut_at + 1400], bytes(40))
        )
        made.append(Captured(data, START_NS + number * 1_000_000, len(data) + chance.randrange(9)))
    return made


def some_pcapng(made: list[Captured], order: str, chance: random.Random) -> bytes:
    """Several sections in either byte order, with interfaces that come late, and other blocks."""
    sections = [Pcapng(order, [Interface(name="one")])]
    for number, packet in enumerate(made):
        if chance.random() < 0.05:
            sections.append(Pcapng(chance.choice("<>"), [Interface(101, 6)]))
        section = sections[-1]
        if chance.random() < 0.1:
            section.describe(Interface(113, 3, name=f"late {number}"))
        if chance.random() < 0.1:
            section.block(chance.choice((4, 5, 0xBAD, 77)), chance.randbytes(chance.randrange(30)))
        which = chance.randrange(len(section.interfaces))
        section.add(Captured(packet.data, packet.ts_ns, packet.wirelen, which, "seen"))
    return b"".join(section.bytes() for section in sections)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("captures")


@settings(max_examples=60)
@given(
    packets(),
    st.sampled_from("<>"),
    st.booleans(),
    st.lists(st.integers(0, 40_000), max_size=6),
    st.sampled_from([64, 5000, 1 << 20]),
)
def test_a_file_in_pieces_is_the_file_in_one_go(folder, made, order, nano, places, window):
    path = folder / "whole.pcap"
    path.write_bytes(pcap(made, order, nano))
    whole = read_all(path)
    divided = read_all(path, split_records(str(path), places, ENOUGH), window=window)
    assert [row["caplen"] for row in whole.rows] == [len(one.data) for one in made]
    assert divided == whole
    assert not whole.problems
    assert whole.accounted == path.stat().st_size


@settings(max_examples=60)
@given(packets(), st.sampled_from("<>"), st.integers(100, 9_000), st.integers(0, 2**32))
def test_sections_and_late_interfaces_are_the_same_in_pieces(folder, made, order, size, seed):
    path = folder / "whole.pcapng"
    path.write_bytes(some_pcapng(made, order, random.Random(seed)))
    whole = read_all(path)
    assert [row["caplen"] for row in whole.rows] == [len(one.data) for one in made]
    assert read_all(path, split_files([str(path)], size)) == whole
    assert not whole.problems
    assert whole.accounted == path.stat().st_size


@st.composite
def damage(draw, data: bytes) -> bytes:
    """Damage a file as disks and programs do: cut it, overwrite it, or insert bytes."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(("cut", "insert", "overwrite", "zeros", "lengths")))
        garbage = draw(st.binary(min_size=1, max_size=200))
        if how == "cut":
            data = data[:at]
        elif how == "insert":
            data = data[:at] + garbage + data[at:]
        elif how == "zeros":
            data = data[:at] + bytes(len(garbage) * 9) + data[at:]
        elif how == "lengths":
            number = draw(st.sampled_from((0, 1, 2**18, 2**31, 2**32 - 1)))
            data = data[:at] + struct.pack("<II", number, number) + data[at + 8 :]
        else:
            data = data[:at] + garbage + data[at + len(garbage) :]
    return data


@settings(max_examples=150)
@given(st.data(), st.booleans())
def test_of_a_damaged_file_every_byte_is_read_or_reported(folder, data, next_generation):
    made = data.draw(packets(1, 25))
    seed = random.Random(data.draw(st.integers(0, 2**32)))
    whole = some_pcapng(made, "<", seed) if next_generation else pcap(made)
    broken = data.draw(damage(whole))
    assume(compression_of(broken) is None)  # sizes of a compressed file are those of its content
    path = folder / "broken.pcap"
    path.write_bytes(broken)
    found = read_all(path)
    assert found.accounted == len(broken)
    places = data.draw(st.lists(st.integers(0, len(broken)), max_size=3))
    if not next_generation and len(broken) > 24 and broken[:4] == whole[:4]:
        divided = read_all(path, split_records(str(path), places, ENOUGH))
    else:
        divided = read_all(path, split_files([str(path)], data.draw(st.integers(100, 5000))))
    assert divided.accounted == len(broken)


@given(st.binary(max_size=400), st.sampled_from(("pcap", "pcapng", "nothing")))
def test_any_bytes_are_read_or_reported(folder, garbage, head):
    assume(compression_of(garbage) is None)  # sizes of a compressed file are those of its content
    start = {"pcap": pcap([]), "pcapng": Pcapng().bytes(), "nothing": b""}[head]
    path = folder / "garbage"
    path.write_bytes(start + garbage)
    found = read_all(path)
    assert found.accounted == len(start) + len(garbage)
    assert found.rows or found.problems or not garbage


def test_places_that_lead_to_different_records_divide_a_file_all_the_same(folder):
    """Inserted bytes cut a record: a search from before them finds nothing, one from behind them finds records."""
    made = [Captured(records(plain(12)), START_NS + number) for number in range(4)]
    data = pcap(made)
    path = folder / "misleading.pcap"
    path.write_bytes(
        data[:1500] + struct.pack("<IIII", 1_700_000_000, 1, 200_000, 200_000) + data[1500:]
    )
    for first in range(24, 4000, 97):
        pieces = split_records(str(path), [first, first + 300, first + 900], 500)
        assert read_all(path, pieces).accounted == path.stat().st_size


def plain(count: int) -> list[Captured]:
    return [Captured(bytes([number]) * 60, START_NS + number) for number in range(count)]


def first_bytes(found) -> list[int]:
    return [row["offset"] for row in found.rows]


@pytest.mark.parametrize("garbage", [b"\xff" * 100, bytes(1000), b"no packet " * 30])
def test_garbage_in_the_middle_costs_no_packet(tmp_path, garbage):
    path = tmp_path / "x.pcap"
    good = [pcap(plain(20)), records(plain(30))]
    path.write_bytes(good[0] + garbage + good[1])
    found = read_all(path)
    assert len(found.rows) == 50
    ((offset, size, _),) = found.problems
    assert (offset, size) == (len(good[0]), len(garbage))


def test_the_last_record_of_a_killed_capture_is_reported(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(plain(3))[:-1])
    found = read_all(path)
    assert len(found.rows) == 2
    assert found.problems == [(24 + 2 * 76, 75, CUT_OFF)]


def test_space_that_was_never_written_is_no_packet(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(plain(3)) + bytes(5000))
    found = read_all(path)
    assert len(found.rows) == 3
    assert [size for _, size, _ in found.problems] == [5000]


def test_a_record_of_absurd_length_is_passed_over(tmp_path):
    path = tmp_path / "x.pcap"
    absurd = struct.pack("<IIII", 1_700_000_000, 5, 2**31, 2**31)
    path.write_bytes(pcap(plain(3)) + absurd + records(plain(3)))
    found = read_all(path)
    assert len(found.rows) == 6
    assert found.problems == [(24 + 3 * 76, 16, "no record: it would be 2147483648 bytes long")]


def test_a_block_whose_lengths_differ_is_passed_over(tmp_path):
    section = Pcapng()
    for packet in plain(6):
        section.add(packet)
    section.blocks[4] = section.blocks[4][:-4] + b"\x01\x02\x03\x04"
    path = tmp_path / "x.pcapng"
    path.write_bytes(section.bytes())
    found = read_all(path)
    assert len(found.rows) == 5
    assert [size for _, size, _ in found.problems] == [len(section.blocks[4])]


def test_packets_that_contradict_their_block_are_reported(tmp_path):
    section = Pcapng()
    section.add(plain(1)[0])
    section.block(6, struct.pack("<IIIII", 7, 0, 0, 4, 4) + b"abcd")
    section.block(6, struct.pack("<IIIII", 0, 0, 0, 400, 400) + b"abcd")
    path = tmp_path / "x.pcapng"
    path.write_bytes(section.bytes())
    found = read_all(path)
    assert len(found.rows) == 1
    assert [reason for _, _, reason in found.problems] == [
        "a packet of interface 7, which is described nowhere before",
        "a packet of 400 bytes in a block of 36",
    ]
    assert found.accounted == path.stat().st_size


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (pcap([])[:10], "no capture: the header of the file is cut off by the end of the file"),
        (b"PK\x03\x04" + bytes(30), "no capture: it begins with 504b0304"),
    ],
)
def test_a_file_that_is_no_capture_is_reported(tmp_path, data, reason):
    path = tmp_path / "x"
    path.write_bytes(data)
    assert read_all(path).problems == [(0, len(data), reason)]


def test_a_file_that_is_gone_is_reported(tmp_path):
    ((_, _, reason),) = read_all(tmp_path / "gone.pcap").problems
    assert reason == "it cannot be opened: No such file or directory"


def test_a_walk_through_much_garbage_ends(tmp_path):
    """Every place looks like a record, and leads to one that does not."""
    chance = random.Random(1)
    data = bytearray(b"".join(struct.pack("<I", chance.randrange(1, 64)) for _ in range(50_000)))
    for layout in (PcapLayout(FileHead("<", 1, 1)), PcapngLayout(Section(0, "<"))):
        scanner = RecordScanner(layout, 0)
        scanner.advance(data + bytes(64), 0, len(data), True)
        assert scanner.at == len(data)


def test_many_small_files_are_few_tasks_and_a_big_one_several(tmp_path):
    paths = []
    for number in range(30):
        path = tmp_path / f"{number:02}.pcap"
        path.write_bytes(pcap(plain(number)))
        paths.append(str(path))
    big = tmp_path / "big.pcap"
    big.write_bytes(pcap(plain(200) * 5))
    shares = group_pieces(split_files([*paths, str(big)], 20_000), 20_000)
    assert len(shares) == 2 + 4
    assert [piece.path for share in shares for piece in share] == paths + [str(big)] * 4
