"""The monitor's process on this very machine."""

import os
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support.lines import records as rows_of
from testbed.keeper.workers import Worker, WorkerError
from testbed.monitor.shared_counters import VARIABLE, make_shared_memory, open_shared_counters
from testbed.monitor.worker import RowFile

MODULE = "testbed.monitor.worker"


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """watching(file): a monitor that writes there."""
    started: list[Worker] = []

    def begin(file: Path, **environment: str) -> Worker:
        started.append(Worker("monitor", MODULE, environment, tmp_path / "log", str(file)))
        return started[-1]

    yield begin
    for worker in started:
        worker.end()


def test_a_monitor_writes_rows_until_a_stop_request(watching, tmp_path, wait_until):
    file = tmp_path / "machine.jsonl"
    monitor = watching(file)
    wait_until(lambda: len(rows_of(file)) >= 2, 60)
    answer = monitor.ask({"do": "stop"})
    made = rows_of(file)
    assert answer["rows"] == len(made) >= 3
    assert "error" not in answer
    assert all(before["t"] < after["t"] for before, after in pairwise(made))
    for row in made:
        assert row["cpu_idle"] is None or 0 <= row["cpu_idle"] <= 1
        assert row["memory_free_bytes"] > 0
    assert sum(count for _, count in made[0]["wakeups_us"]) > 0
    assert made[0]["wakeup_max_s"] >= made[0]["wakeup_p50_s"] >= 0
    assert monitor._process.wait(60) == 0


def test_a_monitor_reports_the_shared_counters_of_relay_and_capture(watching, tmp_path, wait_until):
    memory = make_shared_memory()
    try:
        environment = {VARIABLE: f"/proc/{os.getpid()}/fd/{memory}"}
        shared = open_shared_counters(environment)
        file = tmp_path / "machine.jsonl"
        monitor = watching(file, **environment)
        monitor.ask({"do": "stats"})  # it has taken its first sample
        shared.capture_dropped = 5
        shared.relay_peak_ns[0] = 15_000
        shared.relay_late[4] = 3
        wait_until(lambda: any(row["relay_forwarded"] for row in rows_of(file)), 60)
        (row, *_) = [each for each in rows_of(file) if each["relay_forwarded"]]
        assert row["capture_dropped"] == 5
        assert (row["relay_forwarded"], row["relay_late_max_s"]) == (3, 1.5e-05)
    finally:
        os.close(memory)


def test_a_full_disk_costs_rows_but_not_the_monitor(watching):
    monitor = watching(Path("/dev/full"))
    answer = monitor.ask({"do": "stop"})
    assert answer["rows"] == 0
    assert "No space left on device" in answer["error"]


def test_a_folder_that_is_missing_costs_rows_but_not_the_monitor(watching, tmp_path):
    assert (
        "No such file" in watching(tmp_path / "no" / "machine.jsonl").ask({"do": "stats"})["error"]
    )


def test_after_a_torn_row_the_next_one_has_a_line_of_its_own(tmp_path, monkeypatch):
    real = os.write
    file = RowFile(tmp_path / "machine.jsonl")
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:4]))
    file.append({"t": 1})
    assert (file.rows, file.error != "") == (0, True)
    monkeypatch.setattr(os, "write", real)
    file.append({"t": 2})
    assert (tmp_path / "machine.jsonl").read_text().splitlines()[-1] == '{"t": 2}'
    assert file.rows == 1


def test_a_monitor_ends_when_its_keeper_closes_the_pipes(watching, tmp_path):
    monitor = watching(tmp_path / "machine.jsonl")
    monitor.ask({"do": "stats"})
    monitor.close_pipes()
    assert monitor._process.wait(60) == 0


def test_a_monitor_refuses_unknown_requests(watching, tmp_path):
    monitor = watching(tmp_path / "machine.jsonl")
    with pytest.raises(WorkerError, match="unknown question"):
        monitor.ask({"do": "dance"})
    assert monitor.ask({"do": "stats"})["ok"]


def test_the_rows_of_a_killed_monitor_stay(watching, tmp_path, wait_until):
    file = tmp_path / "machine.jsonl"
    monitor = watching(file)
    wait_until(lambda: rows_of(file), 60)
    os.kill(monitor._process.pid, signal.SIGKILL)
    monitor._process.wait(60)
    assert rows_of(file)
