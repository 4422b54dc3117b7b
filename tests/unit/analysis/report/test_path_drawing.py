"""The paths of messages on the map: the traffic of each edge, and the path of one alert."""

import re
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.run_folder import RunNode
from analysis.report.sections import paths, topology_map
from analysis.report.sections.topology_map import Edge

NAMES = ("a", "b", "c", "d")


def node(name: str, kind: str = "sensor", router: str | None = None) -> RunNode:
    return RunNode(name, 1, kind, "3g", 0, (), None, router)


NODES = [node("a"), node("b", "broker"), node("c"), node("d", "subscriber")]


@given(st.lists(st.tuples(st.sampled_from([*NAMES, "unknown"]), st.sampled_from(NAMES))))
def test_an_edge_counts_the_messages_of_both_directions(hops):
    hops = [(src, dst) for src, dst in hops if src != dst]
    table = pa.table(
        {
            "src": pa.array([src for src, _ in hops], pa.string()),
            "dst": pa.array([dst for _, dst in hops], pa.string()),
        }
    )
    expected = Counter(tuple(sorted(hop)) for hop in hops if "unknown" not in hop)
    found = paths.ways(table, NODES)
    assert {(edge.one, edge.other): count for edge, count in found.items()} == dict(expected)


def test_a_path_through_a_router_counts_on_each_of_its_edges():
    nodes = [node("a", router="r"), node("b", "broker"), node("c", router="r"), node("r", "router")]
    table = pa.table({"src": ["a", "c"], "dst": ["b", "b"]})
    assert paths.ways(table, nodes) == {
        Edge("a", "r"): 1,
        Edge("b", "r"): 2,
        Edge("c", "r"): 1,
    }


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_edges_are_as_wide_as_they_are_used_and_never_invisible(one, other):
    most = max(one, other)
    assert paths.width(most, most) == paths.WIDEST
    drawn = paths.width(min(one, other), most)
    assert paths.THINNEST <= drawn <= paths.WIDEST
    if drawn > paths.THINNEST:
        assert drawn / paths.WIDEST == pytest.approx(min(one, other) / most)


def test_the_path_of_an_alert_is_double_and_numbered_and_named_for_screen_readers():
    crossed = {Edge("a", "b"): 3, Edge("b", "d"): 9}
    text = paths.draw(NODES, crossed, ["a", "b", "d"])
    assert re.findall(r'class="number"[^>]*>(\d)<', text) == ["1", "2"]
    assert text.count('class="alert"') == text.count('class="alert inside"') == 2
    assert (
        'aria-label="Paths of messages between 4 nodes on 2 lines. The path of the slowest alert: a, b, d.'
        in text
    )


def test_numbers_of_hops_on_one_edge_are_drawn_beside_each_other():
    crossed = {Edge("a", "b"): 3, Edge("b", "c"): 2, Edge("b", "d"): 9}
    text = paths.draw(NODES, crossed, ["a", "b", "c", "b", "d"])
    spots = re.findall(r'class="step" cx="([^"]*)" cy="([^"]*)"', text)
    assert len(set(spots)) == len(spots) == 4


def test_the_name_of_a_node_is_on_the_other_side_of_its_only_edge():
    place = {"hub": (300.0, 200.0), "top": (310.0, 60.0), "low": (290.0, 400.0)}
    place |= {"edge": (305.0, 20.0), "side": (60.0, 190.0)}
    edges = [Edge(name, "hub") for name in ("top", "low", "edge", "side")]
    assert topology_map.named_above(place, edges) == {"top"}


@given(st.integers(1, 400), st.integers(0, 60), st.integers(0, 12))
def test_around_one_broker_no_two_nodes_stand_on_the_same_spot(sensors, subscribers, routers):
    nodes = [
        node("hub", "broker"),
        *(node(f"s{n}") for n in range(sensors)),
        *(node(f"t{n}", "subscriber") for n in range(subscribers)),
        *(node(f"r{n}", "router") for n in range(routers)),
    ]
    place = topology_map.places(nodes, [])
    spots = {(round(x, 1), round(y, 1)) for x, y in place.values()}
    assert place.keys() == {one.name for one in nodes}
    assert len(spots) == len(nodes)
    assert all(
        0 < x < topology_map.WIDTH and 0 < y < topology_map.HEIGHT for x, y in place.values()
    )
