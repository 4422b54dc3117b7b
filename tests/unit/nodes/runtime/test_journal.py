"""A sensor's journal: records that survive a crash at any byte, and the effects of a full disk."""

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.overlay.reliability.outbox import MAX_REPEATED_BYTES
from nodes.protocol.wire import CUSTODY, Kind, Message, encode, message_id
from nodes.runtime import journal as module
from nodes.runtime.journal import Journal, What, pack, unpack


def alert(counter: int, size: int = 5) -> Message:
    identity = message_id(3, counter)
    payload = bytes(counter % 256 for _ in range(size))
    return Message(Kind.PUBLISH, 5, 1, CUSTODY, 3, identity, 7, "tilt", payload)


def pending(path: Path, run: str = "r1") -> list[int]:
    """The counters of the pending messages that a sensor would find if it started now."""
    journal = Journal(str(path), run)
    try:
        return [message.message_id & 0xFFFFFFFF for message in journal.pending()]
    finally:
        journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_pending_publications_are_in_the_journal_after_a_crash(path: Path) -> None:
    journal = Journal(str(path), "r1")
    for counter in (1, 2, 3):
        journal.add(alert(counter))
    journal.acknowledged(message_id(3, 2))
    journal.acknowledged(message_id(3, 9))  # not in the journal
    again = Journal(str(path), "r1")  # nothing was closed
    assert again.pending() == [alert(1), alert(3)]
    assert again.highest_id == message_id(3, 3)
    journal.close()
    again.close()


def test_recently_acknowledged_publications_are_in_the_journal_after_a_crash_too(
    path: Path,
) -> None:
    journal = Journal(str(path), "r1")
    for counter in range(1, 103):
        journal.add(alert(counter))
    for counter in (*range(102, 2, -1), 1):
        journal.acknowledged(message_id(3, counter))
    again = Journal(str(path), "r1")
    assert again.pending() == [alert(2)]
    assert again.recently_acknowledged() == [
        *(alert(counter) for counter in range(65, 2, -1)),
        alert(1),
    ]
    journal.close()
    again.close()


def test_the_journal_of_another_run_is_cleared(path: Path) -> None:
    journal = Journal(str(path), "r1")
    journal.add(alert(1))
    journal.close()
    assert pending(path, "r2") == []
    assert pending(path, "r1") == []


operations = st.lists(
    st.tuples(st.sampled_from(["add", "add", "acknowledged"]), st.integers(1, 6)), max_size=10
)


@given(operations)
@settings(max_examples=25, deadline=None)
def test_a_journal_cut_at_any_byte_returns_its_whole_records_and_continues_from_there(
    sequence: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        journal = Journal(str(path), "r1")
        model: dict[int, None] = {}
        at_size = {
            0: [],
            journal.size: [],
        }  # length of the file: messages without acknowledgement then
        for what, counter in sequence:
            if what == "add" and counter not in model:
                journal.add(alert(counter))
                model[counter] = None
            elif what == "acknowledged":
                journal.acknowledged(message_id(3, counter))
                model.pop(counter, None)
            at_size[journal.size] = list(model)
        journal.close()
        data = path.read_bytes()
        assert len(data) == max(at_size)
        for cut in range(len(data) + 1):
            path.write_bytes(data[:cut])
            whole = at_size[max(size for size in at_size if size <= cut)]
            assert pending(path) == whole
            continued = Journal(str(path), "r1")
            continued.add(alert(99))
            continued.close()
            assert pending(path) == [*whole, 99]


@given(st.binary(max_size=200))
def test_any_bytes_are_some_records_and_the_rest_is_ignored(rest: bytes) -> None:
    record = pack(What.MESSAGE, b"abc")
    first, *others = unpack(record + rest)
    assert (first.what, first.body, first.end) == (What.MESSAGE, b"abc", len(record))
    assert all(other.end <= len(record + rest) for other in others)


@pytest.mark.parametrize("at", range(len(pack(What.MESSAGE, b"abc"))))
def test_a_changed_byte_is_noticed(at: int) -> None:
    record = bytearray(pack(What.MESSAGE, b"abc"))
    record[at] ^= 1
    assert list(unpack(bytes(record))) == []


def test_the_file_stays_small_however_much_is_published(path: Path) -> None:
    journal = Journal(str(path), "r1")
    journal.add(alert(1))
    for counter in range(2, 500):
        journal.add(alert(counter, size=1000))
        journal.acknowledged(message_id(3, counter))
        assert path.stat().st_size < 4 * MAX_REPEATED_BYTES + 2000
    assert (pending(path), journal.pending()) == ([1], [alert(1)])
    journal.acknowledged(message_id(3, 1))
    recent = journal.recently_acknowledged()
    assert recent[-2:] == [alert(499, size=1000), alert(1)]
    assert len(recent) > 50
    journal.close()
    again = Journal(str(path), "r1")
    assert (again.pending(), again.highest_id) == ([], message_id(3, 499))
    assert again.recently_acknowledged() == recent
    again.close()


def test_a_full_journal_refuses_records_that_do_not_fit_and_keeps_the_others(path: Path) -> None:
    journal = Journal(str(path), "r1", limit=5000)
    for counter in range(1, 5):
        journal.add(alert(counter, size=1000))
    with pytest.raises(OSError, match=r"the journal has .* of 5000 bytes"):
        journal.add(alert(5, size=1000))
    journal.acknowledged(message_id(3, 2))
    journal.add(alert(6, size=1000))
    journal.close()
    assert pending(path) == [1, 3, 4, 6]
    assert path.stat().st_size <= 5000


class FullDisk:
    """A disk that accepts `capacity` more bytes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._pwrite = os.pwrite

    def pwrite(self, file: int, data: bytes, at: int) -> int:
        some = data[: self.capacity]
        if not some:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.capacity -= len(some)
        return self._pwrite(file, some, at)


@pytest.mark.parametrize("capacity", range(len(pack(What.MESSAGE, encode(alert(2))))))
def test_a_record_torn_by_a_full_disk_does_not_hide_later_records(
    path: Path, monkeypatch: pytest.MonkeyPatch, capacity: int
) -> None:
    journal = Journal(str(path), "r1")
    journal.add(alert(1))
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "pwrite", FullDisk(capacity).pwrite)
        with pytest.raises(OSError, match="No space left"):
            journal.add(alert(2))
    journal.add(alert(3))
    journal.close()
    assert pending(path) == [1, 3]


def test_the_old_file_stays_if_the_disk_is_too_full_to_compact_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(str(path), "r1", limit=5000)
    for counter in range(1, 5):
        journal.add(alert(counter, size=1000))
    journal.acknowledged(message_id(3, 1))
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "pwrite", FullDisk(1500).pwrite)
        with pytest.raises(OSError, match="No space left"):
            journal.add(alert(5, size=1000))
    assert [each.name for each in path.parent.iterdir()] == ["journal"]
    assert pending(path) == [2, 3, 4]
    journal.add(alert(5, size=1000))
    journal.close()
    assert pending(path) == [2, 3, 4, 5]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Journal(str(tmp_path / "nowhere" / "journal"), "r1")
