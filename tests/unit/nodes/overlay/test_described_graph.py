"""What brokers report of their place in the overlay when they are asked from outside."""

import json

import pytest

from mesh_network import MeshNetwork
from nodes.overlay.methods import TOPIC_METHODS
from told_graph import sorted_links, told_links


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_brokers_tell_the_graph_that_sorting_gives(method: str) -> None:
    made = MeshNetwork(method, 1, 6)
    homes = [f"b{number}" for number in range(1, 7)]
    for place in range(6):
        topics = ["slope"] if place % 2 else ["slope", "river"]
        made.join(f"c{place}", 100 + place, topics, homes[place:])
    made.run(60)
    told = json.loads(json.dumps([made.cores[name].describe() for name in homes]))
    graphs = [broker["graph"] for broker in told]
    links = told_links(graphs)
    assert links == sorted_links(graphs)
    assert len(links) >= len(homes)
    assert max(map(len, links.values())) > 1

    broken = told_links(graphs)
    broken[next(iter(broken))][0] = [None, None]
    assert broken != sorted_links(graphs)


def test_a_broker_tells_how_many_publications_it_answers_for_and_remembers() -> None:
    made = MeshNetwork("sg-tbps", 1, 2)
    sensor = made.join("s1", 101, [], ["b1"])
    made.act("s1", sensor.advertise(["slope"], 0.0))
    made.join("c1", 102, ["slope"], ["b2"])
    made.run(30)
    made.publish("s1", 1, "slope")
    made.run(5)
    assert [made.cores[name].describe()["remembered"] for name in ("b1", "b2")] == [1, 1]
    assert [made.cores[name].describe()["duties"] for name in ("b1", "b2")] == [0, 0]
    assert made.cores["s1"].describe() == {"home": "b1", "owed": 0}
