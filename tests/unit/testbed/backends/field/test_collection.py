"""Files of a board are collected completely, transfers are resumed, and no copy is replaced by a worse one."""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.backends.field.boards import Board
from testbed.backends.field.collection import fetch
from testbed.backends.field.connections import BoardError, Connections
from testbed.backends.field.deployment import BoardPaths
from testbed.places import LabPlace

BOARD = Board("siren", "siren", "192.0.2.1", "192.0.2.1")


class ThisMachine(Connections):
    """A board whose commands run here."""

    def argv(self, board: Board, words: Sequence[str], *, as_root: bool = False) -> list[str]:
        assert words[0] == "python3"
        return [sys.executable, "-m", "nodes", *words[2:]]


def entry(path: Path, content: bytes) -> dict[str, object]:
    path.write_bytes(content)
    file_entry = hashlib.sha256(content).hexdigest()
    return {"name": "capture.pcap", "path": str(path), "size": len(content), "sha256": file_entry}


def bring(folder: Path, file_entry: dict[str, object]) -> None:
    connections = ThisMachine(LabPlace(folder / "lab"), "run")
    fetch(connections, BOARD, BoardPaths("lab"), file_entry, {"capture.pcap": folder / "home.pcap"})


@given(st.binary(max_size=50), st.binary(max_size=50), st.booleans())
@settings(max_examples=8, deadline=None)
def test_a_collected_file_is_complete_whatever_copy_existed_before(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, other: bytes, begun: bool
) -> None:
    folder = tmp_path_factory.mktemp("board")
    there = content[: len(content) // 2] if begun else other
    (folder / "home.pcap").write_bytes(there)
    bring(folder, entry(folder / "capture.pcap", content))
    assert (folder / "home.pcap").read_bytes() == content


def test_a_copy_that_goes_wrong_takes_nothing_away(tmp_path: Path) -> None:
    (tmp_path / "home.pcap").write_bytes(b"all that there is, and longer")
    file_entry = {**entry(tmp_path / "capture.pcap", b"short"), "sha256": "of something else"}
    with pytest.raises(BoardError, match="is not whole"):
        bring(tmp_path, file_entry)
    assert (tmp_path / "home.pcap").read_bytes() == b"all that there is, and longer"
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_file_that_grows_meanwhile_is_taken_as_it_was(tmp_path: Path) -> None:
    file_entry = entry(tmp_path / "capture.pcap", b"as it was")
    (tmp_path / "capture.pcap").write_bytes(b"as it was, and more")
    bring(tmp_path, file_entry)
    assert (tmp_path / "home.pcap").read_bytes() == b"as it was"
