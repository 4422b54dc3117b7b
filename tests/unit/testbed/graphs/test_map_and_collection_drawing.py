"""Maps and collections drawn: a reading takes the path of the rule; a publication reaches the owner of its place."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodes.overlay.collection.rules import Way
from support.overlays.collection_oracle import expected_hops
from support.overlays.small_collection import PERIODS, TOPIC, collection_file
from testbed.cli.app import app
from testbed.graphs.brokers import Selection, broker_scenario, choose_publication
from testbed.graphs.overlay_svg import svg
from testbed.graphs.simulate import SimulatedOverlay, simulate
from testbed.topology import load, load_text
from testbed.topology.model import NodeKind, Topology

GAUGES = range(len(PERIODS))


def followed(topology: Topology, asked: Selection) -> SimulatedOverlay:
    overlay = topology.overlay
    return simulate(
        broker_scenario(
            topology, choose_publication(topology, asked), overlay.method, dict(overlay.parameters)
        )
    )


@pytest.fixture
def kochi(repository: Path) -> Topology:
    return load(repository / "topologies" / "kochi-areas.yaml")


@pytest.mark.parametrize("way", [way for way in Way if way is not Way.PULL])
def test_a_reading_is_followed_to_the_collector_by_the_rule(way: Way) -> None:
    topology = load_text(collection_file("small", way), "small.yaml")
    center = topology.node("center").number
    numbers = {site: topology.node(f"brokers-{site}").number for site in GAUGES}
    periods = {numbers[site]: float(PERIODS[site]) for site in GAUGES}
    for site in (0, 4):
        drawn = followed(topology, Selection(sensor=f"gauges-{site}", priority=1))
        vectors = {peer.number: peer.vector for peer in drawn.peers}
        oracle = expected_hops(TOPIC, periods, center, vectors, way)
        assert drawn.reached == {center: oracle[numbers[site]]}
        assert len(drawn.hops) == oracle[numbers[site]]


def test_a_pulled_reading_arrives_with_the_answer() -> None:
    topology = load_text(collection_file("small", Way.PULL), "small.yaml")
    drawn = followed(topology, Selection(sensor="gauges-4", priority=1))
    assert set(drawn.reached) == {topology.node("center").number}
    assert len(drawn.hops) == drawn.reached[topology.node("center").number]


def test_the_periods_decide_the_order_of_the_brokers() -> None:
    drawn = followed(load_text(collection_file("small"), "small.yaml"), Selection(priority=1))
    order = [drawn.scenario.names[peer.number] for peer in drawn.peers]
    assert order == [*(f"brokers-{site}" for site in (4, 5, 2, 3, 0, 1)), "center"]


def test_an_alert_on_the_same_topic_travels_as_with_other_methods() -> None:
    topology = load_text(collection_file("small"), "small.yaml")
    drawn = followed(topology, Selection())
    assert drawn.scenario.publication.priority == 5
    assert set(drawn.reached) == {topology.node("center").number}


@pytest.mark.parametrize(
    "asked",
    [
        Selection(),
        Selection(priority=1),
        Selection(sensor="slopes-2", priority=4),
        Selection(sensor="banks-0", priority=3),
        Selection(sensor="banks-2", priority=1),
    ],
    ids=["most urgent", "routine", "valley", "bank", "far away"],
)
def test_on_a_map_exactly_the_matching_subscribers_are_reached(
    asked: Selection, kochi: Topology
) -> None:
    drawn = followed(kochi, asked)
    publication = drawn.scenario.publication
    subscribers = kochi.receivers(publication.topic, publication.priority, publication.place)
    assert subscribers
    brokers = {kochi.node(kochi.node(name).brokers[0]).number for name in subscribers}
    assert set(drawn.reached) == drawn.scenario.subscribers == brokers
    assert len(drawn.peers) == len(kochi.of_kind(NodeKind.BROKER))


def test_the_areas_cover_the_map_and_the_paths_lead_to_the_owner_of_each_point(
    kochi: Topology,
) -> None:
    drawn = followed(kochi, Selection())
    assert sum(area.share for area in drawn.areas.values()) == pytest.approx(1)
    publisher = drawn.scenario.publication.publisher
    for point in ("place", "home"):
        (owner,) = [number for number, area in drawn.areas.items() if point in area.matches]
        here = publisher
        for hop in (hop for hop in drawn.hops if hop.toward == point):
            assert hop.src == here
            here = hop.dst
        assert here == owner
    owners = {number for number, area in drawn.areas.items() if area.matches}
    assert {hop.src for hop in drawn.hops if hop.toward == "subscriber"} <= owners


def test_the_picture_of_a_map_shows_shares_and_owners_and_dashes_the_way_to_them(
    kochi: Topology,
) -> None:
    drawn = followed(kochi, Selection())
    picture = ET.fromstring(svg(drawn))
    texts = [one.text for one in picture.iter() if one.tag.endswith("text")]
    assert {"place", "home"} <= set(texts)
    assert sum(text.endswith(" %") for text in texts if text) == len(drawn.peers)
    dashed = [one for one in picture.iter() if one.get("class") == "hop seek"]
    assert len(dashed) == sum(hop.toward != "subscriber" for hop in drawn.hops) > 0


def test_programs_and_people_see_where_a_publication_is_matched(repository: Path) -> None:
    file = str(repository / "topologies" / "kochi-areas.yaml")
    printed, shown = (
        CliRunner().invoke(app, ["graph", file, *more], env={"COLUMNS": "200"}).stdout
        for more in (["--json"], [])
    )
    document = json.loads(printed)
    assert [node["name"] for node in document["nodes"] if "place" in node["area"]["matches"]] == [
        "halls-7"
    ]
    assert {message["toward"] for message in document["messages"]} == {
        "place",
        "home",
        "subscriber",
    }
    assert "halls-7 (to its place)" in shown


def test_the_documentation_shows_the_map_of_kochi(kochi: Topology, repository: Path) -> None:
    drawn = repository / "docs" / "images" / "overlay-areas.svg"
    assert drawn.read_text() == svg(followed(kochi, Selection())), (
        "testbed graph topologies/kochi-areas.yaml"
    )
