"""The lab goes on without its monitor, whatever happens to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.keeper.workers import MonitorProcess, Worker
from testbed.monitor.shared_counters import VARIABLE, open_shared_counters
from testbed.places import RunPlace


@pytest.fixture
def started() -> list[Worker]:
    return []


@pytest.fixture
def monitoring(tmp_path: Path, started: list[Worker]) -> Iterator[MonitorProcess]:
    def make(file: Path) -> Worker:
        started.append(Worker("monitor", "testbed.monitor.worker", {}, tmp_path / "log", str(file)))
        return started[-1]

    made = MonitorProcess(make)
    yield made
    made.close()


def test_a_lab_has_one_monitor_however_often_it_is_begun(monitoring, started, tmp_path):
    monitoring.begin(RunPlace(tmp_path))
    monitoring.begin(RunPlace(tmp_path))
    assert len(started) == 1
    monitoring.stop()
    assert not started[0].running
    assert (tmp_path / "machine.jsonl").stat().st_size > 0


def test_a_dead_monitor_is_replaced_when_more_is_captured(monitoring, started, tmp_path):
    monitoring.begin(RunPlace(tmp_path))
    os.kill(started[0]._process.pid, 9)
    started[0]._process.wait(10)
    monitoring.reap()
    monitoring.begin(RunPlace(tmp_path))
    assert len(started) == 2
    assert started[1].running


def test_stopping_a_dead_monitor_or_none_is_no_error(monitoring, started, tmp_path):
    monitoring.stop()
    monitoring.begin(RunPlace(tmp_path))
    os.kill(started[0]._process.pid, 9)
    monitoring.stop()
    assert not started[0].running


def test_a_lab_goes_on_if_its_monitor_cannot_be_started(tmp_path):
    def fail(_: Path) -> Worker:
        raise OSError("no more processes")

    monitoring = MonitorProcess(fail)
    monitoring.begin(RunPlace(tmp_path))
    monitoring.stop()
    monitoring.close()


def test_all_processes_of_a_keeper_share_the_counters(monitoring):
    environment = monitoring.environment
    open_shared_counters(environment).capture_dropped = 9
    assert open_shared_counters(monitoring.environment).capture_dropped == 9
    monitoring.close()
    assert not Path(environment[VARIABLE]).exists()
