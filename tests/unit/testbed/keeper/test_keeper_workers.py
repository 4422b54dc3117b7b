"""The keeper's worker processes: answers, refusals and deaths."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.keeper.workers import Worker, WorkerError

RELAY = "testbed.links.relay.worker"


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker("relay", RELAY, {}, tmp_path / "relay.log")
    yield worker
    worker.end()


def test_a_worker_answers(relay: Worker) -> None:
    assert relay.ask({"do": "counters"})["counters"]["forwarded"] == 0


def test_a_refusal_has_the_workers_message(relay: Worker) -> None:
    with pytest.raises(WorkerError, match=r"relay: unknown question 'dance'"):
        relay.ask({"do": "dance"})
    with pytest.raises(WorkerError, match="unknown link or missing field 'nobody'"):
        relay.ask({"do": "shape", "links": [{"link": "nobody", "up": {}, "down": {}}]})
    assert relay.running


def test_a_worker_ends_when_its_keeper_closes_the_pipes(relay: Worker) -> None:
    relay.ask({"do": "counters"})
    relay.close_pipes()
    assert relay._process.wait(10) == 0


def test_a_dead_worker_is_noticed(relay: Worker) -> None:
    os.kill(relay._process.pid, 9)
    with pytest.raises(WorkerError, match="relay has ended"):
        relay.ask({"do": "counters"})


def test_the_error_quotes_the_last_output_of_a_dead_worker(tmp_path: Path) -> None:
    worker = Worker("odd", "testbed.no_such_module", {}, tmp_path / "odd.log")
    try:
        with pytest.raises(WorkerError, match="No module named"):
            worker.ask({"do": "counters"})
    finally:
        worker.end()


def test_a_late_answer_is_never_taken_for_that_to_another_question(relay: Worker) -> None:
    relay.ask({"do": "counters"})
    os.kill(relay._process.pid, signal.SIGSTOP)
    with pytest.raises(WorkerError, match="did not answer in time and was ended"):
        relay.ask({"do": "counters"}, patience_s=0.1)
    assert not relay.running
    assert relay.death_report.startswith("the relay process had died at ")
    with pytest.raises(WorkerError, match="relay has ended"):
        relay.ask({"do": "counters"})


def test_a_worker_that_does_not_read_does_not_hold_up_its_keeper(relay: Worker) -> None:
    os.kill(relay._process.pid, signal.SIGSTOP)
    with pytest.raises(WorkerError, match="did not answer in time"):
        relay.ask({"do": "counters", "more": "x" * (1 << 20)}, patience_s=0.1)


def test_a_question_longer_than_a_pipe_arrives_whole(relay: Worker) -> None:
    assert relay.ask({"do": "counters", "more": "x" * (1 << 20)})["ok"]


def test_no_question_waits_for_ever(tmp_path: Path) -> None:
    worker = Worker("mute", "timeit", {}, tmp_path / "mute.log")
    try:
        with pytest.raises(WorkerError):
            worker.ask({"do": "counters"}, patience_s=0.0)
    finally:
        worker.end()
