"""Nodes are born in a nursery: in one that is kept ready while births are expected, else in one of their own."""

import os
from collections.abc import Generator, Sequence
from typing import Any, cast

import pytest

from testbed.keeper.prefork import Births, Born, Nursery, Slow, Wait
from testbed.keeper.workers import WorkerError


class Place:
    """Nurseries without processes; what they bear is this very process."""

    def __init__(self) -> None:
        self.made: list[FakeNursery] = []

    def __call__(self, room: str) -> Nursery:
        self.made.append(FakeNursery(len(room)))
        return cast("Nursery", self.made[-1])


class FakeNursery:
    """Answers, or fails at one of the two questions."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.running = True
        self.failing = ""
        self.asked_for: list[dict[str, Any]] = []

    def asked(self, question: dict[str, Any]) -> Slow:
        self.asked_for.append(question)
        yield Wait(0, 0.0)
        if self.failing in question:
            raise WorkerError("it has ended")
        names = [order["name"] for order in question.get("orders", ())]
        return {"ok": True, "pids": dict.fromkeys(names, os.getpid()), "failed": {}}

    def let_go(self) -> None:
        self.running = False

    def end(self) -> None:
        self.running = False


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def births(place: Place) -> Births:
    return Births(place)


def finished(birth: Generator[Wait, None, Born]) -> Born:
    """As whoever has nothing else to do would wait."""
    while True:
        try:
            next(birth)
        except StopIteration as end:
            born: Born = end.value
            return born


def bear(births: Births, names: Sequence[str], config: str = "/lab/node.json") -> Sequence[str]:
    nursery = births.nursery_for([config] * len(names))
    born, _ = finished(births.of([{"name": name} for name in names], nursery))
    for process in born.values():
        process.close()
    return list(born)


def test_who_comes_unexpectedly_has_a_nursery_of_its_own_which_ends(births, place):
    assert bear(births, ["a", "b"]) == ["a", "b"]
    assert bear(births, ["c"]) == ["c"]
    assert [one.running for one in place.made] == [False, False]


def test_one_that_is_expected_is_there_before_and_stays_for_the_next(births, place):
    births.expect("/lab/node.json")
    (nursery,) = place.made
    for name in ("a", "b"):
        assert bear(births, [name]) == [name]
    assert place.made == [nursery]
    assert nursery.running
    assert [*map(list, nursery.asked_for)] == [["orders"], ["go"]] * 2
    births.expect_none()
    assert not nursery.running
    assert bear(births, ["c"]) == ["c"]
    assert [one.running for one in place.made] == [False, False]


def test_to_expect_births_twice_is_to_expect_them(births, place):
    births.expect("/lab/node.json")
    births.expect("/lab/node.json")
    assert len(place.made) == 1


def test_one_that_has_died_or_has_too_little_room_is_replaced(births, place):
    births.expect("/lab/node.json")
    place.made[0].running = False
    births.reap()
    assert bear(births, ["a"]) == ["a"]
    assert bear(births, ["b"], "/a/much/longer/path/to/the/lab/node.json") == ["b"]
    first, second, third = place.made
    assert not second.running
    assert third.running
    assert first.room == second.room < third.room


def test_a_nursery_that_fails_bears_nobody_and_another_takes_its_place(births, place):
    births.expect("/lab/node.json")
    place.made[0].failing = "orders"
    with pytest.raises(WorkerError, match="it has ended"):
        bear(births, ["a"])
    assert not place.made[0].running
    assert bear(births, ["a"]) == ["a"]
    assert len(place.made) == 2


@pytest.mark.parametrize("expected", [True, False])
def test_who_is_known_is_known_whatever_comes_of_the_nursery(births, place, expected):
    if expected:
        births.expect("/lab/node.json")
    nursery = births.nursery_for(["/lab/node.json"])
    place.made[0].failing = "go"
    born, _ = finished(births.of([{"name": "a"}], nursery))
    assert list(born) == ["a"]
    assert not place.made[0].running, "what it says next would be an answer to something else"
    born["a"].close()


def test_a_birth_that_is_broken_off_leaves_no_nursery(births, place):
    nursery = births.nursery_for([])
    birth = births.of([], nursery)
    next(birth)
    birth.close()
    assert not place.made[0].running
