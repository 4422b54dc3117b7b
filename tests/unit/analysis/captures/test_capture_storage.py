"""Captures in an object store that Arrow opens by its address: the same rows as from local files."""

import gzip

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from analysis.captures import storage
from analysis.captures.files import find_files
from analysis.captures.growing import Place, advance, between
from analysis.captures.pieces import split_files
from analysis.errors import AnalysisError
from support.captures.capture_files import START_NS, Captured, Pcapng, pcap, read_all


def some(count: int) -> list[Captured]:
    return [Captured(bytes([number % 250]) * 60, START_NS + number) for number in range(count)]


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A folder that is a bucket of a store, as s3:// has them."""
    folder = tmp_path / "bucket"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.pcap").write_bytes(pcap(some(500)))
    (folder / "deep" / "b.pcap.gz").write_bytes(gzip.compress(pcap(some(20))))
    section = Pcapng()
    for one in some(30):
        section.add(one)
    (folder / "deep" / "c.pcapng").write_bytes(section.bytes())
    (folder / "notes.txt").write_text("no capture")
    files = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(storage, "_opened", lambda _root: (files, "bucket"))
    return folder


@pytest.mark.parametrize("asked", ["s3://bucket", "s3://bucket/", "s3://bucket?region=x"])
def test_a_bucket_has_the_files_of_a_folder(bucket, asked):
    after = "?region=x" if "?" in asked else ""
    names = ("a.pcap", "deep/b.pcap.gz", "deep/c.pcapng")
    assert find_files([asked]) == [f"s3://bucket/{name}{after}" for name in names]


def test_patterns_and_single_files(bucket):
    assert find_files(["s3://bucket/deep/c.pcapng"]) == ["s3://bucket/deep/c.pcapng"]
    assert find_files(["s3://bucket/deep/*.gz"]) == ["s3://bucket/deep/b.pcap.gz"]
    assert find_files(["s3://bucket/notes.txt"]) == ["s3://bucket/notes.txt"]
    with pytest.raises(AnalysisError, match="there is no capture at s3://bucket/other"):
        find_files(["s3://bucket/other"])


def test_credentials_stay_part_of_the_address(bucket):
    found = find_files(["s3://key:secret@bucket/deep"])
    assert found[0] == "s3://key:secret@bucket/deep/b.pcap.gz"
    assert len(read_all(found[0]).rows) == 20


def test_packets_are_those_of_the_files(bucket):
    for address in find_files(["s3://bucket"]):
        file = bucket / address.removeprefix("s3://bucket/")
        here, there = read_all(file), read_all(address)
        assert {row.pop("path") for row in there.rows} == {address}
        assert [{**row, "path": str(file)} for row in there.rows] == here.rows
        assert there.accounted == here.accounted
        pieces = split_files([address], 9_000)
        assert [row["offset"] for row in read_all(address, pieces).rows] == [
            row["offset"] for row in here.rows
        ]
    assert len(split_files(["s3://bucket/a.pcap"], 9_000)) == 5


def test_a_file_in_a_store_may_grow(bucket):
    address, data = "s3://bucket/grows.pcap", pcap(some(10))
    (bucket / "grows.pcap").write_bytes(data[:300])
    first = advance(address, Place())
    (bucket / "grows.pcap").write_bytes(data)
    last = advance(address, first)
    pieces = [between(address, Place(), first), between(address, first, last)]
    assert len(read_all(address, pieces).rows) == 10


def test_a_missing_file_is_a_problem_and_a_strange_address_an_error(bucket, monkeypatch):
    ((_, _, reason),) = read_all("s3://bucket/gone.pcap").problems
    assert "cannot be opened" in reason
    monkeypatch.undo()
    with pytest.raises(AnalysisError, match="nowhere://x cannot be opened"):
        find_files(["nowhere://x/y.pcap"])


def test_addresses_of_this_machine_are_its_files(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(some(3)))
    assert find_files([f"file://{path}"]) == [str(path)]
    assert len(read_all(f"file://{path}").rows) == 3
