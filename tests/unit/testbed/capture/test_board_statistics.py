"""The statistics of a board's capture: whole at any moment, also on a full disk, and continued after a break."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.board import CaptureStatistics

COUNTS = {"packets": 3, "bytes": 180, "dropped": 1}


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_statistics_have_counts_and_their_time(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    assert CaptureStatistics(path, 1000, goes_on=False).write(COUNTS, 2000, "oh", ended=True)
    assert read(path) == {
        **COUNTS, "error": "oh", "began_ns": 1000, "until_ns": 2000, "ended": True, "gaps": [],
    }  # fmt: skip
    assert [entry.name for entry in tmp_path.iterdir()] == ["capture.json"]


def test_a_capture_that_goes_on_adds_to_its_statistics(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    CaptureStatistics(path, 1000, goes_on=False).write(COUNTS, 2000)
    CaptureStatistics(path, 5000, goes_on=True).write(COUNTS, 6000)
    third = CaptureStatistics(path, 9000, goes_on=True)
    third.write({"packets": 9, "bytes": 540, "dropped": 0}, 9500)
    found = read(path)
    assert (found["began_ns"], found["until_ns"], found["dropped"]) == (1000, 9500, 2)
    assert (found["packets"], found["gaps"]) == (9, [[2000, 5000], [6000, 9000]])


TORN = ["", "{", "[]", '{"began_ns": 1}', '{"began_ns": "x", "until_ns": 1, "dropped": 0}']


@pytest.mark.parametrize("torn", TORN)
def test_torn_statistics_are_begun_anew(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "capture.json"
    path.write_text(torn)
    CaptureStatistics(path, 7000, goes_on=True).write(COUNTS, 8000)
    assert read(path)["began_ns"] == 7000


def test_on_a_full_disk_statistics_are_overwritten_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "capture.json"
    statistics = CaptureStatistics(path, 1000, goes_on=False)
    statistics.write(COUNTS, 2000, "a long sentence on what went wrong before")
    size = path.stat().st_size

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert statistics.write(COUNTS, 3000)
    assert read(path)["until_ns"] == 3000
    assert path.stat().st_size == size


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    assert not CaptureStatistics(tmp_path / "none" / "capture.json", 1, goes_on=False).write(
        COUNTS, 2
    )
