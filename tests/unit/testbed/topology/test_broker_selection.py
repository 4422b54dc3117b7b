"""The brokers of a sensor or subscriber: those that it names, those nearby, or a fair share of all."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.earth import distance_m
from testbed.topology import TopologyErrors, load_text
from testbed.topology.model import Node, NodeKind
from testbed.topology.resolve.brokers import MAX_BROKERS_PER_CLIENT, select_brokers

PLACES = st.none() | st.tuples(st.floats(-90, 90), st.floats(-180, 180))
ROUTERS = st.none() | st.sampled_from(["west", "east", "valley"])
ABOVE = {"west": "valley", "east": None, "valley": None}  # router -> the router that it is behind
ROUTER_NODES = tuple(
    Node(name, 90 + number, NodeKind.ROUTER, "lan", router=above)
    for number, (name, above) in enumerate(ABOVE.items())
)


@st.composite
def labs(draw: st.DrawFn) -> tuple[Node, ...]:
    kinds = draw(
        st.lists(
            st.sampled_from([NodeKind.BROKER, NodeKind.SENSOR, NodeKind.SUBSCRIBER]), max_size=20
        )
    )
    return tuple(
        Node(f"n{i}", i, kind, "lan", at=draw(PLACES), router=draw(ROUTERS))
        for i, kind in enumerate((NodeKind.BROKER, *kinds), start=1)
    )


def node(name: str, kind: NodeKind, at: tuple[float, float] | None = None) -> Node:
    return Node(name, 1, kind, "lan", at=at)


@given(labs())
def test_every_client_has_distinct_brokers_up_to_the_maximum(
    lab: tuple[Node, ...],
) -> None:
    brokers = {each.name for each in lab if each.kind is NodeKind.BROKER}
    selection = select_brokers((*lab, *ROUTER_NODES), {})
    assert selection.keys() == {each.name for each in lab} - brokers
    for selected in selection.values():
        assert brokers.issuperset(selected)
        assert len(selected) == len(set(selected)) == min(MAX_BROKERS_PER_CLIENT, len(brokers))


@given(labs())
def test_brokers_behind_the_same_router_come_first_then_the_nearer_ones(
    lab: tuple[Node, ...],
) -> None:
    by_name = {each.name: each for each in lab}
    for name, selected in select_brokers((*lab, *ROUTER_NODES), {}).items():
        here = by_name[name]
        brokers = [by_name[broker] for broker in selected]
        beside = [met_at(here.router, broker.router) is not None for broker in brokers]
        assert beside == sorted(beside, reverse=True)
        climbs = [met_at(here.router, broker.router) for broker in brokers[: sum(beside)]]
        assert climbs == sorted(climbs, key=lambda climb: climb or 0)
        if here.at is None:
            continue
        away = [
            distance_m(here.at, broker.at)
            for broker, near in zip(brokers, beside, strict=True)
            if broker.at is not None and not near
        ]
        assert away == sorted(away)


def met_at(one: str | None, other: str | None) -> int | None:
    """How many routers above the first one those at these two routers meet; None: in the core."""
    above_other = set()
    while other is not None:
        above_other.add(other)
        other = ABOVE[other]
    climb = 0
    while one is not None and one not in above_other:
        one, climb = ABOVE[one], climb + 1
    return None if one is None else climb


@given(labs(), st.data())
def test_a_chosen_broker_comes_before_all_others(
    lab: tuple[Node, ...], data: st.DataObject
) -> None:
    brokers = [each.name for each in lab if each.kind is NodeKind.BROKER]
    wanted = tuple(
        data.draw(st.lists(st.sampled_from(brokers), unique=True, max_size=MAX_BROKERS_PER_CLIENT))
    )
    selection = select_brokers((*lab, *ROUTER_NODES), {each.name: wanted for each in lab})
    assert all(selected[: len(wanted)] == wanted for selected in selection.values())


@given(st.integers(1, 12), st.integers(0, 60))
def test_nodes_without_a_place_are_shared_out_evenly(brokers: int, edges: int) -> None:
    lab = [node(f"b{i}", NodeKind.BROKER) for i in range(brokers)]
    lab += [node(f"s{i}", NodeKind.SENSOR) for i in range(edges)]
    clients = Counter(selected[0] for selected in select_brokers(lab, {}).values())
    assert max(clients.values(), default=0) <= -(-edges // brokers)


def test_another_broker_changes_the_selection_of_few_clients() -> None:
    lab = [node(f"b{i}", NodeKind.BROKER) for i in range(40)]
    lab += [node(f"s{i}", NodeKind.SENSOR) for i in range(260)]
    before, after = (
        select_brokers(lab, {}),
        select_brokers([*lab, node("new", NodeKind.BROKER)], {}),
    )
    changed = sum(before[name] != after[name] for name in before)
    assert 0 < changed < 260 / 4


def test_the_distance_is_that_on_the_earth() -> None:
    assert distance_m((33.56, 133.53), (33.56, 133.53)) == 0
    assert distance_m((0, 0), (0, 90)) == pytest.approx(10_007_543, rel=1e-4)
    kochi, muroto = (33.5597, 133.5311), (33.2900, 134.1521)
    assert distance_m(kochi, muroto) == pytest.approx(65_000, rel=0.01)


FILE = """
overlay: {method: star}
nodes:
  hall: {kind: broker}
  near: {kind: sensor, brokers: hall}
  siren: {kind: subscriber, topics: [a], brokers: [hall]}
"""


def test_a_file_names_the_brokers_of_a_client() -> None:
    topology = load_text(FILE, "x")
    assert topology.node("near").brokers == topology.node("siren").brokers == ("hall",)
    assert topology.node("hall").brokers == ()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("home: hall", "`home` is called `brokers` now"),
        ("brokers: siren", "'siren' is a subscriber, not a broker"),
        ("brokers: hal", "there is no node 'hal'"),
        ("brokers: []", "an empty list"),
        ("brokers: 5", "nodes are expected here"),
    ],
)
def test_wrong_brokers_are_reported_at_their_place(written: str, message: str) -> None:
    with pytest.raises(TopologyErrors) as caught:
        load_text(FILE.replace("brokers: hall", written, 1), "x")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.line == 5


def test_only_clients_have_brokers() -> None:
    with pytest.raises(TopologyErrors, match="a broker has no `brokers`"):
        load_text(FILE.replace("kind: broker", "kind: broker, brokers: hall"), "x")


def test_the_order_of_nodes_in_the_file_changes_nothing_for_those_with_places() -> None:
    at = {"b0": (33.0, 133.0), "b1": (34.0, 134.0), "b2": (33.1, 133.1)}
    lab = [node(name, NodeKind.BROKER, place) for name, place in at.items()]
    lab.append(replace(node("s", NodeKind.SENSOR), at=(33.0, 133.02)))
    assert select_brokers(lab, {})["s"] == select_brokers(lab[::-1], {})["s"] == ("b0", "b2", "b1")
