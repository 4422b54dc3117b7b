"""A Publish/Subscribe map that is levelled: no point, subscription or event is lost, whichever node moves."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.overlay.zorder_map.curve import interleave
from testbed.converged.zorder_areas import (
    Areas,
    EventsAt,
    Give,
    Space,
    Workload,
    draw,
    interleaved,
    space,
)
from testbed.converged.zorder_levelling import (
    EOf,
    Movers,
    Rule,
    fairness,
    level,
    measure_levelling,
    pairs,
)

BITS = 3
SIDE = 2**BITS
POINTS = SIDE * SIDE
coordinates = st.integers(0, SIDE - 1)
Corners = tuple[tuple[int, int], tuple[int, int]]


@st.composite
def boxes(draw: st.DrawFn) -> Corners:
    (left, right), (bottom, top) = (sorted(draw(st.tuples(*[coordinates] * 2))) for _ in "xy")
    return (left, bottom), (right, top)


@st.composite
def maps(draw: st.DrawFn) -> tuple[Areas, list[Corners], list[tuple[int, int]]]:
    """Areas with the subscriptions and events that were drawn for them."""
    wanted = draw(st.lists(boxes(), max_size=70))  # more than a 64-bit word holds
    events = draw(st.lists(st.tuples(coordinates, coordinates), max_size=12))
    starts = draw(st.sets(st.integers(0, POINTS - 1), min_size=3, max_size=9))
    drawn = space(
        BITS,
        np.array([low for low, _ in wanted], dtype=np.int64).reshape(-1, 2),
        np.array([high for _, high in wanted], dtype=np.int64).reshape(-1, 2),
        np.array(events, dtype=np.int64).reshape(-1, 2),
    )
    return Areas(drawn, np.array(sorted(starts))), wanted, events


class Literal:
    """The oracle: the owner of each point. It needs three nodes or more, because a single node has no first point."""

    def __init__(self, areas: Areas) -> None:
        self.owners = [-1] * POINTS
        starts = areas.starts.tolist()
        for name, (first, behind) in enumerate(zip(starts, [*starts[1:], starts[0]], strict=True)):
            for step in range((behind - first) % POINTS or POINTS):
                self.owners[(first + step) % POINTS] = name

    def area(self, name: int) -> list[int]:
        """Its points in order, from the first."""
        mine = [z for z in range(POINTS) if self.owners[z] == name]
        first = next(z for z in mine if self.owners[z - 1] != name)
        return sorted(mine, key=lambda z: (z - first) % POINTS)

    def move(self, light: int, heavy: int, give: Give) -> bool:
        if light == heavy or len(self.area(heavy)) < 2:
            return False
        area = self.area(light)
        left, right = self.owners[area[0] - 1], self.owners[(area[-1] + 1) % POINTS]
        half = len(area) // 2 if give is Give.BOTH else len(area)
        for z in area[:half]:
            self.owners[z] = left
        for z in area[half:]:
            self.owners[z] = right
        whole = self.area(heavy)
        for z in whole[(len(whole) + 1) // 2 :]:
            self.owners[z] = light
        return True


moves = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12)


@given(maps(), moves, st.sampled_from(Give))
@settings(deadline=None)
def test_after_any_moves_every_point_subscription_and_event_has_exactly_its_owners(
    drawn: tuple[Areas, list[Corners], list[tuple[int, int]]],
    requested: list[tuple[int, int]],
    give: Give,
) -> None:
    areas, wanted, events = drawn
    literal = Literal(areas)
    nodes = len(areas.starts)
    for one, other in requested:
        light, heavy = one % nodes, other % nodes
        assert areas.move(light, heavy, give) == literal.move(light, heavy, give)
    assert sorted(areas.names.tolist()) == list(range(nodes))
    assert (np.diff(areas.starts) > 0).all()
    assert [int(areas.names[areas.owner(z)]) for z in range(POINTS)] == literal.owners

    for place, name in enumerate(areas.names.tolist()):
        area = {z for z in range(POINTS) if literal.owners[z] == name}
        assert areas.size(place) == len(area)
        met = {
            box
            for box, ((left, bottom), (right, top)) in enumerate(wanted)
            for point in product(range(left, right + 1), range(bottom, top + 1))
            if interleave(point, BITS) in area
        }
        bits = [
            64 * word + bit
            for word, mask in enumerate(areas.held[place].tolist())
            for bit in range(64)
            if mask >> bit & 1
        ]
        assert set(bits) == met
        inside = sum(interleave(event, BITS) in area for event in events)
        assert areas.events[place] == inside
        assert areas.loads[place] == inside * len(met)
    assert areas.events.sum() == len(events)


@pytest.mark.parametrize("give", Give)
def test_two_nodes_can_move_too(give: Give) -> None:
    areas = Areas(_empty(), np.array([10, 20]))
    assert areas.move(0, 1, give)
    assert sorted(areas.size(place) for place in (0, 1)) == [POINTS // 2, POINTS // 2]


def test_a_single_point_is_not_split() -> None:
    areas = Areas(_empty(), np.array([10, 11, 40]))
    assert not areas.move(2, 0, Give.BOTH)
    assert areas.starts.tolist() == [10, 11, 40]


def test_the_text_has_both_neighbours_and_the_live_protocol_the_left_one() -> None:
    def moved(give: Give) -> dict[int, int]:
        areas = Areas(_empty(), np.array([0, 10, 20, 40]))
        assert areas.move(1, 3, give)
        return dict(zip(areas.names.tolist(), areas.starts.tolist(), strict=True))

    assert moved(Give.BOTH) == {0: 0, 2: 15, 3: 40, 1: 52}
    assert moved(Give.LEFT) == {0: 0, 2: 20, 3: 40, 1: 52}


def _empty() -> Space:
    none = np.empty((0, 2), dtype=np.int64)
    return space(BITS, none, none, none)


@given(st.lists(st.tuples(coordinates, coordinates), min_size=1))
def test_the_curve_is_that_of_the_nodes(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points).T
    expected = [interleave(point, BITS) for point in points]
    assert interleaved(x, y, BITS).tolist() == expected


def test_equal_areas_differ_by_a_point_at_most() -> None:
    areas = Areas.equal(_empty(), 10)
    assert {areas.size(place) for place in range(10)} == {6, 7}


@pytest.mark.parametrize("starts", [[5], [5, 5], [6, 5]])
def test_areas_that_are_none_are_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="at least two nodes"):
        Areas(_empty(), np.array(starts))


def loaded(*loads: int) -> Areas:
    """Nodes with these loads: one subscription to everything, and so many events."""
    areas = Areas.equal(_empty(), len(loads))
    areas.events[:] = loads
    areas.held[:] = 1
    return areas


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(e=0.0), [(0, 4)]),
        (Rule(e=0.0, movers=Movers.ALL), [(0, 4), (1, 3), (2, 4)]),
        (Rule(e=0.5, movers=Movers.ALL), [(0, 4), (1, 3)]),
        (Rule(e=1.0), []),
        (Rule(e=15, e_of=EOf.LOAD, movers=Movers.ALL), [(0, 4), (1, 4)]),
        (Rule(e=30, e_of=EOf.LOAD), []),
    ],
)
def test_light_nodes_help_heavy_nodes(rule: Rule, expected: list[tuple[int, int]]) -> None:
    areas = loaded(0, 5, 20, 35, 50)  # 22 in the mean
    assert pairs(areas, np.arange(5), rule) == expected
    assert pairs(areas, np.array([3, 1, 0, 4, 2]), rule) == expected


def test_nodes_outside_the_sample_do_not_move() -> None:
    assert pairs(loaded(0, 5, 20, 35, 50), np.array([1, 2, 3]), Rule(e=0.0)) == [(1, 3)]


@pytest.mark.parametrize("give", Give)
def test_levelling_takes_from_the_heaviest(give: Give) -> None:
    drawn = draw(Workload(bits=7, events_per_sensor=10), np.random.default_rng(1))
    areas = Areas.equal(drawn, 100)
    before = areas.loads
    assert sum(level(areas, Rule(give=give), 200, np.random.default_rng(2))) > 50
    assert areas.loads.max() < before.max() / 2
    assert fairness(areas.loads) > 2 * fairness(before)


def test_drawn_events_lie_around_the_centre() -> None:
    workload = Workload(bits=8, events_per_sensor=100, scale=0.1)
    drawn = draw(workload, np.random.default_rng(3))
    assert len(drawn.events) == 10_000
    every = np.arange(2**16)
    x = sum((every >> 2 * bit + 1 & 1) << bit for bit in range(8))
    distances = abs(x[drawn.events] - 128)
    assert distances.mean() == pytest.approx(0.1 * 256, rel=0.05)
    at_sensors = Workload(bits=8, events_per_sensor=100, events_at=EventsAt.SENSOR)
    assert len(np.unique(draw(at_sensors, np.random.default_rng(3)).events)) <= 100


@pytest.mark.parametrize(("loads", "index"), [([4, 4], 1.0), ([8, 0], 0.5), ([0, 0], 1.0)])
def test_fairness_is_jains_index(loads: list[int], index: float) -> None:
    assert fairness(np.array(loads)) == index


SMALL: dict[str, Any] = {"bits": 7, "events_per_sensor": 10}


def test_a_trial_has_rows_before_and_after() -> None:
    found = measure_levelling(1, nodes=100, rounds=100, give="left", **SMALL)
    before, after = found.totals
    assert (before["when"], after["when"]) == ("before", "after")
    assert (before["moves"], before["give"], before["bits"]) == (0, "left", 7)
    assert after["moves"] > 0
    assert after["largest"] < before["largest"]
    for when, total in (("before", before), ("after", after)):
        groups = [row for row in found.nodes if row["when"] == when]
        assert [row["from_node"] for row in groups] == list(range(0, 100, 10))
        assert max(row["largest"] for row in groups) == total["largest"]
        assert np.mean([row["load"] for row in groups]) == pytest.approx(total["load"])
        bins = [row for row in found.histogram if row["when"] == when]
        assert sum(row["nodes_in"] for row in bins) == 100
        assert [row["from_load"] for row in bins] == list(range(0, 1_001, 50))
        assert sum(r["nodes_in"] for r in bins if r["from_load"] >= 500) == total["from_500"]
    assert [row["round"] for row in found.moments] == [0, 50, 100]
    assert found.moments[0]["largest"] == before["largest"]
    assert found.moments[-1]["fairness"] == after["fairness"]


def test_the_workload_depends_on_the_trial_and_not_on_the_rule() -> None:
    one = measure_levelling(1, nodes=100, rounds=10, **SMALL).totals[0]
    other = measure_levelling(1, nodes=100, rounds=10, k=9, e=0.1, give="left", **SMALL).totals[0]
    assert (one["load"], one["copies"]) == (other["load"], other["copies"])
    assert measure_levelling(1, 1, nodes=100, rounds=10, **SMALL).totals[0]["load"] != one["load"]


def test_an_unknown_reading_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        measure_levelling(1, colour="red")
    with pytest.raises(ValueError, match="sideways"):
        measure_levelling(1, nodes=10, rounds=50, give="sideways", **SMALL)
