"""Whose boxes contain a point: the index finds the same as a comparison with every box, after any changes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodes.overlay.zorder_map.registry import Matching
from nodes.protocol.regions import Box, Point

BITS = 4
LAST = 2**BITS - 1


def points(dimensions: int) -> st.SearchStrategy[Point]:
    return st.tuples(*[st.integers(0, LAST)] * dimensions)


def boxes(dimensions: int) -> st.SearchStrategy[Box]:
    def between(one: Point, other: Point) -> Box:
        return Box(tuple(map(min, one, other)), tuple(map(max, one, other)))

    return st.builds(between, points(dimensions), points(dimensions))


class ComingAndGoing(RuleBasedStateMachine):
    """Subscriptions come, change and go; at any time the index finds the boxes that contain a point."""

    @initialize(dimensions=st.integers(1, 4), most_cells=st.integers(1, 20))
    def begin(self, dimensions: int, most_cells: int) -> None:
        self.dimensions = dimensions
        self.matching: Matching[int] = Matching(dimensions, BITS, most_cells)
        self.model: dict[int, Box] = {}

    @rule(subscriber=st.integers(0, 9), data=st.data())
    def subscribe(self, subscriber: int, data: st.DataObject) -> None:
        box = data.draw(boxes(self.dimensions))
        self.matching.add(subscriber, box)
        self.model[subscriber] = box

    @rule(subscriber=st.integers(0, 9))
    def unsubscribe(self, subscriber: int) -> None:
        if subscriber in self.model:
            self.matching.remove(subscriber)
            del self.model[subscriber]
        else:
            with pytest.raises(KeyError):
                self.matching.remove(subscriber)

    @rule(data=st.data())
    def look_anywhere(self, data: st.DataObject) -> None:
        self.holds_for(data.draw(points(self.dimensions)))

    @rule(subscriber=st.integers(0, 9), side=st.sampled_from(["low", "high"]))
    def look_at_a_corner(self, subscriber: int, side: str) -> None:
        if subscriber in self.model:
            self.holds_for(getattr(self.model[subscriber], side))

    def holds_for(self, point: Point) -> None:
        expected = sorted(
            subscriber for subscriber, box in self.model.items() if box.contains(point)
        )
        assert sorted(self.matching.match(point)) == expected

    @invariant()
    def all_are_kept(self) -> None:
        if hasattr(self, "model"):
            assert dict(self.matching.boxes) == self.model


TestComingAndGoing = ComingAndGoing.TestCase


@given(st.integers(1, 3).flatmap(lambda d: st.tuples(st.lists(boxes(d)), points(d))))
def test_a_corner_and_what_is_beside_it(drawn: tuple[list[Box], Point]) -> None:
    held, point = drawn
    matching: Matching[int] = Matching(len(point), BITS)
    for subscriber, box in enumerate(held):
        matching.add(subscriber, box)
    expected = [subscriber for subscriber, box in enumerate(held) if box.contains(point)]
    assert sorted(matching.match(point)) == expected


def test_a_subscriber_that_subscribes_again_has_the_new_box_only() -> None:
    matching: Matching[str] = Matching(2, BITS)
    matching.add("siren", Box((0, 0), (3, 3)))
    matching.add("siren", Box((3, 3), (9, 9)))
    assert matching.match((0, 0)) == []
    assert matching.match((9, 9)) == ["siren"]


def test_nothing_is_left_of_subscriptions_that_are_gone() -> None:
    matching: Matching[str] = Matching(2, BITS)
    matching.add("siren", Box((0, 5), (11, 6)))
    matching.remove("siren")
    assert not matching.boxes
    assert matching.cells == 0


OUTSIDE: list[Callable[[Matching[str]], object]] = [
    lambda matching: matching.match((16, 0)),
    lambda matching: matching.add("siren", Box((0, 0), (16, 16))),
    lambda matching: matching.add("siren", Box((-1, 0), (1, 1))),
    lambda matching: matching.match((1, 1, 1)),
    lambda matching: matching.add("siren", Box((1,), (2,))),
]


@pytest.mark.parametrize("wrong", OUTSIDE)
def test_boxes_and_points_outside_the_space_are_refused_and_change_nothing(
    wrong: Callable[[Matching[str]], object],
) -> None:
    matching: Matching[str] = Matching(2, BITS)
    matching.add("siren", Box((2, 2), (3, 3)))
    with pytest.raises(ValueError, match=r"does not fit|dimensions"):
        wrong(matching)
    assert matching.match((2, 2)) == ["siren"]
