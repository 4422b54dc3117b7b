"""Nodes are forked by a prefork worker: by a ready one while forks are expected, else by one of their own."""

import os
from collections.abc import Generator, Sequence
from typing import Any, cast

import pytest

from testbed.keeper.prefork import DeferredAnswer, Forked, Prefork, PreforkWorker, Wait
from testbed.keeper.workers import WorkerError


class Place:
    """Makes workers without processes; they return the pid of this process."""

    def __init__(self) -> None:
        self.made: list[FakeWorker] = []

    def __call__(self, padding: str) -> PreforkWorker:
        self.made.append(FakeWorker(len(padding)))
        return cast("PreforkWorker", self.made[-1])


class FakeWorker:
    """Answers, or fails at one of the two questions."""

    def __init__(self, padding: int) -> None:
        self.padding = padding
        self.running = True
        self.failing = ""
        self.asked_for: list[dict[str, Any]] = []

    def ask_deferred(self, question: dict[str, Any]) -> DeferredAnswer:
        self.asked_for.append(question)
        yield Wait(0, 0.0)
        if self.failing in question:
            raise WorkerError("it has ended")
        names = [order["name"] for order in question.get("orders", ())]
        return {"ok": True, "pids": dict.fromkeys(names, os.getpid()), "failed": {}}

    def close_and_wait(self) -> None:
        self.running = False

    def end(self) -> None:
        self.running = False


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def prefork(place: Place) -> Prefork:
    return Prefork(place)


def finished(fork_: Generator[Wait, None, Forked]) -> Forked:
    """Run the generator to its end, without waiting."""
    while True:
        try:
            next(fork_)
        except StopIteration as end:
            forked: Forked = end.value
            return forked


def fork(prefork: Prefork, names: Sequence[str], config: str = "/lab/node.json") -> Sequence[str]:
    worker = prefork.worker_for([config] * len(names))
    forked, _ = finished(prefork.fork([{"name": name} for name in names], worker))
    for process in forked.values():
        process.close()
    return list(forked)


def test_an_unexpected_fork_has_a_worker_of_its_own_which_ends(prefork, place):
    assert fork(prefork, ["a", "b"]) == ["a", "b"]
    assert fork(prefork, ["c"]) == ["c"]
    assert [one.running for one in place.made] == [False, False]


def test_a_worker_for_expected_forks_is_started_early_and_stays_for_the_next(prefork, place):
    prefork.expect("/lab/node.json")
    (worker,) = place.made
    for name in ("a", "b"):
        assert fork(prefork, [name]) == [name]
    assert place.made == [worker]
    assert worker.running
    assert [*map(list, worker.asked_for)] == [["orders"], ["go"]] * 2
    prefork.expect_none()
    assert not worker.running
    assert fork(prefork, ["c"]) == ["c"]
    assert [one.running for one in place.made] == [False, False]


def test_expecting_forks_twice_starts_one_worker(prefork, place):
    prefork.expect("/lab/node.json")
    prefork.expect("/lab/node.json")
    assert len(place.made) == 1


def test_a_worker_that_has_died_or_has_too_little_padding_is_replaced(prefork, place):
    prefork.expect("/lab/node.json")
    place.made[0].running = False
    prefork.reap()
    assert fork(prefork, ["a"]) == ["a"]
    assert fork(prefork, ["b"], "/a/much/longer/path/to/the/lab/node.json") == ["b"]
    first, second, third = place.made
    assert not second.running
    assert third.running
    assert first.padding == second.padding < third.padding


def test_a_worker_that_fails_forks_no_node_and_another_takes_its_place(prefork, place):
    prefork.expect("/lab/node.json")
    place.made[0].failing = "orders"
    with pytest.raises(WorkerError, match="it has ended"):
        fork(prefork, ["a"])
    assert not place.made[0].running
    assert fork(prefork, ["a"]) == ["a"]
    assert len(place.made) == 2


@pytest.mark.parametrize("expected", [True, False])
def test_a_known_node_stays_known_if_its_worker_fails(prefork, place, expected):
    if expected:
        prefork.expect("/lab/node.json")
    worker = prefork.worker_for(["/lab/node.json"])
    place.made[0].failing = "go"
    forked, _ = finished(prefork.fork([{"name": "a"}], worker))
    assert list(forked) == ["a"]
    assert not place.made[0].running, "its next answer would belong to another question"
    forked["a"].close()


def test_an_interrupted_fork_leaves_no_worker(prefork, place):
    worker = prefork.worker_for([])
    fork_ = prefork.fork([], worker)
    next(fork_)
    fork_.close()
    assert not place.made[0].running
