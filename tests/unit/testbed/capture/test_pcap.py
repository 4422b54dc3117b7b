"""The capture file of a link can be read at any moment and after any crash."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from testbed.capture.pcap import PcapFile
from testbed.capture.records import Record, extent, read_records
from testbed.errors import InputError

frames = st.binary(max_size=120)
records = st.lists(
    st.builds(lambda time_ns, more, data: (time_ns, len(data) + more, data),
              st.integers(0, 2**32 * 10**9 - 1), st.integers(0, 1000), frames),
    max_size=8,
)  # fmt: skip


def written(path: Path, *batches: list[Record]) -> Path:
    file = PcapFile(path, 65535)
    for batch in batches:
        assert file.write(batch)
    file.close()
    return path


@given(records, records)
def test_written_records_are_read_back_by_us_and_by_scapy(
    tmp_path_factory: pytest.TempPathFactory, first: list[Record], second: list[Record]
) -> None:
    path = written(tmp_path_factory.mktemp("pcap") / "a.pcap", first, second)
    assert list(read_records(path)) == first + second
    with RawPcapReader(str(path)) as reader:
        assert reader.nano
        read = [
            (about.sec * 10**9 + about.usec, about.wirelen, bytes(data)) for data, about in reader
        ]
    assert read == first + second


@given(records, st.data())
def test_a_cut_anywhere_costs_only_the_record_it_hits(
    tmp_path_factory: pytest.TempPathFactory, batch: list[Record], data: st.DataObject
) -> None:
    path = written(tmp_path_factory.mktemp("pcap") / "a.pcap", batch)
    cut = data.draw(st.integers(0, path.stat().st_size))
    os.truncate(path, cut)
    survivors = list(read_records(path))
    assert survivors == batch[: len(survivors)]
    assert cut - extent(path).end < max([16 + len(r[2]) for r in batch], default=24) or cut < 24


@given(records, records, st.integers(0, 30))
def test_a_new_writer_goes_on_behind_the_last_whole_record(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Record],
    second: list[Record],
    torn: int,
) -> None:
    path = written(tmp_path_factory.mktemp("pcap") / "a.pcap", first)
    with path.open("ab") as file:
        file.write(b"\xff" * torn)
    written(path, second)
    assert list(read_records(path)) == first + second


@pytest.mark.parametrize(("first", "second"), [(40, 100), (100, 40)])
def test_the_header_promises_the_longest_record(tmp_path: Path, first: int, second: int) -> None:
    path = tmp_path / "a.pcap"
    PcapFile(path, first).close()
    PcapFile(path, second).close()
    with RawPcapReader(str(path)) as reader:
        assert reader.snaplen == 100


def test_a_file_that_is_no_capture_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes of today")
    with pytest.raises(InputError, match="not a capture"):
        PcapFile(path, 65535)
    assert path.read_text() == "these are my notes of today"


def test_a_full_disk_leaves_whole_records_and_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PcapFile(tmp_path / "a.pcap", 65535)
    first, second, third = [(number, 60, b"x" * 60) for number in (1, 2, 3)]
    assert file.write([first])

    def half(descriptor: int, data: bytes, place: int) -> int:
        if len(data) < 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really(descriptor, data[:40], place)

    really = os.pwrite
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half)
        assert not file.write([second])
    assert "No space left" in file.error
    assert list(read_records(file.path)) == [first]
    assert file.write([third]), "there is space again"
    file.close()
    assert list(read_records(file.path)) == [first, third]
