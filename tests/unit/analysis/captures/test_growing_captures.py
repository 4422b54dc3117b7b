"""Captures that grow while they are read: each record is read once, when it is complete, and is never a problem."""

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.growing import Place, advance, between
from analysis.errors import AnalysisError
from support.captures.capture_files import (
    START_NS,
    Captured,
    Interface,
    Pcapng,
    pcap,
    read_all,
    records,
)


def plain(count: int) -> list[Captured]:
    return [Captured(bytes([number]) * (20 + number), START_NS + number) for number in range(count)]


def sections(count: int) -> bytes:
    """Two sections, one in each byte order, with interfaces that are described late."""
    made = [Pcapng("<", [Interface(name="one")]), Pcapng(">", [Interface(resolution=6)])]
    for number, packet in enumerate(plain(count)):
        section = made[number * 2 // count]
        if number % 7 == 3:
            section.describe(Interface(101, 3, name=f"late {number}", offset_s=4))
        which = len(section.interfaces) - 1
        section.add(Captured(packet.data, packet.ts_ns, None, which, "seen"))
    return b"".join(section.bytes() for section in made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("growing")


def read_in_steps(path, data: bytes, sizes: list[int]):
    """The result of reading as the file grows to these sizes. A checkpoint is written and read back each time."""
    kept, rows, problems = json.dumps(Place().as_dict()), [], []
    for size in sorted({*sizes, len(data)}):
        path.write_bytes(data[:size])
        start = Place.from_dict(json.loads(kept))
        end = advance(str(path), start)
        if end.at > start.at:
            found = read_all(path, [between(str(path), start, end)])
            rows += found.rows
            problems += found.problems
        kept = json.dumps(end.as_dict())
    return rows, problems, Place.from_dict(json.loads(kept)).at


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(("pcap", "pcapng")), st.data())
def test_a_file_that_grows_by_any_bytes_gives_each_record_once(folder, kind, data):
    path = folder / f"x.{kind}"
    whole = pcap(plain(25)) if kind == "pcap" else sections(25)
    sizes = data.draw(st.lists(st.integers(0, len(whole)), max_size=12))
    rows, problems, at = read_in_steps(path, whole, sizes)
    assert rows == read_all(path).rows
    assert len(rows) == 25
    assert not problems
    assert at == len(whole)


def test_a_packed_file_that_grows_is_read_as_far_as_it_can_be_unpacked(folder):
    path = folder / "x.pcap.gz"
    noise = random.Random(1)
    made = [Captured(noise.randbytes(300), START_NS + number) for number in range(400)]
    data = gzip.compress(pcap(made), mtime=0)
    rows, problems, _ = read_in_steps(path, data, [10, 5_000, 60_000, 100_001])
    assert rows == read_all(path).rows
    assert len(rows) == 400
    assert not problems


def test_half_a_record_waits_and_so_does_half_a_header(folder):
    path, data = folder / "half.pcap", pcap(plain(3))
    for size, at in ((0, 0), (23, 0), (24, 0), (24 + 36 + 15, 24 + 36), (24 + 36 + 37, 97)):
        path.write_bytes(data[:size])
        assert advance(str(path), Place()).at == at


def test_garbage_waits_until_it_is_clear_where_the_next_record_begins(folder):
    path = folder / "garbage.pcap"
    good, behind = pcap(plain(5)), [Captured(bytes(1400), START_NS + n) for n in range(900)]
    whole = good + b"\xff" * 99 + records(behind)
    rows, problems, at = read_in_steps(path, whole, [len(good) + 50, len(good) + 20_000])
    assert len(rows) == 5 + 900
    assert [(offset, size) for offset, size, _ in problems] == [(len(good), 99)]
    assert at == len(whole)


def test_a_file_that_is_no_capture_is_reported_once_and_one_that_shrinks_is_an_error(folder):
    path = folder / "text.pcap"
    rows, problems, at = read_in_steps(path, b"no capture at all, but some text. " * 3, [30, 60])
    assert not rows
    assert sum(size for _, size, _ in problems) == at == 102
    path.write_bytes(pcap(plain(1)))
    with pytest.raises(AnalysisError, match="only 60 bytes, but 102 of it have been read"):
        advance(str(path), Place(at))


def test_no_more_than_asked_for_at_once(folder):
    path = folder / "long.pcap"
    path.write_bytes(pcap(Captured(bytes(1000), START_NS + n) for n in range(3000)))
    first = advance(str(path), Place(), 1 << 20)
    assert first.at == 24 + ((1 << 20) - 24) // 1016 * 1016
    assert advance(str(path), first).at == path.stat().st_size
