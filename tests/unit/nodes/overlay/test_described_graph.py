"""Brokers report their place in the overlay on request."""

import json

import pytest

from nodes.overlay.methods import TOPIC_METHODS
from support.overlays.broker_network import BrokerNetwork
from support.overlays.reported_graph import reported_links, sorted_links


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_brokers_report_the_graph_that_sorting_gives(method: str) -> None:
    made = BrokerNetwork(method, 1, 6)
    brokers = [f"b{number}" for number in range(1, 7)]
    for place in range(6):
        topics = ["slope"] if place % 2 else ["slope", "river"]
        made.join(f"c{place}", 100 + place, topics, brokers[place:])
    made.run(60)
    reports = json.loads(json.dumps([made.cores[name].describe() for name in brokers]))
    graphs = [broker["graph"] for broker in reports]
    links = reported_links(graphs)
    assert links == sorted_links(graphs)
    assert len(links) >= len(brokers)
    assert max(map(len, links.values())) > 1

    broken = reported_links(graphs)
    broken[next(iter(broken))][0] = [None, None]
    assert broken != sorted_links(graphs)


def test_a_broker_reports_its_pending_acknowledgements_and_retained_publications() -> None:
    made = BrokerNetwork("sg-tbps", 1, 2)
    sensor = made.join("s1", 101, [], ["b1"])
    made.act("s1", sensor.advertise(["slope"], 0.0))
    made.join("c1", 102, ["slope"], ["b2"])
    made.run(30)
    made.publish("s1", 1, "slope")
    made.run(5)
    assert [made.cores[name].describe()["remembered"] for name in ("b1", "b2")] == [1, 1]
    assert [made.cores[name].describe()["duties"] for name in ("b1", "b2")] == [0, 0]
    assert made.cores["s1"].describe() == {"broker": "b1", "pending": 0}
