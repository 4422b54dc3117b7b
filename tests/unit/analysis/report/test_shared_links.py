"""A router's link carries packets of other nodes: MAC addresses give the direction, and drawings include routers."""

from analysis.inputs.run_folder import RunNode
from analysis.report.sections.topology_map import Edge, through_routers


def node(name: str, kind: str = "sensor", router: str | None = None) -> RunNode:
    return RunNode(name, 1, kind, "lan", 1, (), None, router)


def test_ways_lead_through_the_routers_that_nodes_are_behind() -> None:
    nodes = [node("a", router="valley"), node("b", router="valley"), node("broker", "broker")]
    ways = through_routers(
        [*nodes, node("valley", "router")], [Edge("a", "broker"), Edge("b", "broker")]
    )
    assert ways == [Edge("a", "valley"), Edge("valley", "broker"), Edge("b", "valley")]


def test_two_nodes_behind_one_router_meet_there() -> None:
    nodes = [node("a", router="valley"), node("b", router="valley"), node("valley", "router")]
    assert through_routers(nodes, [Edge("a", "b")]) == [Edge("a", "valley"), Edge("valley", "b")]


def test_ways_lead_through_all_routers_up_to_the_one_where_both_ends_meet() -> None:
    nodes = [
        node("a", router="village"),
        node("b", router="hamlet"),
        node("c", router="valley"),
        node("village", "router", "valley"),
        node("hamlet", "router", "valley"),
        node("valley", "router"),
        node("broker", "broker"),
    ]
    edge = Edge

    def way(one: str, other: str) -> list[Edge]:
        return through_routers(nodes, [Edge(one, other)])

    village, hamlet = edge("a", "village"), edge("village", "valley")
    assert way("a", "broker") == [village, hamlet, edge("valley", "broker")]
    assert way("a", "c") == [village, hamlet, edge("valley", "c")]
    assert way("c", "a") == [edge("c", "valley"), edge("valley", "village"), edge("village", "a")]
    assert way("a", "b") == [village, hamlet, edge("valley", "hamlet"), edge("hamlet", "b")]


def test_without_routers_nothing_changes() -> None:
    edges = [Edge("a", "broker"), Edge("b", "broker")]
    assert through_routers([node("a"), node("b"), node("broker", "broker")], edges) == edges
